package recovery

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

func TestRFC6298_Estimator(t *testing.T) {
	o := Options{Config: Config{RTOMin: time.Millisecond, RTOMax: time.Second}}
	var e Estimator
	now := clock.Time(1)
	e.Sample(now, 100*time.Millisecond, 1, &o)
	assert.Equal(t, 100*time.Millisecond, e.SRTT)
	assert.Equal(t, 50*time.Millisecond, e.rttvar)
	assert.Equal(t, 300*time.Millisecond, e.RTO)
	e.Sample(now, 200*time.Millisecond, 1, &o)
	assert.Equal(t, 112500*time.Microsecond, e.SRTT)
	assert.Equal(t, 62500*time.Microsecond, e.rttvar)
	before := e
	e.Sample(now, 200*time.Millisecond, 10, &o)
	assert.Less(t, e.SRTT-before.SRTT, 1200*time.Microsecond, "RFC 7323 appendix G: a tenth of the gain")
	for range 1000 {
		e.Sample(now, 10*time.Microsecond, 1, &o)
	}
	assert.Equal(t, time.Millisecond, e.RTO, "the lower bound")
	assert.Equal(t, 8*time.Millisecond, e.Timeout(3, &o))
	assert.Equal(t, time.Second, e.Timeout(32, &o), "the upper bound")
	assert.Equal(t, 10*time.Microsecond, e.lowest())
	for range 3 {
		now = now.Add(minWindow)
		e.Sample(now, time.Second, 1, &o)
	}
	assert.Equal(t, time.Second, e.lowest(), "the minimum of an old route expires")
	assert.Equal(t, time.Second, e.RTO)
	t.Log("# RFC 4015 §3.1 step 11: the sample after a spurious timeout does not lower the estimate")
	e.keepSRTT, e.keepVar = 30*time.Millisecond, 7*time.Millisecond
	e.Sample(now, time.Microsecond, 1, &o)
	assert.Equal(t, 30*time.Millisecond, e.SRTT)
	assert.Equal(t, 7*time.Millisecond, e.rttvar)
}

// TestRandomFlights sends, acknowledges, loses and times out segments at random with each strategy,
// and checks the recovery's invariants.
func TestRandomFlights(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 9))
		v := flight(t, Names()[seed%4], 1+rng.IntN(30))
		now := start
		for range 200 {
			now = now.Add(time.Duration(rng.IntN(5_000_000)))
			switch size := uint64(1 + rng.IntN(1000)); rng.IntN(6) {
			case 0, 1:
				v.Push(now, v.snd.Nxt, int(size), 0)
				v.snd.Nxt += size
				v.Arm(now)
			case 2, 3:
				ack := min(v.snd.Una+uint64(rng.IntN(3))*size/2, v.snd.Nxt)
				from := ack + rng.Uint64N(v.snd.Nxt-ack+1)
				r := v.BeginAck(now)
				r.Dups = rng.IntN(2)
				end := from + rng.Uint64N(v.snd.Nxt-from+1)
				r.MarkDelivered(ack, []buffer.Range{{Start: from, End: end}})
				v.snd.Una = ack
				r.Process(true, false)
			case 4:
				v.Advance(now)
				if v.At.RTO.Due(now) {
					v.OnTimeout(now)
				}
			default:
				v.snd.MSS = 100 + rng.IntN(900)
				if !v.Record.Empty() {
					v.Recut(v.snd.MSS)
				}
			}
			for v.Record.Lost() && v.MayResend() || v.Spare(now) {
				v.Resend(now, 1+rng.IntN(44))
			}
			require.NoError(t, v.verify(), "seed %d", seed)
		}
	}
}

// start is the start time of these tests' flights.
const start = clock.Time(time.Hour)

// flight returns a recovery with n segments of 1000 bytes in flight, starting at sequence number
// 1000, and a round trip of 10 ms.
func flight(t *testing.T, strategy string, n int) *Recovery {
	t.Helper()
	h := &Host{Options: Options{MaxWindow: 1 << 20, Config: Config{
		Strategy: strategy, Congestion: "newreno", InitialWindow: n,
		RTOMin: 200 * time.Millisecond, RTOMax: time.Minute, RTOInitial: time.Second,
	}}}
	return h.flight(start, n)
}

