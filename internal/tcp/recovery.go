package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// recovery finds out what was lost, and what is to be retransmitted. It sees ranges of sequence
// numbers, times and sizes, never a segment nor the connection.
type recovery struct {
	sent  sentQueue
	rack  rack
	board scoreboard
	episode
	undo   undo
	resent resent
	gone   congestion.LostSegment // scratch of lose
}

// episode is the state of one loss recovery.
type episode struct {
	kind     recoveryKind
	point    uint64 // snd.nxt as it began: past this, it is over (RFC 6582's recover)
	dupAcks  int    // duplicate ACKs in a row, without SACK
	dupBytes int    // what they say has left the network
	timedOut uint64 // snd.una at the last time-out
	// RFC 9937.
	delivered, out, flight int
	cwnd                   int // what may be in flight until the next acknowledgment
	force                  bool
	forward                forward
	fresh                  int // bytes of new data that F-RTO may still send
	// leapt says that the acknowledgment which ended a slow start after a time-out passed more
	// than four segments: some of what was sent again behind it had arrived before.
	leapt bool
	over  bool // the algorithm started over, with what is in flight still there
}

type recoveryKind uint8

const (
	// steady: nothing is known to be missing.
	steady recoveryKind = iota
	// recovering: fast recovery.
	recovering
	// restarting: slow start after a time-out.
	restarting
)

var recoveryNames = [...]string{"open", "recovery", "loss"}

// sending is what recovery has to know of the sending half of a connection.
type sending struct {
	una, nxt     uint64
	mss          int
	minRTT, srtt time.Duration
	how          *strategy
	cc           congestion.Controller
	counts       *Counts
}

// pipe estimates the bytes in flight (SetPipe, RFC 6675 §4), from counters.
func (v *recovery) pipe() int { return max(0, v.sent.bytes[inFlight]-v.dupBytes) }

// lose thinks a segment in flight lost because of congestion.
func (v *recovery) lose(r *round, id uint32, rec *record) {
	q := &v.sent
	q.move(id, rec, lost)
	q.lost += uint64(rec.size)
	watcher, ok := r.snd.cc.(congestion.LossWatcher)
	if !ok {
		return
	}
	l := &v.gone
	*l = congestion.LostSegment{
		Now: r.now, Seq: rec.seq, Size: int(rec.size), TxInFlight: int(rec.pipe),
		LostSince: int(uint32(q.lost) - rec.lost), AppLimited: rec.flags&recAppLimited != 0,
		TotalDelivered: q.delivered, SentAt: rec.sentAt,
	}
	watcher.OnSegmentLost(l)
}

// loseProbe takes a probe of the path's MTU for lost, which says nothing about congestion (RFC 4821
// §7.6.2).
func (v *recovery) loseProbe(r *round, id uint32, rec *record) {
	v.sent.move(id, rec, lost)
	rec.flags &^= recMTUProbe
	r.mtu.lost++
}

// loseFlight thinks everything lost that is in flight.
func (v *recovery) loseFlight(r *round) {
	for l := &v.sent.lists[inFlight]; l.n > 0; {
		v.lose(r, l.head, v.sent.at(l.head))
	}
}

// resendFlight has everything that is in flight sent again. It says nothing about congestion.
func (v *recovery) resendFlight() {
	for l := &v.sent.lists[inFlight]; l.n > 0; {
		v.sent.move(l.head, v.sent.at(l.head), lost)
	}
}

// resendLarge has sent again what cannot have passed a path that has turned out to
// carry only mss bytes of data. It says nothing about congestion (RFC 1191 §6.4).
func (v *recovery) resendLarge(mss int) {
	q := &v.sent
	for id := q.first; id != q.next; id++ {
		if rec := q.at(id); rec.place == inFlight && rec.text() > mss {
			q.move(id, rec, lost)
		}
	}
	v.force = q.lists[lost].n > 0
}

// loseOverdue thinks everything lost at a time-out that has had time to arrive (RFC 8985 §6.3), the
// first segment in any case.
func (v *recovery) loseOverdue(r *round) {
	q := &v.sent
	if q.at(q.first).place == sacked {
		v.renege()
	}
	for id := q.first; id != q.next; id++ {
		rec := q.at(id)
		overdue := r.snd.how.overdue
		if rec.place != inFlight || overdue != nil && id != q.first && !overdue(v, r, rec) {
			continue
		}
		if rec.flags&recAgain != 0 {
			r.snd.counts.LostRetransmits++
		}
		if rec.flags&recMTUProbe != 0 {
			v.loseProbe(r, id, rec)
			continue
		}
		v.lose(r, id, rec)
	}
}

