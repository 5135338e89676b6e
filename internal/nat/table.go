package nat

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// endpoint is an address and a port. The port of an ICMP query is its identifier, and the port of
// its remote endpoint is 0.
type endpoint struct {
	addr uint32
	port uint16
}

func endpointOf(a netip.AddrPort) endpoint {
	return endpoint{number(a.Addr()), a.Port()}
}

func (e endpoint) addrPort() netip.AddrPort { return netip.AddrPortFrom(addrOf(e.addr), e.port) }

// pairKey identifies a session by the protocol and two endpoints: the remote one and either the
// inside endpoint or the outside port. Its fields have no padding, so that maps hash it fast.
type pairKey struct{ addrs, rest uint64 }

func pair(near, remote endpoint, protocol uint8) pairKey {
	return pairKey{
		uint64(near.addr)<<32 | uint64(remote.addr),
		uint64(near.port)<<32 | uint64(remote.port)<<16 | uint64(protocol),
	}
}

// portKey is a protocol and an outside port.
type portKey uint32

func portOf(protocol uint8, port uint16) portKey {
	return portKey(protocol)<<16 | portKey(port)
}

// mapping leads from an inside endpoint to an outside port. It is removed with its last session,
// unless it is a port forward.
type mapping struct {
	key      pairKey // the remote endpoint contains only the parts on which the mapping depends
	inside   endpoint
	port     uint16
	protocol uint8
	forward  bool
	sessions int
	remotes  map[uint32]int // sessions by remote address, for AddressDependent filters
}

// class is a queue of sessions with the same timeout.
type class uint8

const (
	unconfirmed class = iota // until both sides have answered a packet from outside
	datagrams
	transitory
	established
	queries

	numClasses
)

// session is the traffic of a mapping with one remote endpoint.
type session struct {
	*mapping
	remote endpoint
	class  class
	// stage counts answers: 1 when the other side has answered the first packet, 2 when the first
	// side has answered in turn.
	stage   uint8
	started direction // direction of the first packet
	closed  [2]bool   // directions in which a FIN was sent
	reset   bool      // an RST has reset the connection; cleared by the next SYN
	used    clock.Time
	packets [2]uint64
	// sums contains the sums of the words that a translation changes, before and after it, in
	// network byte order.
	sums       [2]change
	prev, next *session // neighbors in the queue of the session's class
}

// direction is the direction of a packet.
type direction uint8

const (
	outbound direction = iota
	inbound
)

// queue lists the sessions of a class, the least recently used first.
type queue struct {
	first, last *session
	len         int
	timeout     time.Duration
}

func (q *queue) push(s *session) {
	s.prev, s.next = q.last, nil
	if q.last != nil {
		q.last.next = s
	} else {
		q.first = s
	}
	q.last = s
	q.len++
}

func (q *queue) remove(s *session) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		q.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		q.last = s.prev
	}
	s.prev, s.next = nil, nil
	q.len--
}

// NAT is the translator of one interface. New creates it.
type NAT struct {
	cfg     Config
	outside uint32

	insideSessions  map[pairKey]*session // sessions by inside and remote endpoint
	outsideSessions map[pairKey]*session // sessions by outside port and remote endpoint
	mappings        map[pairKey]*mapping
	ports           map[portKey]*mapping
	hosts           map[uint32]int // sessions of each inside host, without unconfirmed ones
	queues          [numClasses]queue
	recent          [2]recent
	held            []held // waiting SYNs, the oldest first
	refused         []held // refused SYNs for Output to return
	info            Info   // the counters
	packets         [2]uint64
}

// held is a SYN from outside. It is refused unless an inside host opens the connection in time.
type held struct {
	key    pairKey // key with the outside port
	due    clock.Time
	packet []byte
}

// New returns a NAT with an empty table.
func New(cfg Config) (*NAT, error) {
	n := &NAT{}
	return n, n.Configure(cfg)
}

// Config returns the configuration, with defaults for zeros.
func (n *NAT) Config() Config { return n.cfg }

// Configure changes the configuration. Sessions stay, unless the outside address, the mapping or
// the port forwards change. An error changes nothing.
func (n *NAT) Configure(cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	keep := n.insideSessions != nil && cfg.Addr == n.cfg.Addr && cfg.Mapping == n.cfg.Mapping &&
		slices.Equal(cfg.Forwards, n.cfg.Forwards)
	n.cfg = cfg
	t := cfg.Timeouts
	for c, d := range [numClasses]time.Duration{
		t.Transitory, t.UDP, t.Transitory, t.Established, t.ICMP,
	} {
		n.queues[c].timeout = d
	}
	if !keep {
		n.reset()
	}
	return nil
}