func (h *Host) flight(now clock.Time, n int) *Recovery {
	v := new(Recovery)
	v.Init(h, &Space{Una: 1000, Nxt: 1000, MSS: 1000})
	v.RTT.Sample(now, 10*time.Millisecond, 1, &h.Options)
	v.Establish(now, true, false)
	v.LeaveIdle(now)
	v.Begin(congestion.Config{Now: now})
	for range n {
		v.Push(now, v.snd.Nxt, 1000, 0)
		v.snd.Nxt += 1000
	}
	v.Arm(now)
	return v
}

// acknowledge processes an acknowledgment that arrives d after the flight began.
func (v *Recovery) acknowledge(d time.Duration, ack uint64, blocks ...buffer.Range) *Ack {
	r := v.BeginAck(start.Add(d))
	r.MarkDelivered(ack, blocks)
	v.snd.Una = ack
	r.Process(false, false)
	return r
}

// RFC 8985 §6.2: the second of ten segments is lost.
func TestRFC8985_6_2_OneLoss(t *testing.T) {
	const ms = time.Millisecond
	v := flight(t, "rack", 10)
	r := v.acknowledge(10*ms, 2000, buffer.Range{Start: 3000, End: 5000})
	assert.Equal(t, []int{3000, 3, 0}, []int{r.Delivered, r.segments, r.lost})
	assert.Equal(t, start.Add(12*ms+ms/2), v.At.Reorder, "a quarter of the round trip later")
	assert.Equal(t, 7000, v.Pipe())
	assert.True(t, v.Episode.Open())

	v.Advance(v.At.Reorder)
	assert.Equal(t, []uint32{v.Record.first}, ids(&v.Record, lost))
	assert.Equal(t, 6000, v.Pipe())
	assert.Equal(t, "recovery", v.Episode.String())
	assert.Equal(t, Span{Seq: 2000, N: 1000, MSS: 1000}, v.Resend(v.At.Reorder, 44))
	require.NoError(t, v.verify())
}

// RFC 8985 §6.2: reo_wnd_mult grows by one in each round with a D-SACK, while the window is below
// SRTT. After sixteen recoveries without a D-SACK it is reset.
func TestRFC8985_6_2_TheWindowGrowsAndIsForgotten(t *testing.T) {
	v := flight(t, "rack", 20)
	k := &v.rack
	const least = 100 * time.Microsecond
	v.RTT.min, v.RTT.minBefore, k.reordering = least, 0, true
	for n := range 450 {
		k.dsackRound = 0 // the marked round is acknowledged
		for range 2 {    // one D-SACK per round counts
			r := v.BeginAck(start)
			r.DSACK = 1
			k.adaptReordering(r, v.snd, 1)
			k.adaptReordering(r, v.snd, 0)
		}
		want := min(time.Duration(n+2)*least/4, v.RTT.SRTT)
		assert.Equal(t, want, timing{}.wait(v)-k.rtt, n)
	}
	for range 15 {
		k.forget()
	}
	assert.EqualValues(t, 451, k.mult, "the duplicate of a tail probe does not count")
	k.forget()
	assert.Equal(t, least/4, timing{}.wait(v)-k.rtt)
}

func TestRFC8985_6_2_EchoOfAnEarlierTransmission(t *testing.T) {
	v := flight(t, "rack", 1)
	again := start.Add(10 * time.Millisecond)
	rec := v.Record.at(v.Record.first)
	rec.flags |= recRetransmitted
	rec.sentAt = again
	r := v.BeginAck(again.Add(20 * time.Millisecond))
	r.Echo = Echo{Tick: Tick(again) - 1, Known: true}
	r.deliver(rec)
	assert.NotEqual(t, again, v.rack.sentAt, "the original arrived")
	r.Echo.Tick++
	r.deliver(rec)
	assert.Equal(t, again, v.rack.sentAt)
}

// RFC 8985 §7.4.2: a D-SACK of the probe shows that no segment was lost.
func TestRFC8985_7_4_2_BothCopiesOfAProbe(t *testing.T) {
	v := flight(t, "rack", 4)
	v.Advance(v.At.Probe)
	_, ok := v.RepeatProbe(start.Add(20 * time.Millisecond))
	require.True(t, ok)
	require.NotZero(t, v.Kept.TLP.end)
	cwnd := v.CC.Cwnd()
	v.acknowledge(30*time.Millisecond, 5000, buffer.Range{Start: 4000, End: 5000})
	assert.Zero(t, v.Kept.TLP.end)
	assert.GreaterOrEqual(t, v.CC.Cwnd(), cwnd)
	assert.EqualValues(t, 1, v.rack.mult, "the D-SACK does not count as reordering")
}

