package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// ackArrives takes an acknowledgment of something between SND.UNA and SND.NXT:
// the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4.
func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	v := &c.rec
	r := v.BeginAck(now)
	c.stats.lastAck = now
	r.Marked, r.Exact = c.echoed(s), c.hs.has(flagDCTCP)
	if c.hs.has(flagStamps) && s.Options.HasTimestamps {
		r.Echo = recovery.Echo{
			Tick: s.Options.TSEcr - c.stamps.offset, Known: true,
			Transit: s.Options.TSVal - s.Options.TSEcr,
		}
	}
	if c.isDuplicate(s, ack) {
		r.Dups = s.Count
	}
	moved := c.snd.update(s, seq)
	if seq == c.snd.wl1 && c.snd.wnd > 0 && c.probing() {
		c.stopProbing(now)
	}
	if c.snd.wnd == 0 {
		v.Retries = 0 // it answers, if only to say no: RFC 9293 §3.8.6.1
	}
	var blocks []buffer.Range
	if s.Options.SACKCount > 0 {
		var buf [maxSACKBlocks]buffer.Range
		blocks = s.Options.blocks(c.snd.Una, &buf)
	}
	r.Take(ack, blocks)
	if ack > c.snd.Una {
		c.acknowledge(now, ack)
	}
	c.path.acked = max(c.path.acked, r.Largest)
	if r.Probed && c.path.arrived() {
		c.mtuFound(now)
	}
	if r.Delivered == 0 && r.Dups == 0 && r.DSACK == 0 && !moved {
		return // nothing new: a storm of these costs no more than this
	}
	r.Digest(c.snd.unsent() > 0 && c.snd.usable() > 0, c.probing())
	c.path.lost(r.LostProbes)
	if r.Delivered > 0 && c.snd.grow(v.CC.Cwnd()) {
		c.raise(Writable)
	}
	if v.Record.Empty() {
		if c.probing() && r.Delivered > 0 {
			c.timers[timerPersist] = clock.Never // the probe's byte was taken: begin again
		}
		c.idle(now)
	}
	c.sample(now)
}

// mtuFound takes the MTU that a probe has found, for all connections to the host.
func (c *Conn) mtuFound(now clock.Time) {
	c.refit()
	mtus := &c.host.peers.mtus
	if c.path.search == nil {
		mtus.forget(c.tuple.RemoteAddr)
	} else {
		mtus.learn(now, c.tuple.RemoteAddr, c.path.MTU, mtuAge)
	}
}

// isDuplicate is RFC 5681 §2's definition of a duplicate acknowledgment. What answers a probe of a
// shut window says that it is shut, not that anything was lost.
func (c *Conn) isDuplicate(s *Segment, ack uint64) bool {
	return ack == c.snd.Una && !c.rec.Record.Empty() && !c.probing() && s.Len == 0 &&
		!s.Flags.Has(FIN) && c.snd.offered(s) == c.snd.wnd
}

// acknowledge moves SND.UNA.
func (c *Conn) acknowledge(now clock.Time, ack uint64) {
	c.wait.since = now
	c.settled()
	if n := c.snd.acknowledge(ack); n > 0 {
		c.stats.bytesAcked += n
		c.raise(Writable)
	}
}

// echoed reports whether a segment says that one of ours was marked.
func (c *Conn) echoed(s *Segment) bool {
	return c.hs.has(flagECN) && s.Flags.Has(ECE) && !s.Flags.Has(SYN)
}

// blocks returns the ranges that the SACK blocks report, in numbers around una.
func (o *Options) blocks(una uint64, buf *[maxSACKBlocks]buffer.Range) []buffer.Range {
	for i, b := range o.SACK[:o.SACKCount] {
		start := widen(una, b.Start)
		buf[i] = buffer.Range{Start: start, End: start + uint64(b.End-b.Start)}
	}
	return buf[:o.SACKCount]
}
