package drill

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// The defaults and limits of a script's world, as in packetdrill.
const (
	defaultMTU       = 1500
	defaultPort      = 8080
	defaultTolerance = 4 * time.Millisecond
	// peerPort is the source port of a peer that connects.
	peerPort = 53000
	// maxSteps limits the number of timer events in one script.
	maxSteps = 20000
	// maxQueued limits the number of segments that no line has checked.
	maxQueued = 5000
	// maxWait is how long the time * waits.
	maxWait = time.Hour
)

// origin is the clock at the script's time 0.
const origin = clock.Time(time.Hour)

// world is one host in virtual time, with the script's view of it.
type world struct {
	script *Script
	set    settings
	host   *tcp.Host
	path   tcp.Path

	now     clock.Time // never decreases
	steps   int
	sockets map[int64]*socket
	peers   map[tcp.Tuple]*peer
	current *peer     // the peer of a segment without ports
	info    *tcp.Conn // the connection of tcp_info
	waiting *blocked  // the call that has not returned
	out     []sent    // segments that no line has checked
	line    int       // of the current event
}

// settings are the effects of the lines --name=value and of the first `…` block.
type settings struct {
	tolerance     time.Duration
	percent       float64 // of the time since the last event
	tick          time.Duration
	local, remote netip.Addr
	bind, connect uint16
	mtu           int
	keepalive     tcp.Keepalive // the values for SO_KEEPALIVE
	config        tcp.Config
}

// peer is one connection with the script's numbering.
type peer struct {
	tuple tcp.Tuple
	iss   uint32 // the host's SYN, zero before it
	irs   uint32 // the peer's SYN
	// The host's timestamps by the script's numbers, and the first: as sent and in the script.
	stamps     map[uint32]uint32
	live, said uint32
	hasSaid    bool
}

// sent is one segment that left the host.
type sent struct {
	at      clock.Time
	peer    *peer
	header  tcp.Header
	length  int
	ecn     ecnMark
	foreign int // the offset of the first byte that differs from the stream, or -1
}

func newWorld(s *Script) (*world, error) {
	w := &world{
		script: s, now: origin,
		sockets: map[int64]*socket{}, peers: map[tcp.Tuple]*peer{},
		set: settings{
			tolerance: defaultTolerance, percent: 1, mtu: defaultMTU,
			local: netip.MustParseAddr("192.168.0.1"), remote: netip.MustParseAddr("192.0.2.1"),
			bind: defaultPort, connect: defaultPort,
			keepalive: tcp.Keepalive{
				Idle: 7200 * time.Second, Interval: 75 * time.Second, Count: 9,
			},
		},
	}
	for _, o := range s.options {
		w.line = o.line
		if err := w.set.option(o); err != nil {
			return nil, w.fail("--%s=%s: %v", o.name, o.value, err)
		}
	}
	for _, c := range s.setup {
		w.line = c.line
		if err := w.set.command(c.words); err != nil {
			return nil, w.fail("%v", err)
		}
	}
	w.path = tcp.Path{MTU: w.set.mtu, Local: w.set.local, DefaultMSS: true}
	cfg := w.set.config
	cfg.Route = func(netip.Addr) tcp.Path { return w.path }
	host, err := tcp.NewHost(cfg)
	if err != nil {
		return nil, w.fail("%v", err)
	}
	w.host = host
	return w, nil
}

func (w *world) fail(format string, args ...any) error {
	return &Error{File: w.script.name, Line: w.line, Text: fmt.Sprintf(format, args...)}
}

// stamp formats a time relative to the script's start.
func stamp(t clock.Time) string { return fmt.Sprintf("%.6f", t.Sub(origin).Seconds()) }

// runUntil advances the clock to t and runs the host's timers on the way. If orSent is set, it
// stops once a segment has left.
func (w *world) runUntil(t clock.Time, orSent bool) error {
	for {
		if err := w.pump(); err != nil {
			return err
		}
		if orSent && len(w.out) > 0 {
			return nil
		}
		due := w.host.Deadline()
		if w.waiting != nil && w.waiting.end > w.now {
			due = clock.Earliest(due, w.waiting.end) // a call may wait for a time
		}
		if due == clock.Never || due > t {
			break
		}
		if w.steps++; w.steps > maxSteps {
			return w.fail("more than %d timer events", maxSteps)
		}
		w.now = max(w.now, due)
		w.host.Advance(w.now)
	}
	w.now = max(w.now, t)
	return nil
}

// pump takes the segments that the host sends, and checks whether a call can return.
func (w *world) pump() error {
	var t tcp.Train
	for w.host.Output(w.now, []int{maxQueued}, &t) {
		w.collect(&t)
		if len(w.out) > maxQueued {
			return w.fail("the host does not stop sending: %v", w.out[0].describe())
		}
	}
	for {
		if _, _, _, ok := w.host.NextEvent(); !ok {
			break
		}
	}
	return w.poke()
}

// collect splits a train into segments, as the driver does.
func (w *world) collect(t *tcp.Train) {
	p := w.peer(t.Tuple)
	if t.Flags.Has(tcp.SYN) {
		p.iss = t.Seq
	}
	if t.Options.HasTimestamps && p.live == 0 {
		p.live = t.Options.TSVal
	}
	var text []byte
	for _, b := range t.Payload {
		text = append(text, b...)
	}
	n := t.Segments()
	for i := range n {
		s := sent{at: w.now, peer: p, header: t.Header, ecn: trainECN(t)}
		s.header.Seq += uint32(i * t.MSS)
		part := text
		if i < n-1 {
			part = text[:t.MSS]
			s.header.Flags &^= tcp.PSH | tcp.FIN
		}
		if i > 0 {
			s.header.Flags &^= tcp.CWR
		}
		text = text[len(part):]
		s.length = len(part)
		s.foreign = mismatch(part, s.header.Seq-p.iss-1)
		w.out = append(w.out, s)
	}
}

// peer returns the script's view of a connection. It adds one if necessary.
func (w *world) peer(t tcp.Tuple) *peer {
	p := w.peers[t]
	if p == nil {
		p = &peer{tuple: t, stamps: map[uint32]uint32{}}
		w.peers[t] = p
	}
	if w.current == nil {
		w.current = p
	}
	return p
}

// peerOf returns the connection of a segment: the connection with its ports, or
// else the current one, or else the connection of a peer that connects.
func (w *world) peerOf(s *segment) *peer {
	local, remote := s.ports[1], s.ports[0]
	if s.outbound {
		local, remote = remote, local
	}
	if local == 0 {
		if w.current != nil {
			return w.current
		}
		local, remote = w.set.bind, peerPort
	}
	w.current = nil
	w.current = w.peer(tcp.Tuple{
		LocalAddr: w.set.local, RemoteAddr: w.set.remote,
		LocalPort: local, RemotePort: remote,
	})
	return w.current
}

// fill writes the pattern of a stream from an offset on.
func fill(b []byte, offset uint32) {
	for i := range b {
		b[i] = pattern(offset + uint32(i))
	}
}

func pattern(offset uint32) byte { return byte(offset) ^ byte(offset>>8)*31 ^ byte(offset>>16)*17 }

// mismatch returns the first index at which b differs from the pattern, or -1.
func mismatch(b []byte, offset uint32) int {
	for i, v := range b {
		if v != pattern(offset+uint32(i)) {
			return i
		}
	}
	return -1
}