// RFC 9937: losses that the reordering timer finds do not change cwnd, so they make room for
// retransmissions.
func TestRFC9937_LossesFoundByTheTimerMakeRoom(t *testing.T) {
	v := flight(t, "rack", 20)
	v.acknowledge(10*time.Millisecond, 1000, buffer.Range{Start: 2000, End: 5000})
	require.Equal(t, "recovery", v.Episode.String())
	now := start.Add(10 * time.Millisecond)
	v.Resend(now, 1)
	v.Push(now, v.snd.Nxt, 1000, 0)
	before := v.Episode.cwnd
	require.Zero(t, v.Allowance())
	r := v.beginRound(now)
	r.lose(v.Record.next-1, v.Record.at(v.Record.next-1))
	r.lost = 1
	r.recover(false)
	assert.Equal(t, before, v.Episode.cwnd)
	assert.Equal(t, 1000, v.Allowance())
}

// RFC 9937 §6.2: the formulas with numbers, for a flight of 20 segments and an ssthresh of 10.
func TestRFC9937_6_2(t *testing.T) {
	for _, c := range []struct {
		name           string
		delivered, out int // before the acknowledgment
		pipe           int
		r              Ack
		want           int // bytes that may be sent
	}{
		{"proportional: every second one", 4000, 2000, 16000, Ack{Delivered: 2000}, 1000},
		{"proportional: rounded up", 4000, 2000, 16000, Ack{Delivered: 1001}, 501},
		{"conservation of packets", 6000, 6000, 5000, Ack{Delivered: 1000}, 1000},
		{"an unused allowance carries over", 6000, 4000, 5000, Ack{Delivered: 1000}, 3000},
		{"a safe ACK", 6000, 6000, 5000, Ack{Delivered: 1000, advance: 1000}, 2000},
		{
			"an ACK that shows losses is not safe", 6000, 6000, 5000,
			Ack{Delivered: 1000, advance: 1000, lost: 1},
			1000,
		},
		{"never beyond ssthresh", 6000, 6000, 9500, Ack{Delivered: 1000, advance: 1000}, 500},
		{"the fast retransmit is forced", 0, 0, 19000, Ack{Delivered: 0}, 1000},
	} {
		e := episode{kind: recovering, delivered: c.delivered, out: c.out, flight: 20000}
		e.reduce(&c.r, 10000, c.pipe, 1000)
		assert.Equal(t, c.want, e.cwnd-c.pipe, c.name)
	}
}

// RFC 5682 §2.1 step 1: F-RTO does not start during recovery from an earlier timeout of another
// segment, nor in fast recovery.
func TestRFC5682_2_1_Step1(t *testing.T) {
	for _, c := range []struct {
		e    episode
		want bool
	}{
		{episode{}, true},
		{episode{kind: recovering}, false},
		{episode{kind: restarting, forward: forwardFirst, timedOut: 7}, true},
		{episode{kind: restarting, forward: forwardFirst, timedOut: 6}, false},
		{episode{kind: restarting, timedOut: 7}, false},
	} {
		assert.Equal(t, c.want, c.e.mayForward(7), "%+v", c.e)
	}
}

// RFC 6582 §3.2: duplicate acknowledgments below the recovery point start no other recovery.
func TestRFC6582_3_2_EchoesOfARecovery(t *testing.T) {
	for point, want := range map[uint64]string{1000: "recovery", 1001: "open"} {
		v := flight(t, "newreno", 10)
		v.Episode.point = point
		for range 4 {
			r := v.BeginAck(start.Add(10 * time.Millisecond))
			r.Dups = 1
			r.MarkDelivered(1000, nil)
			r.Process(false, false)
		}
		assert.Equal(t, want, v.Episode.String(), point)
	}
}

