// Package stack joins the protocol engines into one host or router. Like them it is synchronous:
// its owner passes it packets and the time, and takes packets from it.
//
// A packet arrives by Input and leaves by Output. When Input returns, everything that the packet
// causes has happened, except for sending: packets wait until the owner drains them with Output,
// which it does after every call that may have changed something.
//
// Stack composes parts, each with its own state:
//
//	Interfaces  addresses, groups, counters, the tap
//	Routing     the routing table, static routes, cached decisions, reverse path filter
//	forwarder   packets to forward, also through the NATs of interfaces
//	local       packets for this node: reassembly, the choice of the protocol, TCP's trains
//	icmpHost    ICMP replies and errors, sent and received
//	RIPs        the routing protocols' messages and routes, one for each family
//	sender      packets of the node itself, until links take them
//	Datagrams   UDP sockets
//	Sockets     the numbers of sockets
//	Ports       UDP ports of RCP and RDT
//	Probers     pings and traceroutes
//	Raws        raw sockets
//	discoverers neighbor discovery and address configuration
package stack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// DefaultMTU is the MTU of links that do not configure one. A UDP datagram over Ethernet can carry
// packets of this size.
const DefaultMTU = 1400

// These are initial TTLs. RFC 1122 §3.2.1.7 requires them to be configurable and larger than the
// diameter of the network. Test packets and the course's RIP use 16, as the courses do.
const (
	defaultTTL = 64
	courseTTL  = 16
)

// Config describes one host or router.
type Config struct {
	Interfaces []Interface
	// Routes are the static routes.
	Routes []Route
	// RIP makes the node run the course's RIP with the neighbors that RIP lists, or RIPv2 on the
	// interfaces that RIP lists. If RIP lists no interfaces, RIPv2 runs on all of them. A nil RIP
	// means that the node does not run it.
	RIP *rip.Config
	// RIPng makes the node run RIPng on the interfaces that RIPng lists. If it lists none, RIPng
	// runs on all interfaces that have IPv6 addresses. If it is nil, the node does not run RIPng.
	RIPng *rip.Config
	// Originate are prefixes that RIP announces in addition to the interfaces' networks.
	Originate []rip.External
	// Redistribute makes RIP announce the static routes, with this tag and metric. If it is nil,
	// RIP announces only static routes that Originate names.
	Redistribute *rip.External
	// Forwarding makes the node a router, which forwards packets.
	Forwarding bool
	// TCP configures TCP. The stack sets its Route.
	TCP tcp.Config
	// UDP configures UDP. The stack sets its Rand.
	UDP udp.Config
	// Knobs are the settings that can change later.
	Knobs Knobs
	// TimeOfDay is the time of day, UT, at the clock's origin. The timestamps of ICMP and IP count
	// from midnight.
	TimeOfDay time.Duration
	// FirstSocket is the lowest socket number.
	FirstSocket int
	// Rand is the source of random numbers for everything but TCP. If it is nil, the seed is fixed.
	Rand *rand.Rand
}

// Stack is one host or router. It calls its parts in order.
type Stack struct {
	in        incoming
	ifs       Interfaces
	routing   Routing
	out       sender
	icmp      icmpHost
	fwd       forwarder
	local     local
	rips      []*RIP
	tcp       *tcp.Host
	udp       *udp.Host
	datagrams Datagrams
	sockets   Sockets
	probers   Probers
	raws      Raws
	ports     Ports
	events    events
	discovery discoverers
	knobs     Knobs
}

// New returns a stack whose interfaces are all up. The first Output returns RIP's first messages.
func New(now clock.Time, cfg Config) (*Stack, error) {
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(1, 1))
	}
	s := &Stack{}
	cfg.TCP.Route = s.routing.path
	cfg.UDP.Rand = cfg.Rand
	s.udp = udp.NewHost(cfg.UDP)
	s.ifs = Interfaces{
		udp: s.udp, in: &s.in, router: cfg.Forwarding, discovery: &s.discovery,
		translators: translators{rng: cfg.Rand},
	}
	list := slices.Clone(cfg.Interfaces)
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, err
		}
	}
	err := s.ifs.checkInterfaces(list)
	if err != nil {
		return nil, err
	}
	s.ifs.set(list)
	if s.tcp, err = tcp.NewHost(cfg.TCP); err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	s.join(&cfg)
	if err := s.SetKnobs(cfg.Knobs); err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	if err := s.routing.start(now, cfg.Routes); err != nil {
		return nil, err
	}
	s.discovery.configure(now, list)
	s.discovery.begin(now)
	return s, nil
}

