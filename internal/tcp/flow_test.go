package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRFC9293_3_8_6_1_ZeroWindowProbes(t *testing.T) {
	s := opened(t, Config{})
	s.write(5000)
	s.collect()
	s.out = nil
	t.Log("# the peer accepts all data and closes its window")
	s.sendWindow(ACK, 1, 5001, 0, 0)
	s.write(3000)
	s.quiet()
	assert.Equal(t, LimitPersist.String(), s.c.Info().Limited)
	start := s.now
	var at []time.Duration
	for len(at) < 6 {
		s.wait(s.h.Deadline().Sub(s.now))
		s.collect()
		for _, g := range s.out {
			assert.Equal(t, "ACK 5001:5002(1) ack 1", g.String(), "one byte at a time")
			at = append(at, s.now.Sub(start))
			s.sendWindow(ACK, 1, 5001, 0, 0) // the window is still closed
		}
		s.out = nil
	}
	for i := 2; i < len(at); i++ {
		assert.InDelta(t, 2, float64(at[i]-at[i-1])/float64(at[i-1]-at[i-2]), 0.01, "the interval doubles")
	}
	assert.Equal(t, uint64(6), s.c.Info().WindowProbes)
	assert.Zero(t, s.c.Info().TotalRTO)
	cwnd := s.c.Info().SndCwnd
	t.Log("# the window opens: the probe's byte leaves first, without a congestion response")
	s.send(ACK, 1, 5001, 0)
	s.expect(ACK, 5001, 1, 1)
	s.expect(ACK, 5002, 1, 1000)
	s.expect(ACK, 6002, 1, 1000)
	s.expect(PSH|ACK, 7002, 1, 999)
	assert.Equal(t, cwnd, s.c.Info().SndCwnd)
	s.send(ACK, 1, 8001, 0)
	assert.Zero(t, s.c.Info().Unacked)
}

func TestZeroWindowProbeIsAccepted(t *testing.T) {
	s := opened(t, Config{})
	s.sendWindow(ACK, 1, 1, 0, 0)
	s.write(3)
	for i := range uint32(3) {
		s.wait(2 * time.Second)
		s.collect()
		require.NotEmpty(t, s.out)
		assert.Equal(t, 1, s.out[0].n)
		s.out = nil
		s.sendWindow(ACK, 1, 2+i, 0, 0) // the peer accepted the byte, and its window is full again
	}
	assert.Zero(t, s.c.Tx().Len(), "byte by byte, everything arrived")
}

func TestZeroWindowSilentPeer(t *testing.T) {
	s := opened(t, Config{Retries: Retries{Data: 5}})
	s.sendWindow(ACK, 1, 1, 0, 0)
	s.write(3)
	s.wait(30 * time.Minute)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
}

func TestZeroWindowAnswersKeepItAlive(t *testing.T) {
	s := opened(t, Config{Retries: Retries{Data: 5}})
	s.sendWindow(ACK, 1, 1, 0, 0)
	s.write(3)
	for range 50 {
		s.wait(s.h.Deadline().Sub(s.now))
		s.sendWindow(ACK, 1, 1, 0, 0)
	}
	assert.Equal(t, StateEstablished, s.c.State())
}

func TestZeroWindowFIN(t *testing.T) {
	s := opened(t, Config{})
	s.sendWindow(ACK, 1, 1, 0, 0)
	_ = s.c.CloseWrite(s.now)
	s.quiet()
	s.wait(time.Second)
	s.expect(FIN|ACK, 1, 1, 0)
	s.sendWindow(ACK, 1, 2, 0, 0)
	assert.Equal(t, StateFinWait2, s.c.State())
}