// RFC 3522 §3.2: Eifel detection distinguishes the transmissions of a segment by the timestamp
// echo.
func TestRFC3522_3_2_EchoDistinguishesTransmissions(t *testing.T) {
	v := flight(t, "rack", 1)
	later := start.Add(time.Second)
	v.OnTimeout(later)
	v.Resend(later, 1)
	require.True(t, v.undo.resent.Known)
	r := v.BeginAck(later)
	r.advance, v.snd.Una = 1000, v.snd.Nxt
	v.Record.pop()
	r.Echo = Echo{Tick: Tick(start), Known: true}
	assert.True(t, r.spurious())
	r.Echo.Tick = Tick(later)
	assert.False(t, r.spurious())
	r.Echo = Echo{}
	assert.False(t, r.spurious())
}

// RFC 9040 §3.1, §6: a connection assumes that its path loses segments if another connection of its
// host has had a loss lately. After a loss of its own it assumes this until many segments have
// arrived without another loss.
func TestRFC9040_LossesOfOthers(t *testing.T) {
	v := flight(t, "rack", 4)
	require.True(t, v.losses.free())
	v.noteLoss(start)
	assert.False(t, v.losses.free())
	v.losses.segments += lossFreeAfter
	assert.True(t, v.losses.free(), "the loss was long ago")
	assert.False(t, v.shared.flight(start, 1).losses.free())
	assert.True(t, v.shared.flight(start.Add(2*lossMemory), 1).losses.free())
}

// TestIdle checks that path estimates and counters outlive the records of a flight.
func TestIdle(t *testing.T) {
	v := flight(t, "rack", 1)
	v.acknowledge(10*time.Millisecond, 2000)
	v.rack.reordering, v.rack.mult = true, 3
	v.EnterIdle()
	assert.True(t, v.Idle())
	assert.Nil(t, v.saved, "there is nothing to keep")
	require.Len(t, v.shared.spare, 1)
	v.LeaveIdle(start)
	assert.Empty(t, v.shared.spare)
	assert.True(t, v.rack.reordering)
	assert.EqualValues(t, 3, v.rack.mult)
	assert.Equal(t, uint64(1000), v.Info().DeliveredBytes)
	v.Kept.Counts.WindowProbes++
	v.EnterIdle()
	assert.NotNil(t, v.saved)
	v.LeaveIdle(start)
	assert.Equal(t, uint64(1), v.Info().WindowProbes)
}

// TestShortRateSample checks that an interval below the minimum round trip gives no rate sample.
func TestShortRateSample(t *testing.T) {
	var q sentQueue
	s := rateSample{sentAt: start, since: start.Add(-9 * time.Millisecond)}
	q.delivered = 1000
	assert.Zero(t, q.rate(start, &s, 10*time.Millisecond))
	assert.NotZero(t, q.rate(start, &s, 9*time.Millisecond))
}

func TestRestoreKeepsTheOrderOfTransmission(t *testing.T) {
	var q sentQueue
	for i := range uint64(8) {
		q.push(clock.Time(1000+10*i), i*100, 100, 0)
	}
	for _, id := range []uint32{1, 2, 5, 6} {
		q.move(id, q.at(id), lost)
	}
	q.resent(2000, 2, q.at(2))
	q.move(2, q.at(2), lost)
	q.restore()
	require.Empty(t, ids(&q, lost))
	require.Equal(t, []uint32{0, 1, 3, 4, 5, 6, 7, 2}, ids(&q, inFlight))
	assert.Equal(t, 800, q.bytes[inFlight])
}

func TestPacer(t *testing.T) {
	var p Pacer
	now := clock.Time(time.Hour)
	p.sent(now, 1000, 1000)
	assert.Zero(t, p.Holds(now), "without a rate there is no pacing")
	p.set(1e6) // a byte per microsecond
	assert.Equal(t, 2000, p.quantum(1000), "two segments at least")
	assert.Equal(t, 1000, p.quantum(400), "a millisecond's worth")
	p.sent(now, 1000, 1000)
	p.sent(now, 1000, 1000)
	assert.Zero(t, p.Holds(now), "after silence: one burst")
	p.sent(now, 1000, 1000)
	assert.Equal(t, now.Add(time.Millisecond), p.next)
	assert.NotZero(t, p.Holds(now))
	now = now.Add(1500 * time.Microsecond)
	assert.Zero(t, p.Holds(now))
	p.sent(now, 1000, 1000)
	assert.Equal(t, now.Add(500*time.Microsecond), p.next, "a late departure does not reduce the rate")
	p.set(0)
	assert.Zero(t, p.Holds(now))
}