// join creates the parts that refer to each other.
func (s *Stack) join(cfg *Config) {
	ifs, routing, out := &s.ifs, &s.routing, &s.out
	ifs.tcp = s.tcp
	for _, c := range []*rip.Config{cfg.RIP, cfg.RIPng} {
		if c != nil {
			s.rips = append(s.rips, &RIP{
				encapsulation: encapsulations[c.Dialect], ifs: ifs, routing: routing, out: out,
				events: &s.events, rng: cfg.Rand, cfg: c, originated: cfg.Originate,
				redistribute: cfg.Redistribute,
			})
		}
	}
	s.routing = Routing{
		ifs: ifs, rips: s.rips, tcp: s.tcp, in: &s.in, knobs: &s.knobs,
		statics: statics{},
	}
	s.out = sender{
		ifs: ifs, routing: routing, tcp: s.tcp,
		// TCP and IP share one secret, because each hashes it with a different prefix.
		ids: ip.NewIdentifications(cfg.TCP.Secret), labels: ip.NewFlowLabels(cfg.TCP.Secret),
	}
	s.discovery = discoverers{
		ifs: ifs, routing: routing, rips: s.rips, out: out, events: &s.events, rng: cfg.Rand,
		down: func(now clock.Time, i int) { s.SetUp(now, i, false) },
	}
	s.icmp = icmpHost{
		ifs: ifs, routing: routing, local: &s.local, out: out, tcp: s.tcp, udp: s.udp, in: &s.in,
		knobs: &s.knobs, timeOfDay: cfg.TimeOfDay, discovery: &s.discovery,
	}
	s.fwd = forwarder{
		ifs: ifs, routing: routing, icmp: &s.icmp, local: &s.local, out: out, in: &s.in,
		knobs: &s.knobs, rng: cfg.Rand,
	}
	s.local = local{
		ifs: ifs, routing: routing, icmp: &s.icmp, rips: s.rips, probers: &s.probers,
		raws: &s.raws, ports: &s.ports, events: &s.events, tcp: s.tcp, udp: s.udp, in: &s.in,
		fwd: &s.fwd, fragments: ip.NewReassembler(),
	}
	s.datagrams = Datagrams{
		ifs: ifs, routing: routing, out: out, icmp: &s.icmp, rips: s.rips, udp: s.udp,
	}
	s.sockets = Sockets{tcp: s.tcp, free: cfg.FirstSocket}
	s.probers = Probers{ifs: ifs, routing: routing, out: out}
	s.raws = Raws{ifs: ifs, out: out}
	s.ports = Ports{ifs: ifs, out: out, datagrams: &s.datagrams, rng: cfg.Rand}
}

// TCP returns the TCP host.
func (s *Stack) TCP() *tcp.Host { return s.tcp }

// UDP returns the UDP host.
func (s *Stack) UDP() *udp.Host { return s.udp }

// Datagrams returns the UDP sockets.
func (s *Stack) Datagrams() *Datagrams { return &s.datagrams }

// Interfaces returns the node's interfaces.
func (s *Stack) Interfaces() *Interfaces { return &s.ifs }

// Routing returns the routing table.
func (s *Stack) Routing() *Routing { return &s.routing }

// RIPs returns the routing protocols that the node runs: first that of IPv4, then that of IPv6.
func (s *Stack) RIPs() []*RIP { return s.rips }

// Sockets returns the numbers of sockets.
func (s *Stack) Sockets() *Sockets { return &s.sockets }

// Probers returns the pings and traceroutes.
func (s *Stack) Probers() *Probers { return &s.probers }

// Raws returns the raw sockets.
func (s *Stack) Raws() *Raws { return &s.raws }

// Ports returns the ports of RCP and RDT.
func (s *Stack) Ports() *Ports { return &s.ports }

// SetTap calls tap with every packet from now on. A nil tap ends this.
func (s *Stack) SetTap(tap Tap) { s.ifs.tap = tap }

// FromSelf reports, during a call of the tap, whether the packet is one that the node receives from
// itself. The tap's interface is then the one with the packet's destination address.
func (s *Stack) FromSelf() bool { return s.in.self }

// Deadline returns when Advance is due next, or clock.Never.
func (s *Stack) Deadline() clock.Time {
	t := clock.Earliest(s.tcp.Deadline(), s.local.fragments.Deadline())
	if len(s.discovery.list) > 0 {
		t = clock.Earliest(t, s.discovery.deadline())
	}
	for _, rp := range s.rips {
		t = clock.Earliest(t, rp.speaker.Deadline())
	}
	if s.ifs.translators.count > 0 {
		t = clock.Earliest(t, s.ifs.natDeadline())
	}
	if len(s.out.toSelf) > 0 {
		t = clock.Earliest(t, s.out.localAt)
	}
	if len(s.probers.list) > 0 {
		t = clock.Earliest(t, s.probers.deadline())
	}
	if len(s.ports.list) > 0 {
		t = clock.Earliest(t, s.ports.deadline())
	}
	return t
}

