package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// world joins stacks by links in virtual time.
type world struct {
	t        *testing.T
	now      clock.Time
	stacks   []*stack.Stack
	batch    *buffer.Batch
	inFlight []flight // packets on the links, in order of arrival
	delay    time.Duration
	loss     float64
	rng      *rand.Rand
	room     int // number of packets that every link accepts at one time
	wires    map[end]end
	mangle   func(packet []byte) // changes a packet on a link
	hub      bool                // all nodes share one link
	bus      []end               // ends of a link that delivers each packet to all others
}

// end is one end of a link.
type end struct{ stack, iface int }

type flight struct {
	at clock.Time
	to end
	f  buffer.Frame
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{
		t: t, now: 1, batch: buffer.NewBatch(), delay: 100 * time.Microsecond,
		rng: rand.New(rand.NewPCG(7, 7)), room: 1000, wires: map[end]end{},
	}
}

func (w *world) add(cfg stack.Config) *stack.Stack {
	w.t.Helper()
	s, err := stack.New(w.now, cfg)
	require.NoError(w.t, err)
	w.stacks = append(w.stacks, s)
	return s
}

func (w *world) wire(a, b end) { w.wires[a], w.wires[b] = b, a }

// drain puts the packets that stack i sends on the links.
func (w *world) drain(i int) {
	room := make([]int, 8)
	for more := true; more; {
		for j := range room {
			room[j] = w.room
		}
		more = w.stacks[i].Output(w.now, room, w.batch)
		for _, tr := range w.batch.Trains() {
			w.transmit(i, &tr)
		}
		w.batch.Reset()
	}
}

func (w *world) transmit(i int, tr *buffer.Train) {
	to, ok := w.wires[end{i, tr.Iface}]
	if slices.Contains(w.bus, end{i, tr.Iface}) {
		for k := range tr.Count {
			for _, e := range w.bus {
				if e.stack != i {
					w.carry(e, slices.Concat(tr.Packet(k)...), tr.Size)
				}
			}
		}
		return
	}
	if w.hub {
		to, ok = w.holder(tr.NextHop)
	}
	if !ok {
		return
	}
	var data []byte
	for k := range tr.Count {
		if w.rng.Float64() < w.loss {
			if len(data) > 0 {
				w.carry(to, data, tr.Size)
				data = nil
			}
			continue
		}
		p := slices.Concat(tr.Packet(k)...)
		if w.mangle != nil {
			w.mangle(p)
		}
		data = append(data, p...)
	}
	if len(data) > 0 {
		w.carry(to, data, tr.Size)
	}
}

// holder finds the end that has an address.
func (w *world) holder(a netip.Addr) (end, bool) {
	for k, s := range w.stacks {
		if i, ok := s.Interfaces().Owns(a); ok {
			return end{k, i}, true
		}
	}
	return end{}, false
}

func (w *world) carry(to end, data []byte, size int) {
	w.inFlight = append(w.inFlight, flight{
		at: w.now.Add(w.delay), to: to, f: buffer.Frame{Data: data, Size: size, Iface: to.iface},
	})
}

// step runs the next event. It returns false if no event is due by the given time.
func (w *world) step(until clock.Time) bool {
	for i := range w.stacks {
		w.drain(i)
	}
	next := clock.Never
	for _, s := range w.stacks {
		next = clock.Earliest(next, s.Deadline())
	}
	if len(w.inFlight) > 0 {
		next = clock.Earliest(next, w.inFlight[0].at)
	}
	if next == clock.Never || next > until {
		w.now = until
		return false
	}
	w.now = max(w.now, next)
	for len(w.inFlight) > 0 && w.inFlight[0].at <= w.now {
		f := w.inFlight[0]
		w.inFlight = w.inFlight[1:]
		input(w.stacks[f.to.stack], w.now, f.f)
		w.drain(f.to.stack)
	}
	for i, s := range w.stacks {
		if s.Deadline().Due(w.now) {
			s.Advance(w.now)
			w.drain(i)
		}
	}
	return true
}

// run advances the virtual clock.
func (w *world) run(d time.Duration) {
	until := w.now.Add(d)
	for w.step(until) {
		continue
	}
}

func face(name, prefix string) stack.Interface {
	return stack.Interface{Name: name, Addr: netip.MustParsePrefix(prefix)}
}

func route(prefix, via string) stack.Route {
	return stack.Route{Prefix: netip.MustParsePrefix(prefix), Via: netip.MustParseAddr(via)}
}

// line is A - B - C: two hosts and a router between them.
func line(t *testing.T) (w *world, a, b, c *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	a = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.0.0.2")},
		TCP:        courseTCP,
	})
	b = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), face("if1", "10.1.0.1/24")},
		Forwarding: true,
	})
	c = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.1.0.2/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.1.0.1")},
		TCP:        courseTCP,
	})
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	return w, a, b, c
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func addrPort(a netip.Addr, port int) netip.AddrPort {
	return netip.AddrPortFrom(a, uint16(port))
}

func frame(packet []byte) buffer.Frame {
	return buffer.Frame{Data: packet, Size: len(packet)}
}

// input passes the packets of a frame to a stack, or to the stack of a relay.
func input(
	s interface {
		Input(now clock.Time, iface int, checked bool, packets [][]byte) bool
	},
	now clock.Time, f buffer.Frame,
) {
	s.Input(now, f.Iface, f.Checked, f.Packets(nil))
}

// addressToConnection turns a random segment into one for a known connection with a correct
// checksum.
func addressToConnection(rng *rand.Rand, packet []byte, t *tcp.Tuple) {
	seg := packet[20:]
	if rng.IntN(8) > 0 {
		binary.BigEndian.PutUint16(seg, t.LocalPort)
		binary.BigEndian.PutUint16(seg[2:], t.RemotePort)
	}
	if rng.IntN(8) > 0 {
		seg[12] = byte(5+rng.IntN(3)) << 4
	}
	seg[16], seg[17] = 0, 0
	sum := checksum.PseudoHeader(t.LocalAddr, t.RemoteAddr, ip.ProtoTCP, len(seg))
	binary.BigEndian.PutUint16(seg[16:], ^checksum.Fold(checksum.Sum(seg, sum)))
}

// courseTCP is the TCP configuration of the courses.
var courseTCP = tcp.Config{Knobs: tcp.Knobs{Recovery: tcp.Recovery{RTOMin: time.Millisecond, RTOMax: 5 * time.Second}}}
