package stack_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// stream sends size bytes from one stack to another and checks them.
type stream struct {
	w              *world
	client, server *tcp.Conn
	sent, got      int
	size           int
	buf, want      []byte
}

func newStream(w *world, from, to *stack.Stack, at netip.AddrPort, size int) *stream {
	w.t.Helper()
	l, err := to.TCP().Listen(at, 8)
	require.NoError(w.t, err)
	c, err := from.TCP().Connect(w.now, at, 0)
	require.NoError(w.t, err)
	s := &stream{w: w, client: c, size: size, buf: make([]byte, 30_000)}
	s.want = make([]byte, len(s.buf))
	until := w.now.Add(time.Minute)
	for s.server == nil {
		require.True(w.t, w.step(until))
		s.server, _ = l.Accept()
	}
	return s
}

// fill writes the bytes at offset at, which are the same in every test stream.
func fill(p []byte, at int) {
	for i := range p {
		k := at + i
		p[i] = byte(k*131 + k>>8*7 + k>>16*3)
	}
}

// pump moves data into and out of the ring buffers and reports whether all of it has arrived.
func (s *stream) pump() bool {
	for n := min(len(s.buf), s.size-s.sent); n > 0; n = min(len(s.buf), s.size-s.sent) {
		fill(s.buf[:n], s.sent)
		n = s.client.Tx().Write(s.buf[:n])
		if n == 0 {
			break
		}
		s.sent += n
		s.client.Wrote(s.w.now)
	}
	for n := s.server.Rx().Read(s.buf); n > 0; n = s.server.Rx().Read(s.buf) {
		fill(s.want[:n], s.got)
		require.True(s.w.t, bytes.Equal(s.want[:n], s.buf[:n]), "at byte %d", s.got)
		s.got += n
		s.server.Consumed(s.w.now)
	}
	return s.got == s.size
}

func (s *stream) run(limit time.Duration) {
	s.w.t.Helper()
	until := s.w.now.Add(limit)
	for !s.pump() {
		if !s.w.step(until) {
			require.Fail(s.w.t, "too slow", "%d of %d bytes, %+v", s.got, s.size, s.client.Info())
		}
	}
}

func TestStreamsCrossALossyRouter(t *testing.T) {
	for _, percent := range []float64{0, 2, 10, 30} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			w, a, b, c := line(t)
			b.SetLoss(0, percent/100)
			b.SetLoss(1, percent/100)
			s := newStream(w, c, a, netip.MustParseAddrPort("10.0.0.1:80"), 2<<20)
			s.run(10 * time.Minute)
			retransmits := s.client.Info().TotalRetrans
			if percent == 0 {
				assert.Zero(t, retransmits)
			} else {
				assert.NotZero(t, retransmits)
			}
		})
	}
}

// Changes of forwarding and loss do not affect the host's own connections. Their paths stay, and no
// connection is scheduled for output.
func TestLossSettingWakesNoConnection(t *testing.T) {
	w, a, _, c := line(t)
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	s.run(time.Minute)
	for w.step(w.now.Add(time.Second)) {
		// Deliver the last acknowledgments.
	}
	require.False(t, a.Pending())
	a.SetLoss(0, 0.1)
	a.Routing().SetForwarding(true)
	require.NoError(t, a.SetKnobs(a.Knobs()))
	assert.False(t, a.Pending())
	a.SetUp(w.now, 0, false)
	a.SetUp(w.now, 0, true)
	assert.True(t, a.Pending(), "the path may have changed")
}

func TestLinkBackpressureIsNotLoss(t *testing.T) {
	w, a, _, c := line(t)
	w.room = 3
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	s.run(time.Minute)
	assert.Zero(t, s.client.Info().TotalRetrans, "backpressure is not loss")
}

// If one call of Output uses up a link's room, the link may have room again at the next call. So
// Output asks its caller to call again. Otherwise the remaining data would wait without a timer.
func TestOutputIsRepeatedOnAFullLink(t *testing.T) {
	w, a, _, c := line(t)
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	w.room, w.loss = 2, 1
	s.pump()
	w.drain(0)
	i := s.client.Info()
	assert.Equal(t, i.SndCwnd/i.SndMSS, i.Unacked, "the window is full")
	assert.NotEqual(t, clock.Never, a.Deadline())
	assert.LessOrEqual(t, a.Deadline(), w.now.Add(i.RTO))
}