func TestZeroWindowAcceptsFIN(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 1000}})
	s.send(ACK, 1, 1, 1000)
	s.expect(ACK, 1, 1001, 0)
	s.send(ACK, 1001, 1, 1) // a probe
	a := s.expect(ACK, 1, 1001, 0)
	assert.Zero(t, a.window)
	s.send(FIN|ACK, 1001, 1, 0)
	s.expect(ACK, 1, 1002, 0)
	assert.Equal(t, StateCloseWait, s.c.State(), "a FIN needs no buffer")
}

func TestZeroWindowAcceptsACKs(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 1000}})
	s.write(100)
	s.collect()
	s.out = nil
	s.send(ACK, 1, 1, 1000)
	s.expect(ACK, 101, 1001, 0)
	s.send(ACK, 1001, 101, 1)
	assert.Zero(t, s.c.Tx().Len(), "the acknowledgment on a probe counts")
	s.expect(ACK, 101, 1001, 0)
	assert.Equal(t, 1000, s.c.Rx().Len(), "the probe's data is not accepted")
}

func TestRFC9293_3_8_6_2_2_WindowUpdates(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 8000}})
	for i := range uint32(8) {
		s.send(ACK, 1+i*1000, 1, 1000)
		s.wait(50 * time.Millisecond)
		a := s.expect(ACK, 1, 1001+i*1000, 0)
		assert.Equal(t, 7000-1000*int(i), a.window, "the window's edge does not move back")
	}
	t.Log("# closed: reading less than a segment does not open the window")
	s.read(900)
	s.quiet()
	s.read(100)
	a := s.expect(ACK, 1, 8001, 0)
	assert.Equal(t, 1000, a.window, "reading a segment opens the window at once")
	s.read(500)
	s.quiet()
	s.read(500)
	a = s.expect(ACK, 1, 8001, 0)
	assert.Equal(t, 2000, a.window)
	s.read(1900)
	s.quiet()
	s.read(8000)
	a = s.expect(ACK, 1, 8001, 0)
	assert.Equal(t, 8000, a.window)
}

func TestWindowNeverShrinks(t *testing.T) {
	for _, size := range []int{100, 4000, 65535, 100000, 1 << 20} {
		s := opened(t, Config{Buffers: Buffers{Recv: size}})
		edge := uint64(0)
		seq := uint32(1)
		scale := s.c.rcv.scale
		for range 300 {
			n := min(1+int(seq)%997, int(s.c.rcv.edge-s.c.rcv.nxt))
			if n > 0 {
				s.send(ACK, seq, 1, n)
				seq += uint32(n)
			}
			s.wait(50 * time.Millisecond)
			s.collect()
			for _, g := range s.out {
				now := uint64(g.ack) + uint64(g.window)<<scale
				require.Greater(t, now+1<<scale, edge, "except for the rounding of RFC 7323 §2.4")
				edge = now
				require.LessOrEqual(t, g.window<<scale, s.c.Rx().Free(), "the window is the free buffer space")
			}
			s.out = nil
			if seq%3 == 0 {
				s.read(int(seq) % 3000)
			}
		}
	}
}

func TestRFC9293_3_8_6_2_1_SenderSillyWindow(t *testing.T) {
	s := opened(t, Config{})
	s.sendWindow(ACK, 1, 1, 0, 4000)
	s.write(10000)
	for i := range uint32(4) {
		s.expect(ACK, 1+1000*i, 1, 1000)
	}
	s.quiet()
	s.sendWindow(ACK, 1, 4001, 0, 300)
	s.quiet() // the window is less than an MSS and than half the largest window
	s.sendWindow(ACK, 1, 4001, 0, 1300)
	s.expect(ACK, 4001, 1, 1000)
	s.sendWindow(ACK, 1, 5001, 0, 500)
	s.quiet()
	s.wait(3 * time.Second) // §3.8.6.2.1: the override timeout
	s.expect(ACK, 5001, 1, 500)
}

