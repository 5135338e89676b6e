// Package stack wires the protocol rooms into one host or router. It is still
// synchronous: its owner brings packets and time, and takes packets away.
//
// A packet comes in by Input and goes out by Output. What a packet causes is
// done when Input returns, except for what has to be sent: that waits inside
// until the owner drains it with Output, which it does after every call that
// may have changed something.
package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// DefaultMTU is the family's MTU: what a UDP link carries without being told.
const DefaultMTU = 1400

// Initial TTLs. RFC 1122 §3.2.1.7 wants them configurable and large enough for
// the network's diameter; test packets and RIP keep the family's 16.
const (
	defaultTTL = 64
	courseTTL  = 16
)

// Config describes one host or router.
type Config struct {
	Interfaces []Interface
	// Routes are the static routes.
	Routes []Route
	// RIP makes the node speak RIP with the neighbours it lists, or RIPv2 on the
	// interfaces that it lists, and on all if it lists none; nil means no RIP.
	RIP *rip.Config
	// Originate are prefixes that RIP announces beside the interfaces' own.
	Originate []rip.External
	// Redistribute has RIP announce the static routes, too, with its tag and metric;
	// nil: only those that Originate names.
	Redistribute *rip.External
	// Forwarding makes the node a router: it passes on what is for others.
	Forwarding bool
	// TCP configures the transport; the stack fills in its Route.
	TCP tcp.Config
	// UDP configures UDP's sockets; the stack fills in its Rand.
	UDP udp.Config
	// Knobs are what can be turned later.
	Knobs Knobs
	// TimeOfDay is how long after midnight UT the clock's origin was. It is what ICMP's
	// and IP's timestamps count from.
	TimeOfDay time.Duration
	// FirstSocket is the lowest socket number.
	FirstSocket int
	// Rand decides which packets lossyforward drops and which ports UDP chooses;
	// nil means a fixed seed.
	Rand *rand.Rand
}

// Interface is one attachment to a link.
type Interface struct {
	Name string
	Addr netip.Prefix // the node's address and the length of the link's prefix
	MTU  int          // bytes of IP packet; 0 means DefaultMTU
	// DefaultMSS has TCP peers there that send no MSS option taken at 536 bytes (RFC 9293 §3.7.1).
	// Without it they take the MTU, as course nodes do.
	DefaultMSS bool
	// Neighbors are the nodes on the link; nil means that nobody knows who is.
	Neighbors []netip.Addr
}

// Direction tells a tap which way a packet was going.
type Direction uint8

// The directions of a packet at an interface.
const (
	Inbound Direction = iota
	Outbound
)

// Tap sees every packet at the moment it arrives, leaves or is dropped. The
// pieces are lent for the call. Reason is ip.DropNone for a packet that lives.
type Tap func(now clock.Time, iface int, dir Direction, reason ip.DropReason, pieces [][]byte)

// Stack is one host or router.
type Stack struct {
	cfg        Config
	interfaces []iface
	own        map[ip.Addr]int    // address to interface
	addrs      addresses          // the same, and the networks, for a quick look
	groups     map[membership]int // joined by others than UDP's sockets
	routes     ip.Table
	statics    statics
	rip        *rip.Speaker
	routeWatch func(rip.Change)
	tcp        *tcp.Host
	udp        *udp.Host
	fragments  *ip.Reassembler
	ids        *ip.Identifications
	rng        *rand.Rand
	knobs      Knobs
	bucket     icmp.Bucket // of ICMP's errors
	catching   catching

	in      inbound
	out     outbound
	flows   flows
	events  []Event
	sockets sockets
	guests
	tap Tap
}

// guests are what the stack's owner has it run beside its own protocols.
type guests struct {
	probers []Prober
	raws    []*Raw
	ports   ports
}

// iface is the state of one interface.
type iface struct {
	Interface
	addr ip.Addr
	up   bool
	loss float64 // share of forwarded packets dropped on the way out, 0..1
	rx   counters
	tx   counters
}

type counters struct {
	packets, bytes uint64
	// fragments are those of the packets that were fragments: in, for this node; out,
	// of larger ones, which are those of fragmented.
	fragments, fragmented uint64
	// Received packets that a protocol here has taken, or that were for others and had
	// a way: each packet is one of them or among the drops.
	delivered, forwarded uint64
	drops                ip.Drops
}

// New returns a stack with every interface up. RIP, if configured, begins with
// the first Output.
func New(now clock.Time, cfg Config) (*Stack, error) {
	s := &Stack{cfg: cfg, own: map[ip.Addr]int{}, statics: statics{}, rng: cfg.Rand}
	s.sockets.free = cfg.FirstSocket
	if s.rng == nil {
		s.rng = rand.New(rand.NewPCG(1, 1))
	}
	if len(cfg.Interfaces) == 0 {
		return nil, errors.New("stack: no interfaces")
	}
	s.fragments = ip.NewReassembler()
	for i, c := range cfg.Interfaces {
		if err := s.attach(i, c); err != nil {
			return nil, err
		}
	}
	// One secret serves both: each marks what it hashes with a letter of its own.
	s.ids = ip.NewIdentifications(cfg.TCP.Secret)
	cfg.TCP.Route = s.path
	host, err := tcp.NewHost(cfg.TCP)
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	s.tcp = host
	if err := s.SetKnobs(cfg.Knobs); err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	cfg.UDP.Rand = s.rng
	s.udp = udp.NewHost(cfg.UDP)
	if err := s.startRouting(now); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stack) attach(i int, c Interface) error {
	if err := c.check(); err != nil {
		return err
	}
	addr := c.Addr.Addr().As4()
	if j, dup := s.own[addr]; dup {
		return fmt.Errorf("stack: interfaces %s and %s have the same address %v",
			s.interfaces[j].Name, c.Name, c.Addr.Addr())
	}
	s.own[addr] = i
	s.addrs.add(addr, c.Addr.Bits())
	s.interfaces = append(s.interfaces, iface{Interface: c, addr: addr, up: true})
	return nil
}