func TestConnectionToTheNodeItself(t *testing.T) {
	w, a, _, _ := line(t)
	s := newStream(w, a, a, netip.MustParseAddrPort("10.0.0.1:80"), 20<<20)
	s.run(time.Minute)
	assert.Empty(t, dropsOf(a.Interfaces().Infos()[0].Out), "the connection waits for room")
	assert.Zero(t, s.client.Info().TotalRetrans)
}

func TestRFC1191_3_ANarrowLinkInTheMiddle(t *testing.T) {
	w := newWorld(t)
	narrow := face("if1", "10.1.0.1/24")
	narrow.MTU = 576
	a := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")}, TCP: courseTCP,
		Routes: []stack.Route{route("0.0.0.0/0", "10.0.0.2")},
	})
	b := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), narrow}, Forwarding: true,
	})
	c := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.1.0.2/24")}, TCP: courseTCP,
		Routes: []stack.Route{route("0.0.0.0/0", "10.1.0.1")},
	})
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	s.run(5 * time.Second)
	i := s.client.Info()
	assert.Equal(t, 576-40-12, i.SndMSS, "minus 12 for the timestamps")
	assert.Equal(t, 576, i.PMTU)
	assert.Less(t, dropsOf(b.Interfaces().Infos()[1].Out)[ip.DropTooBig.String()], uint64(20))
}

func TestTrainIsAcknowledgedOnce(t *testing.T) {
	w, a, _, c := line(t)
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 40_000)
	s.run(time.Second)
	i := s.server.Info()
	assert.Equal(t, uint64(40_000), i.BytesReceived)
	out := s.server.Info().SegsOut
	assert.Less(t, out, uint64(15), "a train is acknowledged once, not segment by segment")
}

// ring is four routers in a circle with a host at R1 and one at R3.
func ring(t *testing.T) (w *world, h1, h2 *stack.Stack, routers []*stack.Stack) {
	t.Helper()
	w = newWorld(t)
	for i := range 4 {
		next, prev := i, (i+3)%4
		faces := []stack.Interface{
			face("if0", fmt.Sprintf("10.0.%d.1/24", next)), face("if1", fmt.Sprintf("10.0.%d.2/24", prev)),
		}
		neighbors := []rip.Neighbor{
			{Addr: addr(fmt.Sprintf("10.0.%d.2", next)), Iface: 0},
			{Addr: addr(fmt.Sprintf("10.0.%d.1", prev)), Iface: 1},
		}
		if i == 0 || i == 2 {
			faces = append(faces, face("if2", fmt.Sprintf("10.9.%d.1/24", i)))
		}
		routers = append(routers, w.add(stack.Config{
			Interfaces: faces, Forwarding: true, RIP: &rip.Config{Neighbors: neighbors},
		}))
	}
	for i := range 4 {
		w.wire(end{i, 0}, end{(i + 1) % 4, 1})
	}
	host := func(i int) *stack.Stack {
		return w.add(stack.Config{
			Interfaces: []stack.Interface{face("if0", fmt.Sprintf("10.9.%d.2/24", i))},
			Routes:     []stack.Route{route("0.0.0.0/0", fmt.Sprintf("10.9.%d.1", i))},
		})
	}
	h1, h2 = host(0), host(2)
	w.wire(end{0, 2}, end{4, 0})
	w.wire(end{2, 2}, end{5, 0})
	return w, h1, h2, routers
}

