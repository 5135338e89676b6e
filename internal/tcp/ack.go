package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// ackArrives takes an acknowledgment of something between snd.Una and snd.Nxt:
// the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4.
func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	v := &c.rec
	r := v.beginRound(now)
	v.rounds.batch.gather(now, r.flight, v.sent.transmissions)
	c.stats.lastAck = now
	r.marked, r.exact = c.echoed(s), c.has(flagDCTCP)
	if c.has(flagStamps) && s.Options.HasTimestamps {
		r.echo = echo{
			s.Options.TSEcr - c.stamps.offset, true, s.Options.TSVal - s.Options.TSEcr,
		}
	}
	if c.isDuplicate(s, ack) {
		r.dups = s.Count
		v.lasting.counts.DupAcks += uint64(s.Count)
	}
	r.moved = c.snd.update(s, seq)
	if seq == c.snd.wl1 && c.snd.wnd > 0 && c.probing() {
		c.stopProbing(now)
	}
	if c.snd.wnd == 0 {
		v.retries = 0 // it answers, if only to say no: RFC 9293 §3.8.6.1
	}
	if v.how.sack && s.Options.SACKCount > 0 {
		var buf [maxSACKBlocks]buffer.Range
		v.takeSACK(s.Options.blocks(c.snd.Una, &buf), ack, r)
	}
	if ack > c.snd.Una {
		c.acknowledge(ack, r)
	}
	c.path.acked = max(c.path.acked, r.mtu.largest)
	if r.mtu.arrived {
		c.mtuProbeArrived(now)
	}
	if r.delivered == 0 && r.dups == 0 && !r.dsack && !r.moved {
		return // nothing new: a storm of these costs no more than this
	}
	v.digest(r, c.snd.unsent() > 0 && c.snd.usable() > 0, c.probing())
	c.path.lost(r.mtu.lost)
	if r.delivered > 0 && c.snd.grow(v.cc.Cwnd()) {
		c.raise(Writable)
	}
	if v.sent.empty() {
		if c.probing() && r.delivered > 0 {
			c.timers[timerPersist] = clock.Never // the probe's byte was taken: begin again
		}
		c.idle(now)
	}
	c.sample(now)
}

// isDuplicate is RFC 5681 §2's definition of a duplicate acknowledgment. What
// answers a probe of a shut window says that it is shut, not that anything was
// lost.
func (c *Conn) isDuplicate(s *Segment, ack uint64) bool {
	return ack == c.snd.Una && !c.rec.sent.empty() && !c.probing() && s.Len == 0 &&
		!s.Flags.Has(FIN) && c.snd.offered(s) == c.snd.wnd
}

// acknowledge moves snd.Una and forgets what it passes.
func (c *Conn) acknowledge(ack uint64, r *round) {
	r.advance = int(ack - c.snd.Una)
	c.wait.since = r.now
	c.settled()
	c.rec.acknowledge(ack, r)
	if n := c.snd.acknowledge(ack); n > 0 {
		c.stats.bytesAcked += n
		c.raise(Writable)
	}
}

// echoed reports whether a segment says that one of ours was marked.
func (c *Conn) echoed(s *Segment) bool {
	return c.has(flagECN) && s.Flags.Has(ECE) && !s.Flags.Has(SYN)
}
