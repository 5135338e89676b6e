package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// takeACK is the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4, for an acknowledgment
// between SND.UNA and SND.NXT on a segment that begins at seq. It reports whether the user may
// write more, whether path.MTU is larger, and whether there is any news.
func (d *sender) takeACK(
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
	d.path.acked = max(d.path.acked, uint16(r.Largest))
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