// deliver notes that a segment arrived, the first time that this is known.
func (v *recovery) deliver(rec *record, r *round) {
	r.delivered += int(rec.size)
	r.segments++
	again := rec.flags&recAgain != 0
	r.rtt.again = r.rtt.again || again
	if !again && rec.end() <= v.point {
		r.earlier += int(rec.size)
	}
	if !again {
		r.mtu.largest = max(r.mtu.largest, rec.text())
		if r.rtt.first == clock.Never || rec.sentAt < r.rtt.first {
			r.rtt.first = rec.sentAt
		}
		r.rtt.last = max(r.rtt.last, rec.sentAt)
	}
	r.fack = max(r.fack, rec.end())
	v.rack.order(rec.end(), again, r.snd.counts)
	if !again || rec.place != inFlight || !r.echo.before(rec.sentAt) {
		v.rack.update(rec, r.now, r.snd.minRTT)
	}
	r.mtu.arrived = r.mtu.arrived || rec.flags&recMTUProbe != 0
	r.rate.note(&v.sent, rec)
}

// acknowledge forgets what a cumulative acknowledgment passes.
func (v *recovery) acknowledge(ack uint64, r *round) {
	q := &v.sent
	if !q.empty() {
		if rec := q.at(q.first); rec.flags&recAgain != 0 {
			r.rtt.againSent = rec.sentAt
		}
	}
	for !q.empty() {
		rec := q.at(q.first)
		if rec.end() > ack {
			break
		}
		if rec.place != sacked {
			v.deliver(rec, r)
		}
		q.pop()
	}
	if q.empty() {
		return
	}
	if rec := q.at(q.first); rec.seq < ack {
		n := int(ack - rec.seq)
		if rec.place != sacked {
			r.delivered += n
		}
		q.cut(n)
	}
}

// startOver turns fast recovery into the slow start of an algorithm that has no
// fast recovery (Tahoe): it goes on as after a time-out. Without SACK all that is
// in flight is sent again, because nothing would tell what else is missing.
func (v *recovery) startOver(r *round) {
	r.restarted = true
	v.kind, v.force, v.dupBytes, v.over = restarting, true, 0, true
	if !r.snd.how.sack {
		v.resendFlight()
	}
}

// reduceProportionally is RFC 9937 §6.2: what each acknowledgment in recovery
// lets out, so that the flight shrinks to ssthresh as evenly as it drains.
func (v *recovery) reduceProportionally(r *round) {
	target := r.snd.cc.Ssthresh()
	if target == 0 {
		return
	}
	delivered := r.delivered + r.dupDelivered
	if delivered == 0 && v.out > 0 {
		return // a timer: what it found lost has made room below cwnd
	}
	v.delivered += delivered
	pipe := v.pipe()
	var n int
	if pipe > target {
		n = ceilDiv(v.delivered*target, v.flight) - v.out
	} else {
		n = max(v.delivered-v.out, delivered)
		if r.advance > 0 && r.lost == 0 {
			n += r.snd.mss // the acknowledgment is safe: recovery makes progress
		}
		n = min(target-pipe, n)
	}
	if v.out == 0 && n <= 0 {
		n = r.snd.mss // the fast retransmit itself
	}
	v.cwnd = pipe + max(n, 0)
}

// holdsGrowth reports whether an acknowledgment must not grow the window: in
// fast recovery; before its beginning, while data is only reported by SACK (RFC
// 3042 §2), unless this path is known to reorder; without SACK as its end, which
// acknowledges all that duplicates stood for (RFC 5681 §3.2 step 6); and when it
// echoes a mark (RFC 3168 §6.1.2).
func (v *recovery) holdsGrowth(r *round) bool {
	return v.kind == recovering || r.marked || r.restarted || r.recovering && !r.snd.how.sack ||
		v.kind == steady && r.advance == 0 && !v.rack.reordering
}

// credit returns the bytes by which an acknowledgment lets the window grow. In
// Tahoe's slow start, and in that after a time-out without SACK, what was sent
// before it does not count: it leaves the network, or left it long ago, whatever
// the window is, and a window grown by it would be back at ssthresh at once. RFC
// 5681 §3.1 (2) has it count for a segment at most where snd.una moves.
func (r *round) credit() int {
	switch {
	case !r.restarting:
		return r.delivered
	case r.advance == 0:
		return r.delivered - r.earlier
	}
	return max(r.delivered-r.earlier, min(r.delivered, r.snd.mss))
}

// mayEcho reports whether duplicate acknowledgments may come from segments that
// the last recovery sent again: up to the recovery point (RFC 6582 §3.2 step 2),
// and at it if segments behind a filled hole had been sent again (RFC 6582 §4.1).
func (v *recovery) mayEcho(una uint64) bool {
	return una < v.point || una == v.point && v.leapt
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// push records a segment that is sent for the first time.
func (v *recovery) push(now clock.Time, seq uint64, size int, flags recFlags) {
	v.sent.push(now, seq, size, flags)
	v.spend(size)
}

// spend takes what was sent off the allowance.
func (v *recovery) spend(n int) {
	if v.kind == recovering {
		v.out += n
	}
	v.force = false
}

// limit is what holds the sender back while its window is full.
func (v *recovery) limit() Limit {
	if v.kind == steady {
		return LimitCwnd
	}
	return LimitRecovery
}
