package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// handleACK processes an acknowledgment between SND.UNA and SND.NXT on a segment that begins at seq
// (RFC 9293 §3.10.7.4, fifth step, ESTABLISHED state). It reports whether the user may write more,
// whether path.MTU has grown, and whether the acknowledgment contains new information.
func (d *sender) handleACK(
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
		v.Retries = 0 // RFC 9293 §3.8.6.1: probes that are answered never end the connection
	}
	var blocks []buffer.Range
	if s.Options.SACKCount > 0 {
		var buf [maxSACKBlocks]buffer.Range
		blocks = s.Options.blocks(d.Una, &buf)
	}
	r.MarkDelivered(ack, blocks)
	if ack > d.Una {
		d.wait.since = now
		room = d.acknowledge(ack)
	}
	d.path.acked = max(d.path.acked, uint16(r.Largest))
	if r.Probed && d.path.arrived() {
		d.updateMSS()
		mtuFound = true
	}
	if r.Delivered == 0 && r.Dups == 0 && r.DSACK == 0 && !reopened {
		return room, mtuFound, false // nothing new: repeated acknowledgments cost little
	}
	r.Process(d.unsent() > 0 && d.usable() > 0, d.probing())
	d.path.lost(r.LostProbes)
	if r.Delivered > 0 {
		room = d.grow(v.CC.Cwnd()) || room
	}
	if v.Record.Empty() && d.probing() && r.Delivered > 0 {
		d.persist.at = clock.Never // the peer accepted the probe's byte: resume sending
	}
	return room, mtuFound, true
}

// isDuplicate reports whether s is a duplicate acknowledgment by the definition of RFC 5681 §2. The
// answer to a window probe is not a duplicate, because it says nothing about losses.
func (d *sender) isDuplicate(s *Segment, ack uint64) bool {
	return ack == d.Una && !d.rec.Record.Empty() && !d.probing() && s.Len == 0 &&
		!s.Flags.Has(FIN) && d.offered(s) == d.wnd
}

// offered returns the window that a segment offers.
func (d *sender) offered(s *Segment) int {
	if s.Flags.Has(SYN) {
		return int(s.Window) // RFC 7323 §2.2: never scaled
	}
	return int(s.Window) << d.scale
}

// update sets the peer's window from the newest segment (RFC 9293 §3.10.7.4, fifth step), and
// reports whether it has changed. The step requires SND.UNA =< SEG.ACK, and if SEG.SEQ is SND.WL1,
// SND.WL2 =< SEG.ACK. checkACK has verified both, because SND.WL2 never exceeds SND.UNA.
func (d *sender) update(s *Segment, seq uint64) bool {
	if seq < d.wl1 {
		return false
	}
	d.wl1 = seq
	before := d.wnd
	d.setWindow(d.offered(s))
	return d.wnd != before
}

func (d *sender) setWindow(n int) { d.wnd, d.maxWnd = n, max(d.maxWnd, n) }

// blocks returns the ranges of the SACK blocks, in 64-bit numbers near una.
func (o *Options) blocks(una uint64, buf *[maxSACKBlocks]buffer.Range) []buffer.Range {
	for i, b := range o.SACK[:o.SACKCount] {
		start := widen(una, b.Start)
		buf[i] = buffer.Range{Start: start, End: start + uint64(b.End-b.Start)}
	}
	return buf[:o.SACKCount]
}

// acknowledge advances SND.UNA, and reports whether that frees bytes of tx.
func (d *sender) acknowledge(ack uint64) bool {
	d.Una = ack
	if d.fin != 0 {
		ack = min(ack, d.fin)
	}
	off := d.offset(ack)
	if off <= d.tx.Head() {
		return false
	}
	d.tx.Release(off)
	return true
}

// grow enlarges tx to twice the congestion window: room for the data in flight, and as much again
// for the user to write. It reports whether tx has grown.
func (d *sender) grow(cwnd int) bool {
	limit := d.tx.Limit()
	want := min(2*cwnd, d.txMax)
	if want <= limit {
		return false
	}
	d.tx.SetLimit(want)
	return true
}
