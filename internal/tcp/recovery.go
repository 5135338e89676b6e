package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// recovery is loss detection and congestion control: what was sent and not acknowledged, what of it
// was lost and is to be retransmitted, how much may be in flight, and when to wait no longer. It
// sees ranges of sequence numbers, times and sizes, never a segment nor the connection.
type recovery struct {
	shared   *recoveries
	snd      *sendSpace
	how      *strategy
	cc       algorithm
	rtt      rtt
	at       lossTimers
	retries  int32 // time-outs since the last answer
	backoff  uint8 // doublings of the time-out
	is       facts
	segments uint64     // delivered
	lastSent clock.Time // a SYN, data or a FIN
	// lossFreeAt is how many segments must have been delivered until the path is taken for one
	// that loses nothing once more; zero: it never has lost any.
	lossFreeAt   uint64
	rate         int64 // the last delivery rate, bytes a second
	pacer        pacer
	changed      func(now clock.Time) // who watches the connection; nil: nobody
	*outstanding                      // nil: nothing is in flight, nor was lately
	rested       rested
	filed        *lasting // of the last flight; nil: nothing
}

// facts are a recovery's yes-or-no facts.
type facts struct {
	paced       bool // a window is spread over the round trip
	late        bool // a timer that went off late has its time once more
	rateLimited bool // the rate was the application's rather than the path's
}

// lossTimers are the instants at which recovery waits no longer.
type lossTimers struct {
	rto     clock.Time // retransmission, of the SYN too (RFC 6298)
	probe   clock.Time // tail loss probe (RFC 8985 §7)
	reorder clock.Time // RACK's reordering window (RFC 8985 §6.2)
}

// sendSpace is SND.UNA, SND.NXT (RFC 9293 §3.3.1) and the payload of a full segment.
type sendSpace struct {
	Una, Nxt uint64
	MSS      int
}

// lossOptions is how the recoveries of a host are configured.
type lossOptions struct {
	Congestion                 string // the algorithm: of Algorithms, or of package congestion
	Algorithms                 map[string]congestion.Make
	InitialWindow              int // segments
	FixedWindow, MaxWindow     int // bytes
	Pacing                     bool
	RTOMin, RTOMax, RTOInitial time.Duration // RFC 6298 §2
	FinTimeout                 time.Duration // after a FIN whose data is acknowledged; 0: RTO
	AckDelay                   time.Duration // RFC 8985 §7.2, max_ack_delay
}

// recoveries is what the recoveries of a host have in common.
type recoveries struct {
	lossOptions
	retransmits uint64     // segments, of all connections
	lossAt      clock.Time // when one of them lost something last
	spare       pool[outstanding]
	round       round // scratch of the acknowledgment in hand
	gone        congestion.LostSegment
	congestionEvents
}

