package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// TestRFC3168_6_1_1_Negotiation checks which SYN requests ECN, which SYN-ACK accepts it, and which
// answers count.
func TestRFC3168_6_1_1_Negotiation(t *testing.T) {
	passive := []struct {
		mode   ECNMode
		syn    Flags
		answer Flags
	}{
		{ECNPassive, SYN | ECE | CWR, ECE},
		{ECNOn, SYN | ECE | CWR, ECE},
		{ECNOff, SYN | ECE | CWR, 0},
		{ECNOn, SYN, 0},
		{ECNOn, SYN | ECE, 0}, // ECE without CWR is no ECN-setup SYN
		{ECNOn, SYN | CWR, 0},
	}
	for _, c := range passive {
		s := newScript(t, Config{Knobs: Knobs{ECN: c.mode}})
		s.listen(1)
		s.send(c.syn, 0, 0, 0, fullOptions)
		g := s.expect(SYN|ACK|c.answer, 0, 1, 0)
		assert.Equal(t, NotECT, g.ecn, "a SYN-ACK is never ECN-capable")
		s.send(ACK, 1, 1, 0)
		s.c, _ = s.l.Accept()
		assert.Equal(t, c.answer != 0, s.c.Info().ECN)
		s.write(10)
		g = s.expect(PSH|ACK, 1, 1, 10)
		assert.Equal(t, c.answer != 0, g.ecn == ECT0, "%v %v", c.mode, c.syn)
	}
	active := []struct {
		mode   ECNMode
		syn    Flags
		answer Flags
		want   bool
	}{
		{ECNOn, SYN | ECE | CWR, SYN | ACK | ECE, true},
		{ECNOn, SYN | ECE | CWR, SYN | ACK, false},
		{ECNOn, SYN | ECE | CWR, SYN | ACK | ECE | CWR, false}, // a peer that reflects both flags
		{ECNPassive, SYN, SYN | ACK | ECE, false},
		{ECNOff, SYN, SYN | ACK | ECE, false},
	}
	for _, c := range active {
		s := newScript(t, Config{Knobs: Knobs{ECN: c.mode}})
		s.connect()
		assert.Equal(t, NotECT, s.expect(c.syn, 0, 0, 0).ecn, "a SYN is never ECN-capable")
		s.send(c.answer, 0, 1, 0, fullOptions)
		assert.Equal(t, NotECT, s.expect(ACK, 1, 1, 0).ecn, "RFC 3168 §6.1.4: a bare ACK is never ECN-capable")
		assert.Equal(t, c.want, s.c.Info().ECN)
	}
	s := newScript(t, Config{Knobs: Knobs{ECN: ECNOn, OptionsOff: true}})
	s.connect()
	s.expect(SYN, 0, 0, 0) // a SYN without options
}

// RFC 3168 §6.1.1.1: if an ECN-setup SYN gets no answer or a reset, the host retransmits the SYN
// without ECN and then sends no ECN-capable packets.
func TestRFC3168_6_1_1_1_Fallback(t *testing.T) {
	asked := func() *script {
		s := newScript(t, Config{Knobs: Knobs{ECN: ECNOn}})
		s.connect()
		s.expect(SYN|ECE|CWR, 0, 0, 0)
		return s
	}
	t.Run("silence", func(t *testing.T) {
		s := asked()
		s.wait(time.Second)
		s.expect(SYN, 0, 0, 0)
		s.send(SYN|ACK|ECE, 0, 1, 0, fullOptions) // answers the first SYN
		s.expect(ACK, 1, 1, 0)
		s.write(10)
		assert.Equal(t, NotECT, s.expect(PSH|ACK, 1, 1, 10).ecn)
		s.marked(ACK, 1, 11, 10)
		s.expect(ACK|ECE, 11, 11, 0) // the peer's data may be marked
	})
	t.Run("reset", func(t *testing.T) {
		s := asked()
		s.send(RST|ACK, 0, 1, 0)
		s.expect(SYN, 0, 0, 0)
		s.send(RST|ACK, 0, 1, 0)
		require.ErrorIs(t, s.c.Err(), ErrRefused)
	})
	t.Run("a retransmitted SYN without ECN", func(t *testing.T) {
		s := newScript(t, Config{})
		s.listen(1)
		s.send(SYN|ECE|CWR, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK|ECE, 0, 1, 0)
		s.send(SYN, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK, 0, 1, 0)
	})
}

