package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// recovery is the state of loss recovery.
type recovery struct {
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

// pipe estimates the bytes in flight (SetPipe, RFC 6675 §4), from counters.
func (c *Conn) pipe() int { return max(0, c.sent.bytes[inFlight]-c.rec.dupBytes) }

// recover enters, continues and leaves recovery after an acknowledgment.
func (c *Conn) recover(now clock.Time, r *round) {
	r.recovering = c.rec.kind == recovering
	r.restarting = c.rec.kind == restarting && (c.rec.over || !c.how.sack)
	if c.rec.kind == restarting && c.snd.una < c.rec.point {
		c.lookForward(now, r)
	}
	if c.rec.kind != steady && c.snd.una >= c.rec.point {
		c.exitRecovery(now, false)
		c.rec.leapt = r.restarting && r.advance > 4*c.snd.mss
		r.lost += c.sent.count[lost] // what was lost since belongs to a new episode
	}
	c.reconsider(now, r)
	if c.rec.kind == steady && r.lost > 0 {
		c.enterRecovery(now, r)
	}
	if c.rec.kind == recovering {
		c.reduceProportionally(r)
	}
}

func (c *Conn) enterRecovery(now clock.Time, r *round) {
	c.trouble.fastRecoveries++
	c.disturbed(now)
	c.rec.kind = recovering
	c.rec.point = c.snd.nxt
	c.board.rescued = false
	c.beginUndo(false)
	c.trouble.tlp = tlp{}
	c.flags &^= flagOverslept
	c.timers[timerProbe] = clock.Never
	c.cc.OnLoss(c.lossEvent(now, congestion.Detected, r.flight))
	if c.cc.Cwnd() < c.cc.Ssthresh() {
		c.startOver(now, r)
		return
	}
	// RFC 9937 §6.1: what was delivered before recovery is not delivered in it.
	c.rec.delivered, c.rec.out = 0, 0
	before := c.sent.bytes[sacked] + c.rec.dupBytes - (r.delivered - r.advance)
	c.rec.flight = max(r.flight-max(before, 0), c.snd.mss)
	c.sample(now)
}

// startOver turns fast recovery into the slow start of an algorithm that has no
// fast recovery (Tahoe): it goes on as after a time-out. Without SACK all that is
// in flight is sent again, because nothing would tell what else is missing.
func (c *Conn) startOver(now clock.Time, r *round) {
	r.restarted = true
	c.rec.kind, c.rec.force, c.rec.dupBytes, c.rec.over = restarting, true, 0, true
	if !c.how.sack {
		for l := &c.sent.lists[inFlight]; l.n > 0; {
			c.sent.move(l.head, c.sent.at(l.head), lost)
		}
	}
	c.sample(now)
}

func (c *Conn) lossEvent(now clock.Time, k congestion.Kind, flight int) *congestion.Loss {
	c.noteReduction()
	if k == congestion.Detected || k == congestion.Echo {
		flight = c.limit.batch.flightSize(now, flight, c.stats.dataSegsOut)
	}
	l := &c.host.loss
	*l = congestion.Loss{
		Now: now, Kind: k, MSS: c.snd.mss,
		FlightSize: c.lossFlight(now, k, flight), InFlight: c.pipe(),
	}
	return l
}

// reduceProportionally is RFC 9937 §6.2: what each acknowledgment in recovery
// lets out, so that the flight shrinks to ssthresh as evenly as it drains.
func (c *Conn) reduceProportionally(r *round) {
	p, target := &c.rec, c.cc.Ssthresh()
	if target == 0 {
		return
	}
	delivered := r.delivered + r.dupDelivered
	if delivered == 0 && p.out > 0 {
		return // a timer: what it found lost has made room below cwnd
	}
	p.delivered += delivered
	pipe := c.pipe()
	var n int
	if pipe > target {
		n = ceilDiv(p.delivered*target, p.flight) - p.out
	} else {
		n = max(p.delivered-p.out, delivered)
		if r.advance > 0 && r.lost == 0 {
			n += c.snd.mss // the acknowledgment is safe: recovery makes progress
		}
		n = min(target-pipe, n)
	}
	if p.out == 0 && n <= 0 {
		n = c.snd.mss // the fast retransmit itself
	}
	p.cwnd = pipe + max(n, 0)
}

// holdsGrowth reports whether an acknowledgment must not grow the window: in
// fast recovery; before its beginning, while data is only reported by SACK (RFC
// 3042 §2), unless this path is known to reorder; without SACK as its end, which
// acknowledges all that duplicates stood for (RFC 5681 §3.2 step 6); and when it
// echoes a mark (RFC 3168 §6.1.2).
func (c *Conn) holdsGrowth(r *round) bool {
	return c.rec.kind == recovering || r.marked || r.restarted || r.recovering && !c.how.sack ||
		c.rec.kind == steady && r.advance == 0 && !c.rack.reordering
}

// credit returns the bytes by which an acknowledgment lets the window grow. In
// Tahoe's slow start, and in that after a time-out without SACK, what was sent
// before it does not count: it leaves the network, or left it long ago, whatever
// the window is, and a window grown by it would be back at ssthresh at once. RFC
// 5681 §3.1 (2) has it count for a segment at most where snd.una moves.
func (c *Conn) credit(r *round) int {
	switch {
	case !r.restarting:
		return r.delivered
	case r.advance == 0:
		return r.delivered - r.earlier
	}
	return max(r.delivered-r.earlier, min(r.delivered, c.snd.mss))
}

// mayEcho reports whether duplicate acknowledgments may come from segments that
// the last recovery sent again: up to the recovery point (RFC 6582 §3.2 step 2),
// and at it if segments behind a filled hole had been sent again (RFC 6582 §4.1).
func (c *Conn) mayEcho() bool {
	return c.snd.una < c.rec.point || c.snd.una == c.rec.point && c.rec.leapt
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// allowance returns how many bytes congestion control lets out now.
func (c *Conn) allowance() int {
	if c.rec.kind == recovering && c.cc.Ssthresh() != 0 {
		left := c.rec.cwnd - c.pipe()
		if left <= 0 {
			return 0
		}
		// In whole segments: the excess is in out, and the next acknowledgment allows less.
		return max(left, c.snd.mss)
	}
	return c.cc.Cwnd() - c.pipe()
}

// spend takes what was sent off the allowance.
func (c *Conn) spend(n int) {
	if c.rec.kind == recovering {
		c.rec.out += n
	}
	c.rec.force = false
}
