package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// ackArrives takes an acknowledgment of something between SND.UNA and SND.NXT.
func (c *Conn) ackArrives(now clock.Time, s *Segment, seq, ack uint64) {
	c.stats.lastAck = now
	r := c.snd.rec.BeginAck(now)
	r.Marked, r.Exact = c.echoed(s), c.hs.has(flagDCTCP)
	if c.hs.has(flagStamps) && s.Options.HasTimestamps {
		r.Echo = recovery.Echo{
			Tick: s.Options.TSEcr - c.stamps.offset, Known: true,
			Transit: s.Options.TSVal - s.Options.TSEcr,
		}
	}
	if ack > c.snd.Una {
		c.settled()
	}
	room, mtuFound, news := c.snd.take(now, s, seq, ack, r)
	if room {
		c.raise(Writable)
	}
	if mtuFound {
		c.host.peers.found(now, c.tuple.RemoteAddr, &c.snd.path)
	}
	if !news {
		return
	}
	if c.snd.rec.Record.Empty() {
		c.idle(now)
	}
	c.sample(now)
}

// echoed reports whether a segment says that one of ours was marked.
func (c *Conn) echoed(s *Segment) bool {
	return c.hs.has(flagECN) && s.Flags.Has(ECE) && !s.Flags.Has(SYN)
}

// take is the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4, for an acknowledgment
// between SND.UNA and SND.NXT on a segment that begins at seq. It reports whether the user may
// write more, whether path.MTU is larger, and whether there is any news.
func (d *sender) take(
	now clock.Time, s *Segment, seq, ack uint64, r *recovery.Ack,
) (room, mtuFound, news bool) {
	v := &d.rec
	if d.isDuplicate(s, ack) {
		r.Dups = s.Count
	}
	reopened := d.update(s, seq)
	if seq == d.wl1 && d.wnd > 0 && d.probing() {
		d.stopProbing(now)
	}
	if d.wnd == 0 {
		v.Retries = 0 // it answers, if only to say no: RFC 9293 §3.8.6.1
	}
	var blocks []buffer.Range
	if s.Options.SACKCount > 0 {
		var buf [maxSACKBlocks]buffer.Range
		blocks = s.Options.blocks(d.Una, &buf)
	}
	r.Take(ack, blocks)
	if ack > d.Una {
		d.wait.since = now
		room = d.acknowledge(ack)
	}
	d.path.acked = max(d.path.acked, r.Largest)
	if r.Probed && d.path.arrived() {
		d.refit()
		mtuFound = true
	}
	if r.Delivered == 0 && r.Dups == 0 && r.DSACK == 0 && !reopened {
		return room, mtuFound, false // nothing new: a storm of these costs no more than this
	}
	r.Digest(d.unsent() > 0 && d.usable() > 0, d.probing())
	d.path.lost(r.LostProbes)
	if r.Delivered > 0 {
		room = d.grow(v.CC.Cwnd()) || room
	}
	if v.Record.Empty() && d.probing() && r.Delivered > 0 {
		d.persist.at = clock.Never // the probe's byte was taken: begin again
	}
	return room, mtuFound, true
}