// withECN establishes a connection that uses ECN.
func withECN(t *testing.T, cfg Config) *script {
	t.Helper()
	s := newScript(t, cfg)
	s.listen(1)
	s.send(SYN|ECE|CWR, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK|ECE, 0, 1, 0)
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK, 1, 1, 0)
	s.c, _ = s.l.Accept()
	require.NotNil(t, s.c)
	return s
}

// RFC 3168 §6.1.3: the receiver echoes a mark until it gets a CWR.
func TestRFC3168_6_1_3_Receiver(t *testing.T) {
	s := withECN(t, Config{})
	s.send(ACK, 1, 1, 100)
	s.expect(ACK, 1, 101, 0)
	s.marked(ACK, 101, 1, 100)
	s.expect(ACK|ECE, 1, 201, 0)
	s.send(ACK, 201, 1, 100)
	s.expect(ACK|ECE, 1, 301, 0)
	s.write(10)
	s.expect(PSH|ACK|ECE, 1, 301, 10) // data segments echo the mark too
	s.marked(ACK|CWR, 301, 11, 100)
	s.expect(ACK|ECE, 11, 401, 0) // CWR responds to the earlier mark only
	s.send(ACK|CWR, 401, 11, 100)
	s.expect(ACK, 11, 501, 0)
	s.send(ACK, 501, 11, 100)
	s.expect(ACK, 11, 601, 0)
	s.marked(ACK, 1, 11, 100)
	s.expect(ACK, 11, 601, 0) // §6.1.5: marks outside the window do not count
	assert.Equal(t, uint64(2), s.c.Info().ECNMarks)
}

// RFC 8257 §3.2: with DCTCP each acknowledgment echoes the mark of the newest data, CWR changes
// nothing, and the receiver acknowledges a change of the mark at once.
func TestRFC8257_3_2_Receiver(t *testing.T) {
	s := withECN(t, Config{Knobs: Knobs{ECN: ECNDCTCP}})
	s.marked(ACK, 1, 1, 100)
	s.expect(ACK|ECE, 1, 101, 0)
	s.send(ACK, 101, 1, 0) // an unmarked segment without data does not count
	s.quiet()
	s.marked(ACK|CWR, 101, 1, 100)
	s.expect(ACK|ECE, 1, 201, 0)
	s.c.rcv.ack.quick = 0
	s.send(ACK, 201, 1, 100)
	s.expect(ACK, 1, 301, 0) // sent at once, although no quick acknowledgments are left
	s.send(ACK, 301, 1, 100)
	s.quiet()
	s.marked(ACK, 401, 1, 100)
	s.expect(ACK|ECE, 1, 501, 0) // the delayed acknowledgment echoes the mark
	s.marked(ACK, 501, 1, 100)
	s.quiet()
	s.wait(time.Second)
	s.expect(ACK|ECE, 1, 601, 0)
	assert.Equal(t, uint64(4), s.c.Info().ECNMarks)
}

// TestMarkedBytes checks that the controller gets the number of marked bytes if the receiver
// reports it, and the echo in any case.
func TestMarkedBytes(t *testing.T) {
	for mode, marked := range map[ECNMode][2]int{
		ECNDCTCP: {0, 2000}, ECNOn: {congestion.UnknownMarks, congestion.UnknownMarks},
	} {
		s := withECN(t, Config{Knobs: Knobs{ECN: mode, NoDelay: true}})
		s.write(10000)
		s.clear()
		h := recordCalls(s)
		s.pass(10 * time.Millisecond)
		s.send(ACK, 1, 2001, 0)
		assert.Equal(t, []any{false, marked[0]}, []any{h.last().Echo, h.last().Marked}, mode)
		s.send(ACK|ECE, 1, 4001, 0)
		assert.Equal(t, []any{true, marked[1]}, []any{h.last().Echo, h.last().Marked}, mode)
		assert.False(t, h.last().Stamped)
	}
}

