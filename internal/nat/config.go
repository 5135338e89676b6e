// Package nat translates the addresses and ports of IPv4 packets at one interface of a router, its
// outside. It follows the behavior that RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP) require.
//
// A mapping leads from an inside address and port to a port of the outside address. A session is
// the traffic of a mapping with one remote address and port. A NAT has no packets of its own: the
// router asks Outbound or Inbound what to do with a packet, decides about its route, and then calls
// Match.Apply. Output returns packets from outside that the router answers with an ICMP error.
package nat

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Behavior is how a mapping or a filter depends on the remote endpoint (RFC 4787 §4.1, §5).
type Behavior uint8

// These are the behaviors.
const (
	// EndpointIndependent is the same for all remote endpoints.
	EndpointIndependent Behavior = iota
	// AddressDependent depends on the remote address.
	AddressDependent
	// AddressPortDependent depends on the remote address and port. A NAT with this mapping behavior
	// is called symmetric.
	AddressPortDependent
)

// Behaviors are the names of the behaviors.
var Behaviors = [...]string{"endpoint-independent", "address-dependent", "symmetric"}

// String returns the behavior's name.
func (b Behavior) String() string { return Behaviors[b] }

// These are the protocols that are translated.
const (
	icmp uint8 = 1
	tcp  uint8 = 6
	udp  uint8 = 17
)

// Forward makes a port of the outside address lead to an inside host.
type Forward struct {
	TCP  bool // protocol; false: UDP
	Port uint16
	To   netip.AddrPort
}

// Timeouts are how long a session lasts without packets.
type Timeouts struct {
	// UDP is refreshed by packets from inside only (RFC 4787 §4.3); 0: 5 minutes.
	UDP time.Duration
	// Established is the timeout of a TCP connection after its handshake (RFC 5382 §5); 0: 2 h 4
	// min.
	Established time.Duration
	// Transitory is the timeout of TCP connections that are opening or closing, and of sessions
	// from outside that an inside host has not confirmed (RFC 5382 §5); 0: 4 minutes.
	Transitory time.Duration
	// ICMP is the timeout of a query (RFC 5508 §3.2); 0: 60 s.
	ICMP time.Duration
}

// Config configures a NAT.
type Config struct {
	// Addr is the outside address. The zero Addr translates nothing.
	Addr netip.Addr
	// Mapping says when packets from one inside address and port get different outside ports.
	Mapping Behavior
	// Filtering says which packets from outside reach a mapping. Port forwards have no filter.
	Filtering Behavior
	// Forwards are the port forwards.
	Forwards []Forward
	Timeouts Timeouts
	// MaxSessions limits the sessions of all hosts; 0: 32,768, half of the ports.
	MaxSessions int
	// MaxPerHost limits the sessions of one inside host; 0: a quarter of MaxSessions. A session
	// above one of the two limits is refused.
	MaxPerHost int
	// Own reports whether the router itself uses a port of the outside address with a remote
	// endpoint. The zero endpoint stands for any. If Own is nil, the router uses no port.
	Own func(protocol uint8, port uint16, remote netip.AddrPort) bool
	// Rand chooses ports. It must be set.
	Rand *rand.Rand
}

// ErrConfig is the error for an invalid Config.
var ErrConfig = errors.New("nat")

const (
	// maxUnconfirmed limits the sessions from outside that no inside host has confirmed. A new one
	// evicts the least recently used one, whose next packet then creates a new session.
	maxUnconfirmed = 4096
	// maxHeld limits the SYNs from outside that wait for the end of synWait; later ones are
	// dropped without an ICMP error.
	maxHeld = 256
	// synWait is how long a SYN from outside is held before it is refused (RFC 5382 §4.3).
	synWait = 6 * time.Second
	// maxForwards limits the port forwards.
	maxForwards = 1024
)

func (c Config) withDefaults() Config {
	t := &c.Timeouts
	t.UDP = cmp.Or(t.UDP, 5*time.Minute)
	t.Established = cmp.Or(t.Established, 2*time.Hour+4*time.Minute)
	t.Transitory = cmp.Or(t.Transitory, 4*time.Minute)
	t.ICMP = cmp.Or(t.ICMP, time.Minute)
	c.MaxSessions = cmp.Or(c.MaxSessions, 1<<15)
	c.MaxPerHost = cmp.Or(c.MaxPerHost, max(1, c.MaxSessions/4))
	return c
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	c = c.withDefaults()
	t := c.Timeouts
	switch {
	case c.Addr.IsValid() && !c.Addr.Is4():
		return fmt.Errorf("%w: outside address %v must be IPv4", ErrConfig, c.Addr)
	case int(max(c.Mapping, c.Filtering)) >= len(Behaviors):
		return fmt.Errorf("%w: unknown behavior %d", ErrConfig, max(c.Mapping, c.Filtering))
	case min(t.UDP, t.Established, t.Transitory, t.ICMP) <= 0:
		return fmt.Errorf("%w: timeouts must be positive", ErrConfig)
	case c.MaxSessions < 1 || c.MaxSessions > 1<<20:
		return fmt.Errorf("%w: %d sessions: must be 1 to %d", ErrConfig, c.MaxSessions, 1<<20)
	case c.MaxPerHost < 1:
		return fmt.Errorf("%w: %d sessions of a host: must be at least 1", ErrConfig, c.MaxPerHost)
	case len(c.Forwards) > maxForwards:
		return fmt.Errorf("%w: %d port forwards: must be at most %d", ErrConfig,
			len(c.Forwards), maxForwards)
	}
	ports := map[portKey]bool{}
	for _, f := range c.Forwards {
		key := portOf(f.protocol(), f.Port)
		switch {
		case f.Port == 0 || !f.To.Addr().Is4() || f.To.Port() == 0:
			return fmt.Errorf("%w: port forward from %d to %v: must lead from a port to an IPv4 "+
				"address and a port", ErrConfig, f.Port, f.To)
		case ports[key]:
			return fmt.Errorf("%w: port %d is forwarded twice", ErrConfig, f.Port)
		}
		ports[key] = true
	}
	return nil
}

func (f *Forward) protocol() uint8 {
	if f.TCP {
		return tcp
	}
	return udp
}

// Verdict says what happens to a packet.
type Verdict uint8

// These are the verdicts.
const (
	// Translate means that the caller applies the Match.
	Translate Verdict = iota
	// Untranslated means that a packet from outside belongs to no mapping, so it is for the router
	// itself. A packet from inside is an ICMP error or a reply that belongs to no session.
	Untranslated
	// Malformed means that the transport header is incomplete or invalid, or the packet is a
	// fragment.
	Malformed
	// Unsupported means that the packet is of another protocol, or an ICMP message that has no
	// session.
	Unsupported
	// Filtered means that the filter does not accept the packet's source.
	Filtered
	// Full means that the table is full, or no free port was found.
	Full
	// HostFull means that the inside host has its maximum number of sessions.
	HostFull
	// Held means that the packet is a SYN from outside that Output may return later.
	Held
)