func TestSmallWindowIsUsed(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	s.sendWindow(SYN, 0, 0, 0, 600)
	s.expect(SYN|ACK, 0, 1, 0)
	s.sendWindow(ACK, 1, 1, 0, 600)
	s.c, _ = s.l.Accept()
	s.write(2000)
	s.expect(ACK, 1, 1, 600) // the segment fills the peer's buffer, so the sender sends it
	s.sendWindow(ACK, 1, 601, 0, 600)
	s.expect(ACK, 601, 1, 600)
}

func TestRFC9293_3_7_4_Nagle(t *testing.T) {
	s := opened(t, Config{})
	s.write(100)
	s.expect(PSH|ACK, 1, 1, 100)
	s.write(100)
	s.quiet() // a short segment waits until the first short one is acknowledged
	assert.Equal(t, LimitNagle.String(), s.c.Info().Limited)
	s.write(2000)
	s.expect(ACK, 101, 1, 1000) // full segments do not wait
	s.expect(ACK, 1101, 1, 1000)
	s.quiet()
	s.send(ACK, 1, 2101, 0)
	s.expect(PSH|ACK, 2101, 1, 100)
	s.set(func(o *Sockopts) { o.NoDelay = true })
	for i := range uint32(5) {
		s.write(10)
		s.expect(PSH|ACK, 2201+10*i, 1, 10)
	}
	s.set(func(o *Sockopts) { o.NoDelay = false })
	s.write(10)
	s.quiet()
	_ = s.c.CloseWrite(s.now) // the tail and the FIN leave, because no more data follows
	s.expect(FIN|PSH|ACK, 2251, 1, 10)
}

func TestRFC9293_3_8_6_3_DelayedAck(t *testing.T) {
	s := opened(t, Config{})
	seq := uint32(1)
	for range initialQuickAcks { // use up the quick acknowledgments
		s.send(ACK, seq, 1, 1000)
		seq += 1000
		s.expect(ACK, 1, seq, 0)
	}
	s.send(ACK, seq, 1, 1000)
	s.quiet()
	s.send(ACK, seq+1000, 1, 1000)
	s.expect(ACK, 1, seq+2000, 0) // the receiver acknowledges every second full segment at once
	seq += 2000
	s.send(ACK, seq, 1, 1000)
	s.quiet()
	s.wait(39 * time.Millisecond)
	s.quiet()
	s.wait(2 * time.Millisecond)
	seq += 1000
	s.expect(ACK, 1, seq, 0) // otherwise the timer expires first
	s.send(ACK|PSH, seq, 1, 10)
	seq += 10
	s.expect(ACK, 1, seq, 0) // or the peer's data ends
	s.read(1 << 20)
	t.Log("# an answer carries the acknowledgment, and the next acknowledgment waits for one")
	s.send(ACK, seq, 1, 10)
	seq += 10
	s.write(10)
	s.expect(PSH|ACK, 1, seq, 10)
	s.send(ACK|PSH, seq, 11, 10)
	s.quiet()
	s.wait(41 * time.Millisecond)
	s.expect(ACK, 11, seq+10, 0)
}

func TestTrainIsAcknowledgedAtOnce(t *testing.T) {
	s := opened(t, Config{})
	s.c.rcv.ack.quick = 0
	g := Segment{
		Tuple: s.tuple, Header: Header{Seq: s.peer + 1, Ack: s.iss + 1, Flags: ACK, Window: 65535},
		Len: 3000, Count: 3, Payload: [][]byte{pattern[:1000], pattern[1000:2000], pattern[2000:3000]},
	}
	s.h.Input(s.now, &g)
	s.expect(ACK, 1, 3001, 0)
	assert.Equal(t, 3000, s.read(5000))
	assert.Equal(t, 1000, s.c.Info().RcvMSS)
	assert.Equal(t, uint64(3), s.c.Info().SegsIn-1)
}