// reset empties the table and enters the port forwards.
func (n *NAT) reset() {
	n.outside = 0
	if n.cfg.Addr.IsValid() {
		n.outside = number(n.cfg.Addr)
	}
	n.insideSessions, n.outsideSessions = map[pairKey]*session{}, map[pairKey]*session{}
	n.mappings, n.ports = map[pairKey]*mapping{}, map[portKey]*mapping{}
	n.hosts = map[uint32]int{}
	for c := range n.queues {
		n.queues[c] = queue{timeout: n.queues[c].timeout}
	}
	n.recent, n.held, n.refused = [2]recent{}, nil, nil
	for _, f := range n.cfg.Forwards {
		m := &mapping{
			inside: endpointOf(f.To), port: f.Port, protocol: f.protocol(), forward: true,
		}
		m.key = pair(m.inside, endpoint{}, m.protocol)
		n.ports[portOf(m.protocol, m.port)] = m
		if n.mappings[m.key] == nil {
			// If several forwards lead to one endpoint, the endpoint's packets leave from the first
			// forward's port.
			n.mappings[m.key] = m
		}
	}
}

// Clear removes all sessions, and all mappings except port forwards. It returns the number of
// removed sessions.
func (n *NAT) Clear() int {
	count := len(n.insideSessions)
	n.reset()
	return count
}

// Deadline returns when Advance is due next.
func (n *NAT) Deadline() clock.Time {
	t := clock.Never
	for c := range n.queues {
		if s := n.queues[c].first; s != nil {
			t = clock.Earliest(t, s.used.Later(n.queues[c].timeout))
		}
	}
	if len(n.held) > 0 {
		t = clock.Earliest(t, n.held[0].due)
	}
	return t
}

// Advance removes the sessions that have timed out at now, and refuses the held SYNs that are due.
func (n *NAT) Advance(now clock.Time) {
	for c := range n.queues {
		q := &n.queues[c]
		for q.first != nil && q.first.used.Later(q.timeout).Due(now) {
			n.info.Expired++
			n.remove(q.first)
		}
	}
	for len(n.held) > 0 && n.held[0].due.Due(now) {
		n.refused = append(n.refused, n.held[0])
		n.held = n.held[1:]
	}
}

// Output returns the next packet from outside whose sender gets an ICMP port unreachable (RFC 5382
// §4.3).
func (n *NAT) Output() ([]byte, bool) {
	if len(n.refused) == 0 {
		return nil, false
	}
	b := n.refused[0].packet
	n.refused = n.refused[1:]
	return b, true
}

// remove removes a session, and its mapping if it was the last one.
func (n *NAT) remove(s *session) {
	n.queues[s.class].remove(s)
	n.recent = [2]recent{}
	delete(n.insideSessions, pair(s.inside, s.remote, s.protocol))
	delete(n.outsideSessions, pair(endpoint{port: s.port}, s.remote, s.protocol))
	if s.class != unconfirmed {
		n.releaseHost(s.inside.addr)
	}
	m := s.mapping
	m.sessions--
	if m.remotes != nil {
		if m.remotes[s.remote.addr]--; m.remotes[s.remote.addr] == 0 {
			delete(m.remotes, s.remote.addr)
		}
	}
	n.release(m)
}

func (n *NAT) release(m *mapping) {
	if m.sessions == 0 && !m.forward {
		delete(n.ports, portOf(m.protocol, m.port))
		delete(n.mappings, m.key)
	}
}

func (n *NAT) releaseHost(addr uint32) {
	if n.hosts[addr]--; n.hosts[addr] == 0 {
		delete(n.hosts, addr)
	}
}

// add adds a session of a mapping. dir is the direction of its first packet.
func (n *NAT) add(now clock.Time, m *mapping, remote endpoint, dir direction) (*session, Verdict) {
	s := &session{mapping: m, remote: remote, started: dir, used: now}
	s.class = initialClass[m.protocol]
	if m.forward || dir == inbound {
		s.class = unconfirmed
	} else if n.hosts[m.inside.addr] >= n.cfg.MaxPerHost {
		n.release(m)
		return nil, HostFull
	}
	m.sessions++ // counted before an eviction could remove the mapping
	if s.class == unconfirmed && n.queues[unconfirmed].len >= maxUnconfirmed ||
		len(n.insideSessions) >= n.cfg.MaxSessions && n.queues[unconfirmed].len > 0 {
		n.info.Evicted++
		n.remove(n.queues[unconfirmed].first)
	}
	if len(n.insideSessions) >= n.cfg.MaxSessions {
		m.sessions--
		n.release(m)
		return nil, Full
	}
	if s.class != unconfirmed {
		n.hosts[m.inside.addr]++
	}
	if n.cfg.Filtering == AddressDependent && !m.forward {
		if m.remotes == nil {
			m.remotes = map[uint32]int{}
		}
		m.remotes[remote.addr]++
	}
	n.info.Created++
	n.insideSessions[pair(m.inside, remote, m.protocol)] = s
	n.outsideSessions[pair(endpoint{port: m.port}, remote, m.protocol)] = s
	n.queues[s.class].push(s)
	s.setSums(n.outside)
	return s, Translate
}

