package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// ackEffect is what an acknowledgment has changed for others than the sender.
type ackEffect struct {
	moved    bool // SND.UNA
	room     bool // the user may write more
	mtuFound bool // path.MTU is larger
	news     bool // anything
}

// take is the ESTABLISHED part of the fifth step of RFC 9293 §3.10.7.4, for an acknowledgment
// between SND.UNA and SND.NXT on a segment that begins at seq.
func (d *sender) take(now clock.Time, s *Segment, seq, ack uint64, r *recovery.Ack) (did ackEffect) {
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
		did.moved, did.room = true, d.acknowledge(ack)
	}
	d.path.acked = max(d.path.acked, r.Largest)
	if r.Probed && d.path.arrived() {
		d.refit()
		did.mtuFound = true
	}
	if r.Delivered == 0 && r.Dups == 0 && r.DSACK == 0 && !reopened {
		return did // nothing new: a storm of these costs no more than this
	}
	did.news = true
	r.Digest(d.unsent() > 0 && d.usable() > 0, d.probing())
	d.path.lost(r.LostProbes)
	if r.Delivered > 0 {
		did.room = d.grow(v.CC.Cwnd()) || did.room
	}
	if v.Record.Empty() && d.probing() && r.Delivered > 0 {
		d.persist.at = clock.Never // the probe's byte was taken: begin again
	}
	return did
}

// isDuplicate is RFC 5681 §2's definition of a duplicate acknowledgment. What answers a probe of a
// shut window says that it is shut, not that anything was lost.
func (d *sender) isDuplicate(s *Segment, ack uint64) bool {
	return ack == d.Una && !d.rec.Record.Empty() && !d.probing() && s.Len == 0 &&
		!s.Flags.Has(FIN) && d.offered(s) == d.wnd
}

// blocks returns the ranges that the SACK blocks report, in numbers around una.
func (o *Options) blocks(una uint64, buf *[maxSACKBlocks]buffer.Range) []buffer.Range {
	for i, b := range o.SACK[:o.SACKCount] {
		start := widen(una, b.Start)
		buf[i] = buffer.Range{Start: start, End: start + uint64(b.End-b.Start)}
	}
	return buf[:o.SACKCount]
}