// episode is the state of one loss recovery.
type episode struct {
	kind     recoveryKind
	point    uint64 // snd.Nxt as it began: past this, it is over (RFC 6582's recover)
	dupAcks  int    // duplicate ACKs in a row, without SACK
	dupBytes int    // what they say has left the network
	timedOut uint64 // snd.Una at the last time-out
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

// pipe estimates the bytes in flight (SetPipe, RFC 6675 §4), from counters.
func (v *recovery) pipe() int { return max(0, v.sent.bytes[inFlight]-v.ep.dupBytes) }

// lose thinks a segment in flight lost, and reports whether because of congestion: a lost probe of
// the path's MTU says nothing about that (RFC 4821 §7.6.2).
func (v *recovery) lose(r *round, id uint32, rec *record) bool {
	q := &v.sent
	q.move(id, rec, lost)
	if rec.flags&recMTUProbe != 0 {
		rec.flags &^= recMTUProbe
		r.mtu.lost++
		return false
	}
	q.lost += uint64(rec.size)
	watcher, ok := v.cc.Controller.(congestion.LossWatcher)
	if !ok {
		return true
	}
	l := &v.shared.gone
	*l = congestion.LostSegment{
		Now: r.now, Seq: rec.seq, Size: int(rec.size), TxInFlight: int(rec.pipe),
		LostSince: int(uint32(q.lost) - rec.lost), AppLimited: rec.flags&recAppLimited != 0,
		TotalDelivered: q.delivered, SentAt: rec.sentAt,
	}
	watcher.OnSegmentLost(l)
	return true
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
	v.ep.force = q.lists[lost].n > 0
}

// resendProbe has a probe of the path's MTU sent again that a router reports as too big. It reports
// false if there is none.
func (v *recovery) resendProbe(seq uint64) bool {
	id := v.sent.find(seq)
	if !v.sent.has(id) || v.sent.at(id).flags&recMTUProbe == 0 {
		return false
	}
	rec := v.sent.at(id)
	rec.flags &^= recMTUProbe
	if rec.place == inFlight {
		v.sent.move(id, rec, lost)
		v.ep.force = true
	}
	return true
}

// loseOverdue thinks everything lost at a time-out that has had time to arrive (RFC 8985 §6.3), the
// first segment in any case.
func (v *recovery) loseOverdue(r *round) {
	q := &v.sent
	if q.at(q.first).place == sacked {
		// RFC 2018 §8: the peer may have thrown away what was sacked, and a time-out of a segment
		// that it once reported says that it did.
		for id := q.first; id != q.next; id++ {
			if rec := q.at(id); rec.place == sacked {
				q.move(id, rec, lost)
			}
		}
		v.board = scoreboard{judged: q.first, highest: q.first, tried: q.first}
	}
	for id := q.first; id != q.next; id++ {
		rec := q.at(id)
		if rec.place != inFlight || id != q.first && !v.how.overdue(v, r, rec) {
			continue
		}
		if rec.flags&recAgain != 0 {
			v.lasting.counts.LostRetransmits++
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
	if !again && rec.end() <= v.ep.point {
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
	if v.rack.order(rec.end(), again) {
		v.lasting.counts.ReorderSeen++
	}
	if !again || rec.place != inFlight || !r.echo.before(rec.sentAt) {
		v.rack.update(rec, r.now, v.rtt.lowest())
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

// reduce is RFC 9937 §6.2, proportional rate reduction: what each acknowledgment in recovery lets
// out, so that the flight shrinks to ssthresh, the target, as evenly as it drains.
func (e *episode) reduce(r *round, target, pipe, mss int) {
	delivered := r.delivered + r.dupDelivered
	if target == 0 || delivered == 0 && e.out > 0 {
		return // a timer: what it found lost has made room below cwnd
	}
	e.delivered += delivered
	var n int
	if pipe > target {
		n = ceilDiv(e.delivered*target, e.flight) - e.out
	} else {
		n = max(e.delivered-e.out, delivered)
		if r.advance > 0 && r.lost == 0 {
			n += mss // the acknowledgment is safe: recovery makes progress
		}
		n = min(target-pipe, n)
	}
	if e.out == 0 && n <= 0 {
		n = mss // the fast retransmit itself
	}
	e.cwnd = pipe + max(n, 0)
}

// holdsGrowth reports whether an acknowledgment must not grow the window: in
// fast recovery; before its beginning, while data is only reported by SACK (RFC
// 3042 §2), unless this path is known to reorder; without SACK as its end, which
// acknowledges all that duplicates stood for (RFC 5681 §3.2 step 6); and when it
// echoes a mark (RFC 3168 §6.1.2).
func (v *recovery) holdsGrowth(r *round) bool {
	return v.ep.kind == recovering || r.marked || r.restarted || r.recovering && !v.how.sack ||
		v.ep.kind == steady && r.advance == 0 && !v.rack.reordering
}

// credit returns the bytes by which an acknowledgment lets the window grow. In
// Tahoe's slow start, and in that after a time-out without SACK, what was sent
// before it does not count: it leaves the network, or left it long ago, whatever
// the window is, and a window grown by it would be back at ssthresh at once. RFC
// 5681 §3.1 (2) has it count for a segment at most where snd.Una moves.
func (r *round) credit(mss int) int {
	switch {
	case !r.restarting:
		return r.delivered
	case r.advance == 0:
		return r.delivered - r.earlier
	}
	return max(r.delivered-r.earlier, min(r.delivered, mss))
}

// mayEcho reports whether duplicate acknowledgments may come from segments that
// the last recovery sent again: up to the recovery point (RFC 6582 §3.2 step 2),
// and at it if segments behind a filled hole had been sent again (RFC 6582 §4.1).
func (e *episode) mayEcho(una uint64) bool { return una < e.point || una == e.point && e.leapt }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// push records a segment that is sent for the first time.
func (v *recovery) push(now clock.Time, seq uint64, size int, flags recFlags) {
	v.sent.push(now, seq, size, flags)
	v.ep.spend(size)
}

// spend takes what was sent off the allowance.
func (e *episode) spend(n int) {
	if e.kind == recovering {
		e.out += n
	}
	e.force = false
}

// span is what to retransmit: n bytes of data in segments of mss, and perhaps our FIN.
type span struct {
	seq    uint64
	n, mss int
	fin    bool
}

// mayResend reports whether congestion control lets the lowest of what is lost out.
func (v *recovery) mayResend() bool {
	q := &v.sent
	if q.uneven {
		v.recut(v.snd.MSS) // short pieces, cut while they were in flight, are joined
	}
	return v.ep.force ||
		v.ep.forward != forwardFirst &&
			(v.allowance() >= q.at(q.lists[lost].head).text() || v.pipe() == 0)
}

// resend takes what is lost for sent again, neighbours of equal size up to so many segments.
func (v *recovery) resend(now clock.Time, room int) span {
	q, left := &v.sent, v.allowance()
	id := q.lists[lost].head
	rec := q.at(id)
	s := span{seq: rec.seq, mss: min(rec.text(), v.snd.MSS)}
	room = max(room, ceilDiv(rec.text(), max(s.mss, 1))) // one record is never cut
	v.undo.noteResent(now)
	for again := uint64(1); ; again++ {
		s.n += rec.text()
		left -= int(rec.size)
		s.fin = s.fin || rec.flags&recFIN != 0
		full, end := rec.text() == s.mss, rec.end()
		q.resent(now, id, rec)
		v.undo.sent(rec.seq, end)
		v.ep.spend(int(rec.size))
		id = q.lists[lost].head
		if q.lists[lost].n > 0 {
			rec = q.at(id)
		}
		if q.lists[lost].n == 0 || !full || v.ep.forward != forwardOff ||
			(s.n+s.mss-1)/s.mss >= room ||
			rec.seq != end || rec.text() > s.mss || rec.text() > left {
			v.countAgain(again, s.n)
			break
		}
	}
	if s.seq == v.snd.Una || v.at.rto == clock.Never {
		v.armRTO(now)
	}
	v.armProbe(now)
	return s
}

// repeat takes a segment for sent again that is not known to be lost; false: it has arrived.
func (v *recovery) repeat(now clock.Time, id uint32) (span, bool) {
	rec := v.sent.at(id)
	if rec.place == sacked {
		return span{}, false
	}
	n := rec.text()
	s := span{rec.seq, n, min(max(n, 1), v.snd.MSS), rec.flags&recFIN != 0}
	if v.ep.kind != steady {
		v.undo.noteResent(now)
		v.undo.sent(rec.seq, rec.end())
		v.ep.spend(int(rec.size))
	}
	v.sent.resent(now, id, rec)
	v.countAgain(1, n)
	return s, true
}

// repeatByte takes the first byte in flight for sent again, into a window that is shut.
func (v *recovery) repeatByte(now clock.Time) span {
	rec := v.sent.at(v.sent.first)
	v.sent.resent(now, v.sent.first, rec)
	n := min(rec.text(), 1)
	v.countAgain(1, n)
	return span{rec.seq, n, v.snd.MSS, rec.flags&recFIN != 0 && n == rec.text()}
}

// countAgain counts what is retransmitted.
func (v *recovery) countAgain(segments uint64, n int) {
	v.lasting.counts.Retransmits += segments
	v.lasting.bytesRetrans += uint64(n)
	v.rounds.window.resent += n
	v.shared.retransmits += segments
}

// recut cuts the sent queue into segments of the present size.
func (v *recovery) recut(mss int) {
	move := v.sent.recut(mss)
	b := &v.board
	b.judged, b.highest, b.tried = move(b.judged), move(b.highest), move(b.tried)
	b.above = 0
	for id := b.judged; id != v.sent.next; id++ {
		if v.sent.at(id).place == sacked {
			b.above++
		}
	}
}