// initialClass is the class of a protocol's new sessions from inside.
var initialClass = [...]class{icmp: queries, tcp: transitory, udp: datagrams}

// outboundMapping returns the mapping of a new session from inside.
func (n *NAT) outboundMapping(inside, remote endpoint, protocol uint8) (*mapping, Verdict) {
	if m := n.mappings[pair(inside, endpoint{}, protocol)]; m != nil && m.forward {
		return m, Translate
	}
	far := endpoint{}
	// RFC 5508 §3.1: the mapping of a query does not depend on the remote host.
	if protocol != icmp && n.cfg.Mapping >= AddressDependent {
		far.addr = remote.addr
	}
	if protocol != icmp && n.cfg.Mapping == AddressPortDependent {
		far.port = remote.port
	}
	key := pair(inside, far, protocol)
	if m := n.mappings[key]; m != nil {
		return m, Translate
	}
	if n.hosts[inside.addr] >= n.cfg.MaxPerHost {
		return nil, HostFull
	}
	port, ok := n.choosePort(protocol, inside.port, remote)
	if !ok || len(n.insideSessions) >= n.cfg.MaxSessions && n.queues[unconfirmed].len == 0 {
		return nil, Full
	}
	m := &mapping{key: key, inside: inside, port: port, protocol: protocol}
	n.mappings[key] = m
	n.ports[portOf(protocol, port)] = m
	return m, Translate
}

// probes limits the random ports that choosePort tries.
const probes = 128

// choosePort returns a free outside port. It prefers the inside port, then one of the same range
// and parity (RFC 4787 §4.2.1, §4.2.2), and then any port from 1024 on. No two mappings share a
// port (RFC 4787 §4.2.1, RFC 5382 §7.1). The identifiers of queries are random, because the router
// sends queries of its own.
func (n *NAT) choosePort(protocol uint8, wanted uint16, remote endpoint) (uint16, bool) {
	if protocol != icmp && n.free(protocol, wanted, remote) {
		return wanted, true
	}
	const wellKnown = 1024
	low, size := wellKnown, 1<<16-wellKnown
	if wanted < wellKnown && protocol != icmp {
		low, size = 0, wellKnown
	}
	for i := range 2 * probes {
		port := uint16(low + n.cfg.Rand.IntN(size)&^1 | int(wanted&1))
		if i >= probes {
			port = uint16(wellKnown + n.cfg.Rand.IntN(1<<16-wellKnown))
		}
		if n.free(protocol, port, remote) {
			return port, true
		}
	}
	return 0, false
}

// free reports whether a new mapping may use an outside port.
func (n *NAT) free(protocol uint8, port uint16, remote endpoint) bool {
	return n.ports[portOf(protocol, port)] == nil && (port != 0 || protocol == icmp) &&
		!n.owns(protocol, port, endpoint{}) && !n.owns(protocol, port, remote)
}

func (n *NAT) owns(protocol uint8, port uint16, remote endpoint) bool {
	if n.cfg.Own == nil {
		return false
	}
	at := netip.AddrPort{}
	if remote != (endpoint{}) {
		at = remote.addrPort()
	}
	return n.cfg.Own(protocol, port, at)
}

// touch counts a packet of a session, and moves the session to the queue of its timeout.
func (n *NAT) touch(now clock.Time, s *session, dir direction, flags byte) {
	s.packets[dir]++
	n.packets[dir]++
	s.advance(dir, flags)
	c := s.class
	switch {
	case s.class == unconfirmed && s.stage < 2:
	case s.protocol == tcp && s.stage == 2 && !s.reset && !(s.closed[0] && s.closed[1]):
		c = established
	default:
		c = initialClass[s.protocol]
	}
	if s.class == unconfirmed && c != unconfirmed {
		n.hosts[s.inside.addr]++
	}
	if c == s.class && dir == inbound && s.protocol == udp && c == datagrams {
		return // RFC 4787 §4.3: packets from outside do not refresh a mapping
	}
	if c == s.class && now == s.used {
		return
	}
	n.queues[s.class].remove(s)
	s.class, s.used = c, now
	n.queues[c].push(s)
}

// These are TCP's flags.
const (
	fin = 1 << iota
	syn
	rst
	_
	ack
)

// advance updates the state of a connection, given the direction and TCP flags of a packet.
func (s *session) advance(dir direction, flags byte) {
	switch {
	case s.protocol == tcp && flags&rst != 0:
		s.reset = true
		return
	case s.protocol == tcp && flags&(syn|ack) == syn && (s.reset || s.closed[0] && s.closed[1]):
		// A new connection uses the ports of the old one.
		s.stage, s.started, s.reset, s.closed = 0, dir, false, [2]bool{}
	case flags&fin != 0:
		s.closed[dir] = true
	}
	switch {
	case s.stage == 0 && dir != s.started:
		s.stage = 1
	case s.stage == 1 && dir == s.started && flags&syn == 0:
		s.stage = 2
	}
}