// TestRecutAgainstModel cuts the records of random queues and checks the queues' invariants.
func TestRecutAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		q := sentQueue{first: ^uint32(9), next: ^uint32(9)}
		now, seq := clock.Time(1), uint64(1000)
		var starts []uint64
		for range 1 + rng.IntN(40) {
			now++
			starts = append(starts, seq)
			n := 1 + rng.IntN(1000)
			q.push(now, seq, n, 0)
			seq += uint64(n)
		}
		q.push(now, seq, 700, FIN)
		for id := q.first; id != q.next; id++ {
			now++
			switch rng.IntN(5) {
			case 0:
				q.move(id, q.at(id), lost)
			case 1:
				q.move(id, q.at(id), sacked)
			case 2:
				q.resent(now, id, q.at(id))
			}
		}
		bytes, mss := q.bytes, 50+rng.IntN(900)
		was := map[uint32]uint64{q.next: 0}
		for i, s := range starts {
			was[q.first+uint32(i)] = s
		}
		end := q.next
		move := q.recut(mss)
		for id, s := range was {
			if id == end {
				require.Equal(t, q.next, move(id))
				continue
			}
			piece := q.at(move(id))
			require.LessOrEqual(t, piece.seq, s, "seed %d", seed)
			require.Greater(t, piece.end(), s, "seed %d", seed)
			if piece.place != lost {
				require.Equal(t, piece.seq, s, "seed %d", seed)
			}
		}
		audit(t, &q, mss, 1000, seq+700)
		for id := q.first; id+1 != q.next; id++ {
			r, next := q.at(id), q.at(id+1)
			if r.place == lost && next.place == lost {
				require.Equal(t, mss, r.payload(), "seed %d: a short piece before another", seed)
			}
		}
		require.Equal(t, bytes, q.bytes)
	}
}

// audit checks a queue's sums and lists against its records.
func audit(t *testing.T, q *sentQueue, mss int, from, to uint64) {
	t.Helper()
	var bytes, count [numPlaces]int
	again := 0
	for id := q.first; id != q.next; id++ {
		r := q.at(id)
		require.Equal(t, from, r.seq)
		from = r.end()
		bytes[r.place] += int(r.size)
		count[r.place]++
		if r.place == inFlight && r.flags&recRetransmitted != 0 {
			again++
		}
		if r.place != sacked {
			require.LessOrEqual(t, r.payload(), mss)
		}
		require.Equal(t, id == q.next-1, r.flags&FIN != 0)
	}
	require.Equal(t, to, from)
	require.Equal(t, bytes, q.bytes)
	require.Equal(t, count, q.count)
	require.Equal(t, again, q.retransmitted)
	require.Len(t, ids(q, lost), count[lost])
	flight := ids(q, inFlight)
	require.Len(t, flight, count[inFlight])
	for i := 1; i < len(flight); i++ {
		a, b := q.at(flight[i-1]), q.at(flight[i])
		require.True(t, a.sentAt < b.sentAt || a.sentAt == b.sentAt && a.seq < b.seq)
	}
	lows := ids(q, lost)
	for i := 1; i < len(lows); i++ {
		require.Less(t, q.at(lows[i-1]).seq, q.at(lows[i]).seq)
	}
}

// verify checks that the records cover SND.UNA to SND.NXT, and that the sums and lists over them,
// the scoreboard and the undo state agree with them.
func (v *Recovery) verify() error {
	q, b, u := &v.Record, &v.board, &v.undo
	var bytes, count [numPlaces]int
	above, next, gaps := 0, v.snd.Una, 0
	b.follow(q)
	for id := q.first; id != q.next; id++ {
		r := q.at(id)
		if r.seq != next {
			gaps++
		}
		next = r.end()
		bytes[r.place] += int(r.size)
		count[r.place]++
		if r.place == sacked && int32(id-b.judged) >= 0 {
			above++
		}
	}
	if gaps > 0 || next != v.snd.Nxt || bytes != q.bytes || count != q.count ||
		q.lists[inFlight].n != count[inFlight] || q.lists[lost].n != count[lost] ||
		above != b.above || int32(b.highest-q.next) > 0 || u.to > v.snd.Nxt ||
		u.open && u.owed < 0 {
		return fmt.Errorf("recovery: %d gaps up to %d of %+v, bytes %v and records %v of %+v, "+
			"%d above %+v, undo %+v", gaps, next, *v.snd, bytes, count, *q, above, *b, *u)
	}
	return nil
}