func TestTrainLimits(t *testing.T) {
	s := opened(t, Config{Knobs: Knobs{Recovery: Recovery{InitialWindow: 100}}, Buffers: Buffers{Send: 1 << 20}})
	s.write(100000)
	require.True(t, s.h.Output(s.now, []int{1000}, &s.train))
	assert.Equal(t, 44, s.train.Segments())
	assert.Zero(t, s.train.Flags&PSH)
	require.True(t, s.h.Output(s.now, []int{5}, &s.train))
	assert.Equal(t, 5, s.train.Segments(), "no more than the link has room for")
	require.False(t, s.h.Output(s.now, []int{0}, &s.train), "nothing leaves into a full link")
	require.True(t, s.h.Output(s.now, []int{7}, &s.train), "the rest of the data is still queued")
	assert.Equal(t, 7, s.train.Segments())

	s = newScript(t, Config{Knobs: Knobs{Recovery: Recovery{InitialWindow: 100}}})
	s.path.MTU = 9000
	s.accept(Options{MSS: 8960})
	s.write(1 << 17)
	require.True(t, s.h.Output(s.now, []int{1000}, &s.train))
	assert.LessOrEqual(t, s.train.Len+s.train.Segments()*40, 64000)
}

func TestConnectionsTakeTurns(t *testing.T) {
	s := newScript(t, Config{Knobs: Knobs{Recovery: Recovery{InitialWindow: 100}}})
	var conns []*Conn
	for p := range uint16(3) {
		s.tuple.RemotePort = 100 + p
		if s.l != nil {
			s.l.Close(s.now)
		}
		s.accept(fullOptions)
		conns = append(conns, s.c)
	}
	for _, c := range conns {
		c.Tx().Write(make([]byte, 90000))
		c.Wrote(s.now)
	}
	var order []uint16
	for range 6 {
		require.True(t, s.h.Output(s.now, []int{10}, &s.train))
		order = append(order, s.train.RemotePort)
	}
	assert.Equal(t, []uint16{100, 101, 102, 100, 101, 102}, order, "one train per connection in turn")
}

func TestReroute(t *testing.T) {
	s := opened(t, Config{Retries: Retries{Data: 3}})
	s.write(5000)
	s.expect(ACK, 1, 1, 1000)
	s.out = nil
	t.Log("# a smaller MTU: retransmissions fit it")
	s.path.MTU = 540
	s.h.Rerouted()
	s.wait(300 * time.Millisecond)
	s.collect()
	require.NotEmpty(t, s.out)
	n := 0
	for _, g := range s.out {
		assert.LessOrEqual(t, g.n, 500)
		n += g.n
	}
	s.out = nil
	s.send(ACK, 1, 5001, 0)
	s.quiet()
	assert.Zero(t, s.c.Tx().Len())
	t.Log("# no route: the connection fails with an error")
	s.path.Outlet = -1
	s.h.Rerouted()
	s.write(100)
	s.quiet()
	s.wait(time.Hour)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	require.ErrorIs(t, s.c.Err(), ErrUnreachable)
}

func TestReroutedToAnotherOutlet(t *testing.T) {
	s := opened(t, Config{})
	s.write(100)
	s.path.Outlet = 2
	s.h.Rerouted()
	require.False(t, s.h.Output(s.now, []int{9, 9}, &s.train))
	require.True(t, s.h.Output(s.now, []int{9, 9, 9}, &s.train))
	assert.Equal(t, 2, s.train.Outlet)
}

func TestOutOfOrderIsBounded(t *testing.T) {
	s := opened(t, Config{Limits: Limits{MaxReceiveRanges: 4}})
	for i := range uint32(10) {
		s.send(ACK, 100+i*100, 1, 50)
	}
	assert.Equal(t, 4, s.c.Info().OutOfOrder)
	assert.Equal(t, uint64(6), s.h.Drops()[DropRanges])
	s.send(ACK, 1, 1, 1200)
	assert.Equal(t, 1200, s.read(5000))
	assert.Zero(t, s.c.Info().OutOfOrder)
}