// RFC 3168 §6.1.2: the sender reduces its window once per window of data. It sets CWR on the first
// new data, and only on the first segment of its train.
func TestRFC3168_6_1_2_Sender(t *testing.T) {
	s := withECN(t, Config{Knobs: Knobs{NoDelay: true}})
	s.write(20000)
	s.collect()
	require.Len(t, s.out, 10)
	for _, g := range s.out {
		require.Equal(t, ECT0, g.ecn)
		require.False(t, g.flags.Has(CWR))
	}
	s.out = nil
	before := s.c.Info().SndCwnd
	s.now = s.now.Add(10 * time.Millisecond)
	s.send(ACK|ECE, 1, 2001, 0)
	i := s.c.Info()
	assert.Less(t, i.SndCwnd, before)
	assert.Equal(t, uint64(1), i.ECNEchoes)
	after := i.SndCwnd
	s.send(ACK|ECE, 1, 4001, 0)
	s.send(ACK|ECE, 1, 8001, 0)
	assert.LessOrEqual(t, after, s.c.Info().SndCwnd, "one reduction per window")
	s.collect()
	require.NotEmpty(t, s.out)
	assert.True(t, s.out[0].flags.Has(CWR))
	for _, g := range s.out[1:] {
		assert.False(t, g.flags.Has(CWR))
	}
	last := s.out[len(s.out)-1]
	s.out = nil
	s.send(ACK|ECE, 1, 10001, 0)
	assert.Equal(t, uint64(1), s.c.Info().ECNEchoes, "the data then in flight belongs to the same window")
	s.collect()
	s.send(ACK|ECE, 1, last.seq+uint32(last.n), 0)
	assert.Equal(t, uint64(2), s.c.Info().ECNEchoes, "the peer has not received the CWR, or a new mark")
}

// RFC 3168 §6.1.5: retransmissions are not ECN-capable. A loss reduces the window once, even if
// marks are echoed in the same window. The sender ignores echoes in resets and from peers without
// ECN.
func TestRFC3168_6_1_5_Retransmissions(t *testing.T) {
	s := withECN(t, Config{})
	s.write(10000)
	s.collect()
	s.out = nil
	s.sack(1, 1001, 5001)
	g := s.expect(ACK, 1, 1, 1000)
	assert.Equal(t, NotECT, g.ecn)
	s.send(ACK|ECE, 1, 5001, 0)
	assert.Zero(t, s.c.Info().ECNEchoes)
	s.send(ACK, 1, 10001, 0)
	s.collect()
	s.out = nil
	s.write(10)
	assert.True(t, s.expect(CWR|PSH|ACK, 10001, 1, 10).flags.Has(CWR), "a CWR reports a loss, too")

	s = opened(t, Config{})
	s.write(10000)
	s.collect()
	s.send(ACK|ECE, 1, 5001, 0)
	s.marked(ACK, 1, 5001, 10)
	assert.Zero(t, s.c.Info().ECNEchoes)
	s.collect()
	assert.False(t, s.out[len(s.out)-1].flags.Has(ECE))
}

// RFC 3168 §6.1.6: window probes are not ECN-capable.
func TestRFC3168_6_1_6_WindowProbes(t *testing.T) {
	s := withECN(t, Config{})
	s.sendWindow(ACK, 1, 1, 0, 0)
	s.write(100)
	s.quiet()
	s.wait(time.Second)
	assert.Equal(t, NotECT, s.expect(ACK, 1, 1, 1).ecn)
}

// TestECNInsteadOfLoss moves data through a router that marks packets. The sender retransmits
// nothing, and its window follows the marks.
func TestECNInsteadOfLoss(t *testing.T) {
	w := newWorld(t, 3, wire{
		delay: time.Millisecond, mark: 0.02, merge: true, bytesPerSec: 50e6,
	}, Config{Knobs: Knobs{ECN: ECNOn}})
	a, b := w.connect()
	require.True(t, w.transfer(time.Minute, newStream(a, b, 4<<20)))
	i := a.Info()
	assert.Zero(t, i.TotalRetrans)
	assert.Greater(t, i.ECNEchoes, uint64(5))
	assert.GreaterOrEqual(t, b.Info().ECNMarks, i.ECNEchoes)
}

