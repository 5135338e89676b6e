package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// round is what one acknowledgment changed.
type round struct {
	now           clock.Time
	flight, prior int    // nxt - una, and pipe, before it
	advance       int    // how far una moved
	delivered     int    // bytes that newly arrived, by una or by SACK
	segments      int    // segments that newly arrived
	fack          uint64 // the highest end among them
	lost          int    // segments newly thought lost
	dups          int    // duplicate acknowledgments: one, or those of a train
	dsack         bool
	dsackEnd      uint64
	firstSent     clock.Time // of what was delivered and sent only once: the oldest,
	lastSent      clock.Time // and the newest
	again         bool       // something was delivered that was sent again
	againSent     clock.Time // the last transmission of the first segment, if it is one of those
	earlier       int        // bytes delivered that were sent once, before the recovery
	rate          rateSample
	dupDelivered  int  // bytes that a duplicate ACK stands for, without SACK
	moved         bool // the window moved too
	restarted     bool // its losses made the algorithm start over
	recovering    bool // fast recovery was in progress,
	restarting    bool // or a slow start in which what was sent before does not count (credit)
	echoed        bool // it carries an echo (RFC 7323 §3.2),
	echo          uint32
	marked        bool // it echoes a mark
}

// ackArrives takes an acknowledgment of something between snd.una and snd.nxt:
// the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4.
func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	r := &c.host.round
	*r = round{now: now, flight: int(c.snd.nxt - c.snd.una), prior: c.pipe()}
	c.limit.batch.gather(now, r.flight, c.stats.dataSegsOut)
	c.stats.lastAck = now
	r.marked = c.echoed(s)
	r.echoed, r.echo = c.has(flagStamps) && s.Options.HasTimestamps, s.Options.TSEcr
	if c.isDuplicate(s, ack) {
		r.dups = s.Count
		c.trouble.dupAcksIn += uint64(s.Count)
	}
	c.updateSendWindow(now, s, seq, r)
	if c.snd.wnd == 0 {
		c.stats.retries = 0 // it answers, if only to say no: RFC 9293 §3.8.6.1
	}
	if c.how.sack && s.Options.SACKCount > 0 {
		c.takeSACK(&s.Options, ack, r)
	}
	if ack > c.snd.una {
		c.acknowledge(ack, r)
	}
	if r.delivered == 0 && r.dups == 0 && !r.dsack && !r.moved {
		return // nothing new: a storm of these costs no more than this
	}
	c.digest(now, r)
	c.sample(now)
}

// isDuplicate is RFC 5681 §2's definition of a duplicate acknowledgment. What
// answers a probe of a shut window says that it is shut, not that anything was
// lost.
func (c *Conn) isDuplicate(s *Segment, ack uint64) bool {
	return ack == c.snd.una && !c.sent.empty() && !c.probing() && s.Len == 0 && !s.Flags.Has(FIN) &&
		c.peerWindow(s) == c.snd.wnd
}

// acknowledge moves snd.una and forgets what it passes.
func (c *Conn) acknowledge(ack uint64, r *round) {
	r.advance = int(ack - c.snd.una)
	if !c.sent.empty() {
		if rec := c.sent.at(c.sent.first); rec.flags&recAgain != 0 {
			r.againSent = rec.sentAt
		}
	}
	c.moved(r.now)
	for !c.sent.empty() {
		rec := c.sent.at(c.sent.first)
		if rec.end() > ack {
			break
		}
		if rec.place != sacked {
			c.deliver(rec, r)
		}
		c.sent.pop()
	}
	if !c.sent.empty() {
		if rec := c.sent.at(c.sent.first); rec.seq < ack {
			n := int(ack - rec.seq)
			if rec.place != sacked {
				r.delivered += n
			}
			c.sent.cut(n)
		}
	}
	c.snd.una = ack
	text := ack
	if c.snd.fin != 0 {
		text = min(text, c.snd.fin)
	}
	if off := c.txOffset(text); off > c.tx.Head() {
		c.stats.bytesAcked += off - c.tx.Head()
		c.tx.Release(off)
		c.raise(Writable)
	}
}

// deliver notes that a segment arrived, the first time that this is known.
func (c *Conn) deliver(rec *record, r *round) {
	r.delivered += int(rec.size)
	r.segments++
	again := rec.flags&recAgain != 0
	r.again = r.again || again
	if !again && rec.end() <= c.rec.point {
		r.earlier += int(rec.size)
	}
	if !again {
		c.pmtu.acked = max(c.pmtu.acked, rec.text())
		if r.firstSent == clock.Never || rec.sentAt < r.firstSent {
			r.firstSent = rec.sentAt
		}
		r.lastSent = max(r.lastSent, rec.sentAt)
	}
	r.fack = max(r.fack, rec.end())
	c.rack.order(rec.end(), again, &c.trouble)
	if !again || rec.place != inFlight || !c.echoesEarlier(rec, r) {
		c.rack.update(rec, r.now, c.rtt.lowest())
	}
	if rec.flags&recMTUProbe != 0 {
		c.mtuProbeArrived(r.now)
	}
	r.rate.note(&c.sent, rec)
}

// digest draws the conclusions: what is the round trip, what is lost, what may
// be sent, when to try again.
func (c *Conn) digest(now clock.Time, r *round) {
	if r.delivered > 0 {
		c.sent.delivered += uint64(r.delivered)
		c.sent.deliveredAt = now
		c.rack.fack = max(c.rack.fack, r.fack)
		c.stats.delivered += uint64(r.segments)
		c.stats.retries = 0
		c.trouble.spells.end(now)
		c.measure(now, r)
	}
	c.adaptReordering(r)
	c.how.detect(c, now, r)
	c.probeAnswered(now, r)
	c.recover(now, r)
	c.control(now, r)
	c.rearm(now, r)
}

// measure takes the round trip sample. Its oldest segment counts for the
// time-out, because a delayed acknowledgment is part of what the time-out must
// survive; its newest for the minimum.
func (c *Conn) measure(now clock.Time, r *round) {
	// RFC 6298 §3: never from a segment that was sent twice, nor from one that may have waited
	// for such a segment: the acknowledgment that said so when it came may be lost.
	if r.firstSent == clock.Never || r.again {
		c.measureAgain(now, r)
		return
	}
	share := (r.flight + r.delivered - 1) / r.delivered
	c.rtt.sample(now, now.Sub(r.firstSent), share, &c.host.cfg)
	c.rtt.minimum(now, max(now.Sub(r.lastSent), time.Nanosecond))
	c.stats.backoff = 0 // RFC 6298 §5.7: a new measurement ends the backing off
}

// rearm sets the time-outs that wait for the next acknowledgment.
func (c *Conn) rearm(now clock.Time, r *round) {
	if c.sent.empty() {
		if c.probing() && r.delivered > 0 {
			c.timers[timerPersist] = clock.Never // the probe's byte was taken: begin again
		}
		// RFC 6298 §5.2: all is acknowledged.
		c.timers[timerRTO], c.timers[timerProbe] = clock.Never, clock.Never
		c.timers[timerReorder] = clock.Never
		c.idle(now)
		return
	}
	if c.probing() {
		return
	}
	// RFC 6298 §5.3, where a selective acknowledgment counts as new data too: the time-out is
	// for silence, and RACK finds a hole sooner.
	if r.delivered > 0 {
		c.trouble.tlp.due, c.trouble.tlp.inside = false, false
		c.flags &^= flagOverslept
		c.armRTO(now)
		c.armProbe(now)
	}
}