// TCP returns the transport. Its owner is the stack's owner.
func (s *Stack) TCP() *tcp.Host { return s.tcp }

// SetTap has every packet shown to tap from now on; nil ends it.
func (s *Stack) SetTap(tap Tap) { s.tap = tap }

// FromSelf reports, to the tap, whether the packet that it is shown came from the node itself. Its
// interface is then the one that has the address.
func (s *Stack) FromSelf() bool { return s.in.self }

// Deadline returns when Advance is due next, or never.
func (s *Stack) Deadline() clock.Time {
	t := clock.Earliest(s.tcp.Deadline(), s.fragments.Deadline())
	if s.rip != nil {
		t = clock.Earliest(t, s.rip.Deadline())
	}
	if len(s.out.local) > 0 {
		t = clock.Earliest(t, s.out.localAt)
	}
	if len(s.probers) > 0 {
		t = clock.Earliest(t, s.proberDeadline())
	}
	if len(s.ports.list) > 0 {
		t = clock.Earliest(t, s.ports.deadline())
	}
	return t
}

// Advance does what is due at or before now: timers, and the delivery of
// packets that the node has sent to itself.
func (s *Stack) Advance(now clock.Time) {
	s.out.memory.reuse()
	s.deliverLocal(now)
	s.expireSockets(now)
	s.fragments.Advance(now)
	s.discardFragments(now)
	s.advanceProbers(now)
	s.tcp.Advance(now)
	s.ports.advance(now)
	if s.rip != nil {
		s.rip.Advance(now)
		s.learn()
	}
}

// Event is something that the stack's owner may want to tell its user.
type Event struct {
	// Test is a test packet (protocol 0) for this node.
	Test *TestPacket
	// RIP is something that RIP did while somebody watched it.
	RIP *rip.Event
}

// TestPacket is a received packet of protocol 0.
type TestPacket struct {
	Src, Dst netip.Addr
	TTL      int
	Data     []byte
}

// maxEvents bounds what a flood can pile up between two calls of Events.
const maxEvents = 1024

func (s *Stack) tell(e Event) {
	if len(s.events) < maxEvents {
		s.events = append(s.events, e)
	}
}

// Events returns what happened since the last call.
func (s *Stack) Events() []Event {
	e := s.events
	s.events = nil
	return e
}

// drop counts a packet that dies at interface i and shows it to the tap.
func (s *Stack) drop(now clock.Time, i int, dir Direction, reason ip.DropReason, pieces [][]byte) {
	c := &s.interfaces[i].rx
	if dir == Outbound {
		c = &s.interfaces[i].tx
	}
	c.drops[reason]++
	if s.tap != nil {
		s.tap(now, i, dir, reason, pieces)
	}
}

// dropOne is drop for a packet that is one piece.
func (s *Stack) dropOne(now clock.Time, i int, dir Direction, reason ip.DropReason, b []byte) {
	s.in.one[0] = b
	s.drop(now, i, dir, reason, s.in.one[:])
}

// inbound is the state of Input: the TCP train that is being gathered.
type inbound struct {
	train    tcp.Segment
	iface    int
	gathered bool
	checked  bool     // the link has just made the checksums of what it gave
	payload  [][]byte // the train's pieces, reused
	one      [1][]byte
	self     bool // what is received comes from the node itself
	met      bool // its flow is known
}

// outbound is what waits for Output.
type outbound struct {
	packets  []packet // our own, rendered, in order
	forward  []run    // others', lent by the driver until its next Input
	emitted  int      // how many of forward are in a batch
	local    []packet // to ourselves
	localAt  clock.Time
	train    tcp.Train
	walk     renderer
	cut      ip.Fragmenter
	walking  bool   // the last batch ended before the train did
	outlets  []int  // the room of each outlet, the loopback last
	bytes    int    // of packets and local
	datagram []byte // of UDP, being sent
	sound    bool   // what is queued now is a datagram whose checksum was made
	memory   memory
}

// packet is one IP packet on its way out.
type packet struct {
	iface  int
	hop    ip.Addr
	data   []byte
	at     int  // bytes of its payload that have left in fragments
	last   bool // sent before the interface went down
	shared bool // the data is that of other packets, too
	sound  bool // the transport's checksum was made a moment ago
}

// maxQueuedBytes bounds what the stack itself queues: answers to pings, ICMP
// errors, RIP messages, test packets. TCP's data stays in its rings.
const maxQueuedBytes = 1 << 20