func TestECNModes(t *testing.T) {
	for m := range numECNModes {
		got, ok := ParseECNMode(m.String())
		assert.True(t, ok)
		assert.Equal(t, m, got)
	}
	_, ok := ParseECNMode("maybe")
	assert.False(t, ok)
	assert.Equal(t, "?", numECNModes.String())
	_, err := NewHost(Config{Route: func(netip.Addr) Path { return Path{} }, Knobs: Knobs{ECN: 9}})
	require.ErrorContains(t, err, "ECN mode")
}

// RFC 3168 §6.1.2: after an echo at a window of one segment, the sender waits for the
// retransmission timer before it sends another segment.
func TestRFC3168_6_1_2_OneSegment(t *testing.T) {
	s := withECN(t, Config{Knobs: Knobs{Recovery: Recovery{Congestion: "reno", InitialWindow: 1}}})
	s.write(5000)
	first := s.expect(ACK, 1, 1, 1000)
	s.pass(10 * time.Millisecond)
	s.send(ACK|ECE, 1, 1001, 0)
	i := s.c.Info()
	require.EqualValues(t, 1, i.ECNEchoes)
	require.LessOrEqual(t, i.SndCwnd, first.n, "RFC 3168 §6.1.2: an ACK with an echo does not grow the window")
	s.quiet()
	assert.Equal(t, LimitCwnd.String(), s.c.Info().Limited)
	s.wait(i.RTO - time.Millisecond)
	s.quiet()
	s.wait(2 * time.Millisecond)
	s.expect(ACK|CWR, 1001, 1, 1000)
	s.quiet()
	s.pass(10 * time.Millisecond)
	s.send(ACK, 1, 2001, 0)
	s.collect()
	assert.Len(t, s.out, 2, "the window grows again")
}

// RFC 3168 §6.1.2: the sender sends no CWR for a reduction that it has undone, but sends the CWR of
// an earlier one. It does not undo a reduction caused by an echo.
func TestRFC3168_6_1_2_Undo(t *testing.T) {
	spurious := func(t *testing.T, echo, flags Flags) *script {
		s := withECN(t, Config{Knobs: Knobs{Recovery: Recovery{Congestion: "reno"}, NoDelay: true}})
		s.write(10000)
		s.collect()
		s.out = nil
		s.pass(10 * time.Millisecond)
		if echo != 0 {
			s.send(ACK|echo, 1, 1001, 0)
		}
		s.sack(1001, 2001, 5001)
		s.expect(ACK, 1001, 1, 1000)
		s.send(ACK|flags, 1, 5001, 0)
		s.collect()
		s.out = nil
		s.sack(10001, 1001, 2001) // a D-SACK of the copy: the original was late, not lost
		require.EqualValues(t, 1, s.c.Info().Undone)
		return s
	}
	t.Run("nothing was marked", func(t *testing.T) {
		s := spurious(t, 0, 0)
		assert.GreaterOrEqual(t, s.c.Info().SndCwnd, 10*1000)
		s.write(10)
		s.expect(PSH|ACK, 10001, 1, 10)
		s.pass(10 * time.Millisecond)
		s.send(ACK|ECE, 1, 10011, 0)
		assert.EqualValues(t, 1, s.c.Info().ECNEchoes, "a mark counts at once")
	})
	t.Run("the CWR for an earlier mark is still sent", func(t *testing.T) {
		s := spurious(t, ECE, 0)
		s.write(10)
		s.expect(CWR|PSH|ACK, 10001, 1, 10)
	})
	t.Run("a mark during recovery keeps the reduction", func(t *testing.T) {
		s := spurious(t, 0, ECE)
		assert.Less(t, s.c.Info().SndCwnd, 10*1000)
		s.write(10)
		s.expect(CWR|PSH|ACK, 10001, 1, 10)
	})
}