func TestDataBeyondTheWindow(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 1000}})
	s.send(FIN|ACK, 1, 1, 1300)
	s.expect(ACK, 1, 1001, 0)
	assert.Equal(t, StateEstablished, s.c.State(), "the FIN was beyond the window too")
	assert.Equal(t, uint64(1), s.h.Drops()[DropWindow])
	s.read(1000)
	s.collect()
	s.out = nil
	s.send(ACK, 5000, 1, 10) // all data is beyond the window
	s.expect(ACK, 1, 1001, 0)
	assert.Equal(t, uint64(1), s.h.Drops()[DropSequence])
}

func TestContradictoryRetransmissions(t *testing.T) {
	s := opened(t, Config{})
	send := func(seq uint32, text string) {
		s.h.Input(s.now, &Segment{
			Tuple: s.tuple, Header: Header{Seq: s.peer + seq, Ack: s.iss + 1, Flags: ACK, Window: 65535},
			Len: len(text), Payload: [][]byte{[]byte(text)},
		})
	}
	send(1, "abc")
	send(1, "XYZdef") // delivered data does not change
	send(9, "ij")
	send(7, "ghi")
	b := make([]byte, 20)
	n := s.c.Rx().Read(b)
	assert.Equal(t, "abcdefghij", string(b[:n]))
	t.Log("# FINs at two places: the first counts")
	s.send(FIN|ACK, 20, 1, 0)
	s.send(FIN|ACK, 15, 1, 0)
	send(11, "klmnopqrstuvwxyz")
	n = s.c.Rx().Read(b)
	assert.Equal(t, "klmnopqrs", string(b[:n]))
	assert.True(t, s.c.ReadDone())
}

func TestConsumerEvents(t *testing.T) {
	s := opened(t, Config{})
	drain := func() (e Event) {
		for {
			_, _, more, ok := s.h.NextEvent()
			if !ok {
				return e
			}
			e |= more
		}
	}
	drain()
	s.send(ACK, 1, 1, 10)
	assert.Equal(t, Readable, drain())
	s.write(10)
	s.collect()
	assert.Zero(t, drain())
	s.send(ACK, 11, 11, 0)
	assert.Equal(t, Writable, drain())
	s.send(FIN|ACK, 11, 11, 0)
	assert.Equal(t, Readable, drain())
	s.send(RST, 12, 0, 0)
	assert.Equal(t, Readable|Writable|Closed, drain())
}

func TestProbesStayWithinTheBuffer(t *testing.T) {
	s := newScript(t, Config{Buffers: Buffers{Recv: 1 << 20}})
	s.accept(fullOptions)
	require.NotZero(t, s.c.rcv.scale, "a scaled window is rounded")
	next := func() uint32 { return uint32(s.c.rcv.nxt - s.c.rcv.irs) }
	for s.c.rcv.rx.Free() > 2000 {
		s.send(ACK, next(), 1, 1000)
		s.wait(50 * time.Millisecond) // until a delayed acknowledgment updates the window
	}
	s.send(ACK, next(), 1, int(s.c.rcv.edge-s.c.rcv.nxt))
	for range 100 { // each segment begins a little after the last one
		s.send(ACK, next(), 1, 1)
	}
	assert.Equal(t, s.c.rcv.rx.Limit(), s.c.rcv.rx.Len())
}

// On a link with the largest MTU a segment is longer than the longest train of several segments.
// The host still sends full segments.
func TestSegmentsLongerThanATrain(t *testing.T) {
	s := newScript(t, Config{})
	s.path.MTU = 65535
	s.accept(Options{MSS: 65495, SACKPermitted: true, HasWindowScale: true, WindowScale: 2})
	s.write(150_000)
	s.expect(ACK, 1, 1, 65495)
	s.expect(ACK, 65496, 1, 65495)
	s.expect(PSH|ACK, 130_991, 1, 150_000-2*65495)
	s.quiet()
}