func TestRIPReroutesDuringATransfer(t *testing.T) {
	w, h1, h2, routers := ring(t)
	w.run(time.Second)
	r, ok := routers[0].Routing().Lookup(addr("10.9.2.2"))
	require.True(t, ok)
	assert.Equal(t, ip.RIP, r.Origin)
	assert.Equal(t, 2, r.Cost)
	s := newStream(w, h1, h2, netip.MustParseAddrPort("10.9.2.2:80"), 8<<20)
	for s.got < 1<<20 {
		s.pump()
		require.True(t, w.step(w.now.Add(time.Minute)))
	}
	cut := r.Iface
	routers[0].SetUp(w.now, cut, false)
	was := w.now
	s.run(time.Minute)
	after, ok := routers[0].Routing().Lookup(addr("10.9.2.2"))
	require.True(t, ok)
	assert.NotEqual(t, cut, after.Iface, "the route uses the other side of the ring")
	assert.Less(t, w.now.Sub(was), 2*time.Second, "withdrawn at once on both sides of the cut")
	routers[0].SetUp(w.now, cut, true)
	w.run(15 * time.Second)
	again, ok := routers[0].Routing().Lookup(addr("10.9.2.2"))
	require.True(t, ok)
	assert.Equal(t, 2, again.Cost)
}

func TestUnreachablePeersTimeOut(t *testing.T) {
	w := newWorld(t)
	a := w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24")},
		TCP:        tcp.Config{Knobs: tcp.Knobs{Recovery: tcp.Recovery{RTOInitial: 10 * time.Millisecond, RTOMax: time.Second}}},
	})
	c, err := a.TCP().Connect(w.now, netip.MustParseAddrPort("10.0.0.2:80"), 0)
	require.NoError(t, err)
	w.run(time.Minute)
	assert.Equal(t, tcp.StateClosed, c.State())
	require.ErrorIs(t, c.Err(), tcp.ErrTimeout)
}

func TestRandomPacketsNeverPanic(t *testing.T) {
	w, a, b, c := line(t)
	s := newStream(w, c, a, netip.MustParseAddrPort("10.0.0.1:80"), 100_000)
	s.run(time.Second)
	tuple := s.client.Tuple()
	rng := rand.New(rand.NewPCG(11, 12))
	protocols := []uint8{ip.ProtoTCP, ip.ProtoTCP, ip.ProtoTCP, ip.ProtoICMP, ip.ProtoRIP, 0, 17, 99}
	for range 50_000 {
		body := make([]byte, rng.IntN(80))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		h := ip.Header{
			TTL: uint8(rng.IntN(4)), Protocol: protocols[rng.IntN(len(protocols))],
			Src: tuple.LocalAddr, Dst: tuple.RemoteAddr, TotalLen: 20 + len(body),
			MF: rng.IntN(20) == 0, FragOff: rng.IntN(20) / 19 * 8,
		}
		packet := append(h.Append(nil), body...)
		if h.Protocol == ip.ProtoTCP && len(body) >= 20 {
			addressToConnection(rng, packet, &tuple)
		}
		target := []*stack.Stack{a, b, c}[rng.IntN(3)]
		input(target, w.now, frame(packet))
		w.step(w.now.Add(time.Microsecond))
	}
}

// RFC 3168 §5: the codepoint is in the IP header. A router's mark reaches TCP, and trains neither
// lose nor duplicate marks.
func TestRFC3168_5_ECNMarksReachTCP(t *testing.T) {
	w, a, _, c := line(t)
	k := a.TCP().Knobs()
	k.ECN = tcp.ECNOn
	require.NoError(t, a.TCP().SetKnobs(k))
	capable, marked := 0, uint64(0)
	w.mangle = func(p []byte) {
		if p[1]&3 != byte(tcp.ECT0) {
			return
		}
		if capable++; capable%100 == 0 {
			h, payload, reason := ip.ParseHeader(p)
			require.Equal(t, ip.DropNone, reason)
			h.TOS |= byte(tcp.CE)
			copy(p, append(h.Append(nil), payload...))
			marked++
		}
	}
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	s.run(5 * time.Second)
	require.NotZero(t, marked)
	// Each packet crosses two links and may be marked on either.
	assert.Greater(t, capable, 2*(1<<20)/1400)
	i := s.server.Info()
	assert.True(t, i.ECN)
	assert.InDelta(t, marked, i.ECNMarks, float64(marked)/10)
	assert.NotZero(t, s.client.Info().ECNEchoes)
	assert.Zero(t, s.client.Info().TotalRetrans)
}
