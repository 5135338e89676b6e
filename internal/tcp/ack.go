package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
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
	rtt           sampled
	earlier       int // bytes delivered that were sent once, before the recovery
	rate          rateSample
	dupDelivered  int  // bytes that a duplicate ACK stands for, without SACK
	moved         bool // the window moved too
	restarted     bool // its losses made the algorithm start over
	recovering    bool // fast recovery was in progress,
	restarting    bool // or a slow start in which what was sent before does not count (credit)
	goBack        bool // go-back-N begins a recovery
	marked        bool // it echoes a mark
	echo          echo
	mtu           mtuNews
	reorder       clock.Time // when to look again for losses
	snd           sending
}

// sampled is when what was delivered had been sent.
type sampled struct {
	first, last clock.Time // of what was sent only once: the oldest and the newest
	again       bool       // something was sent more than once
	againSent   clock.Time // the last transmission of the first segment, if it is one of those
}

// mtuNews is what was learned of the sizes that the path carries.
type mtuNews struct {
	largest int  // the most data of a segment that arrived and was sent only once
	arrived bool // a probe arrived
	lost    int  // probes that were lost
}

// ackArrives takes an acknowledgment of something between snd.una and snd.nxt:
// the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4.
func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	r := c.beginRound(now)
	c.limit.batch.gather(now, r.flight, c.stats.dataSegsOut)
	c.stats.lastAck = now
	r.marked = c.echoed(s)
	if c.has(flagStamps) && s.Options.HasTimestamps {
		r.echo = echo{
			s.Options.TSEcr - c.stamps.offset, true, s.Options.TSVal - s.Options.TSEcr,
		}
	}
	if c.isDuplicate(s, ack) {
		r.dups = s.Count
		c.trouble.counts.DupAcks += uint64(s.Count)
	}
	r.moved = c.snd.update(s, seq)
	if seq == c.snd.wl1 && c.snd.wnd > 0 && c.probing() {
		c.stopProbing(now)
	}
	if c.snd.wnd == 0 {
		c.stats.retries = 0 // it answers, if only to say no: RFC 9293 §3.8.6.1
	}
	if c.how.sack && s.Options.SACKCount > 0 {
		var buf [maxSACKBlocks]buffer.Range
		c.rec.takeSACK(s.Options.blocks(c.snd.una, &buf), ack, r)
	}
	if ack > c.snd.una {
		c.acknowledge(ack, r)
	}
	c.path.acked = max(c.path.acked, r.mtu.largest)
	if r.mtu.arrived {
		c.mtuProbeArrived(now)
		r.snd.mss = c.snd.mss
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
	return ack == c.snd.una && !c.rec.sent.empty() && !c.probing() && s.Len == 0 &&
		!s.Flags.Has(FIN) && c.snd.offered(s) == c.snd.wnd
}

// acknowledge moves snd.una and forgets what it passes.
func (c *Conn) acknowledge(ack uint64, r *round) {
	r.advance = int(ack - c.snd.una)
	c.wait.since = r.now
	c.settled()
	c.rec.acknowledge(ack, r)
	r.snd.una = ack
	if n := c.snd.acknowledge(ack); n > 0 {
		c.stats.bytesAcked += n
		c.raise(Writable)
	}
}

// digest draws the conclusions: what is the round trip, what is lost, what may
// be sent, when to try again.
func (c *Conn) digest(now clock.Time, r *round) {
	if r.delivered > 0 {
		c.rec.sent.delivered += uint64(r.delivered)
		c.rec.sent.deliveredAt = now
		c.rec.rack.fack = max(c.rec.rack.fack, r.fack)
		c.stats.delivered += uint64(r.segments)
		c.stats.retries = 0
		c.trouble.spells.end(now)
		c.measure(now, r)
		r.snd.minRTT, r.snd.srtt = c.rtt.lowest(), c.rtt.srtt
	}
	c.rec.rack.adaptReordering(r, c.trouble.tlp.end)
	c.detect(r)
	if r.goBack {
		c.goBack(now, r)
	}
	c.probeAnswered(now, r)
	c.recover(now, r)
	c.control(now, r)
	c.rearm(now, r)
}

// detect finds out what is lost by now.
func (c *Conn) detect(r *round) {
	c.how.detect(&c.rec, r)
	c.timers[timerReorder] = r.reorder
	c.path.lost(r.mtu.lost)
}

// measure takes the round trip sample. Its oldest segment counts for the
// time-out, because a delayed acknowledgment is part of what the time-out must
// survive; its newest for the minimum.
func (c *Conn) measure(now clock.Time, r *round) {
	// RFC 6298 §3: never from a segment that was sent twice, nor from one that may have waited
	// for such a segment: the acknowledgment that said so when it came may be lost.
	if r.rtt.first == clock.Never || r.rtt.again {
		c.measureAgain(now, r)
		return
	}
	share := (r.flight + r.delivered - 1) / r.delivered
	c.rtt.sample(now, now.Sub(r.rtt.first), share, &c.host.cfg)
	c.rtt.minimum(now, max(now.Sub(r.rtt.last), time.Nanosecond))
	c.stats.backoff = 0 // RFC 6298 §5.7: a new measurement ends the backing off
}

// rearm sets the time-outs that wait for the next acknowledgment.
func (c *Conn) rearm(now clock.Time, r *round) {
	if c.rec.sent.empty() {
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