// Advance runs the timers that are due at or before now, and delivers the packets that the node has
// sent to itself.
func (s *Stack) Advance(now clock.Time) {
	s.out.memory.reuse()
	s.receiveFromSelf(now)
	s.sockets.expire(now)
	s.local.fragments.Advance(now)
	s.local.discardFragments(now)
	s.probers.advance(now)
	s.tcp.Advance(now)
	s.ports.advance(now)
	for _, rp := range s.rips {
		rp.speaker.Advance(now)
		rp.applyChanges()
	}
	s.discovery.advance(now)
	s.advanceNATs(now)
}

// Events returns the events since the last call.
func (s *Stack) Events() []Event {
	e := s.events.list
	s.events.list = nil
	return e
}

// Fragments returns the state and counters of reassembly.
func (s *Stack) Fragments() ip.ReassemblyInfo { return s.local.fragments.Info() }

// SendTest sends a packet of the given protocol with text as its payload, as the courses do to test
// a network. It returns the packet's size in bytes.
func (s *Stack) SendTest(now clock.Time, dst netip.Addr, protocol uint8, text []byte) (int, error) {
	h := ip.Header{Protocol: protocol, TTL: courseTTL, Dst: dst}
	return ip.HeaderLen + len(text), s.out.send(now, h, text)
}

// ListenTCP is like tcp.Host.Listen, at one of the node's addresses, or at all of them if local has
// an unspecified or invalid address.
func (s *Stack) ListenTCP(local netip.AddrPort, backlog int) (*tcp.Listener, error) {
	if err := s.ifs.ours(local.Addr()); err != nil {
		return nil, err
	}
	return s.tcp.Listen(local, backlog)
}

// DialTCP is tcp.Host.ConnectFrom from one of the node's addresses. If local has an unspecified or
// invalid address, DialTCP uses the route's source address. No listener may use the local port at
// that address. Port 0 means a free port.
func (s *Stack) DialTCP(now clock.Time, local, remote netip.AddrPort) (*tcp.Conn, error) {
	if err := s.ifs.ours(local.Addr()); err != nil {
		return nil, err
	}
	if l := local.Addr().Unmap(); !isUnset(l) {
		if err := s.routing.checkLoopback(l, remote.Addr()); err != nil {
			return nil, err
		}
	}
	to, err := s.ifs.Scope(remote.Addr())
	if err != nil {
		return nil, err
	}
	remote = netip.AddrPortFrom(to, remote.Port())
	if local.Port() != 0 && s.tcp.Listens(local) {
		return nil, fmt.Errorf("%v: %w", local, tcp.ErrPortInUse)
	}
	return s.tcp.ConnectFrom(now, local, remote)
}

// receiveFromSelf receives the packets that the node has sent to itself.
func (s *Stack) receiveFromSelf(now clock.Time) {
	packets := s.out.toSelf
	s.out.toSelf = nil
	s.in.self = true
	for _, p := range packets {
		s.out.bytes -= len(p.data)
		s.receive(now, p.iface, s.routing.flows.of(p.data), p.data)
	}
	s.in.self = false
	s.local.flushTrain(now)
}

// Arrival returns what TCP will do with n bytes of payload at seq. Call it only in the tap, while
// the tap has this payload. The segments of the current train come before the payload, and have not
// reached TCP yet.
func (s *Stack) Arrival(c *tcp.Conn, seq uint32, n int) tcp.Arrival {
	t := &s.local.gathering
	if s.local.gathered && n > 0 && t.Tuple == c.Tuple() && seq == t.Seq+uint32(t.Len) {
		return c.Arrival(t.Seq, t.Len+n)
	}
	return c.Arrival(seq, n)
}

// Event is something that the stack's owner may report to its user.
type Event struct {
	// Test is a test packet (protocol 0) for this node.
	Test *TestPacket
	// RIP is an event of the routing protocol, if RIP is watched.
	RIP *rip.Event
	// Address is an address that discovery added or removed.
	Address *AddressEvent
}

// TestPacket is a received packet of protocol 0.
type TestPacket struct {
	Src, Dst netip.Addr
	TTL      int
	Data     []byte
}

// maxEvents limits the events between two calls of Events, for example in a flood.
const maxEvents = 1024

// events contains the events since the last call of Events, at most maxEvents.
type events struct{ list []Event }

func (ev *events) add(e Event) {
	if len(ev.list) < maxEvents {
		ev.list = append(ev.list, e)
	}
}
