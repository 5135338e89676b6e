package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// sender is the sending half of a connection: the send sequence space of RFC 9293 §3.3.1, figure 3,
// in wide numbers, and what the user has written. It knows neither the connection nor its receiving
// half.
type sender struct {
	recovery.Space
	tx       *buffer.Ring
	txMax    int // what tx may grow to
	iss      uint64
	wl1      uint64 // SEG.SEQ of the segment that last updated wnd
	fin      uint64 // the number of our FIN, zero before it is sent
	smallEnd uint64 // end of the last segment sent below the MSS (Nagle)
	wnd      int    // the peer's window, unscaled
	maxWnd   int    // the largest it has been
	scale    uint8
	probes   uint8 // window probes in a row
	probeDue bool  // one is to be sent
	closed   bool  // the user writes no more
	nagle    nagle
}

// nagle is what holds back short segments: RFC 9293 §3.7.4.
type nagle struct {
	off     bool
	cork    bool // all of them are held back
	corkOut bool // one has been held back long enough
}

// begin takes our initial sequence number.
func (d *sender) begin(iss uint32) {
	d.iss = wide(iss)
	d.Una, d.Nxt = d.iss, d.iss+1
}

// succeed begins beyond all that the last incarnation used, which at our speeds
// the clock of RFC 9293 §3.4.1 need not (RFC 1122 §4.2.2.13 (a)).
func (d *sender) succeed(last *timeWait) { d.begin(last.sndNxt + 1<<16) }

// offset turns a sequence number into an offset in tx.
func (d *sender) offset(seq uint64) uint64 { return seq - d.iss - 1 }

// offered returns the window that a segment offers.
func (d *sender) offered(s *Segment) int {
	if s.Flags.Has(SYN) {
		return int(s.Window) // RFC 7323 §2.2: never scaled
	}
	return int(s.Window) << d.scale
}

// update takes the peer's window from the newest segment (RFC 9293
// §3.10.7.4, fifth step), and reports whether it has changed. The step asks for SND.WL2 =< SEG.ACK
// where SEG.SEQ is SND.WL1, and for SND.UNA =< SEG.ACK always. SND.WL2 never exceeds SND.UNA, so
// checkACK, which lets no older ACK come here, has checked both.
func (d *sender) update(s *Segment, seq uint64) bool {
	if seq < d.wl1 {
		return false
	}
	d.wl1 = seq
	wnd := d.offered(s)
	changed := wnd != d.wnd
	d.wnd, d.maxWnd = wnd, max(d.maxWnd, wnd)
	return changed
}

// acknowledge moves SND.UNA, and returns how many bytes of tx that frees.
func (d *sender) acknowledge(ack uint64) (freed uint64) {
	d.Una = ack
	if d.fin != 0 {
		ack = min(ack, d.fin)
	}
	if off, head := d.offset(ack), d.tx.Head(); off > head {
		d.tx.Release(off)
		return off - head
	}
	return 0
}

// usable returns how many bytes of new data the peer's window admits; it
// is negative after the peer has taken a window back.
func (d *sender) usable() int { return d.wnd - int(d.Nxt-d.Una) }

// unsent returns how many bytes in tx were never sent.
func (d *sender) unsent() int {
	if d.fin != 0 {
		return 0
	}
	return int(d.tx.Tail() - d.offset(d.Nxt))
}

// waits reports whether data, or the FIN, waits to be sent for the first time.
func (d *sender) waits() bool { return d.unsent() > 0 || d.closed && d.fin == 0 }

// onlyFIN reports whether our FIN is all that is not acknowledged.
func (d *sender) onlyFIN() bool { return d.fin != 0 && d.Una == d.fin }

// delivered reports whether the peer has acknowledged all data before our FIN.
func (d *sender) delivered() bool { return d.fin != 0 && d.Una >= d.fin }

// lend adds the data [seq, seq+n) to a train of segments of size mss.
func (d *sender) lend(t *Train, seq uint64, n, mss int) {
	t.MSS, t.Len = mss, n
	if n == 0 {
		return
	}
	from := d.offset(seq)
	t.Payload = d.tx.Slices(t.Payload, from, n)
	if from+uint64(n) == d.tx.Tail() {
		t.Flags |= PSH // RFC 9293 §3.9.1.2: nothing more is waiting
	}
}

// admitted returns how many of the waiting bytes may leave now, and what the
// limit was: whole segments, or all that there is (RFC 9293 §3.8.6.2.1). Most is what fits a train,
// allowed what congestion control lets out. With crumbs what the peer's window has left is enough.
func (d *sender) admitted(waiting, most, allowed int, crumbs bool) (int, Limit) {
	mss, usable := d.MSS, d.usable()
	n, why := waiting, LimitNone
	if n > most {
		n, why = most/mss*mss, LimitNone
	}
	if n > allowed {
		n, why = max(allowed, 0)/mss*mss, LimitCwnd
	}
	if n > usable {
		n, why = max(usable, 0), LimitReceiver
		if n >= mss {
			n = n / mss * mss
		} else if n < d.maxWnd/2 && !crumbs {
			// Less than a segment, and less than half of what the window has been: wait for
			// more, or for the persist timer to say that there will be no more.
			n = 0
		}
	}
	if tail := n % mss; n == waiting && tail != 0 {
		if held := d.holdsTail(); held != LimitNone {
			return n - tail, held
		}
	}
	return n, why
}

// holdsTail returns what holds a short segment back. Nagle's algorithm with Minshall's refinement:
// it waits only for another short one.
func (d *sender) holdsTail() Limit {
	switch {
	case d.closed, d.nagle.cork && d.nagle.corkOut:
		return LimitNone
	case d.nagle.cork:
		return LimitCork
	case !d.nagle.off && d.smallEnd > d.Una:
		return LimitNagle
	}
	return LimitNone
}

// grow makes tx follow the congestion window: what is in flight, and as much again that the user
// may write meanwhile. It reports whether tx has grown.
func (d *sender) grow(cwnd int) bool {
	limit := d.tx.Limit()
	want := min(2*cwnd, d.txMax)
	if want <= limit {
		return false
	}
	d.tx.SetLimit(want)
	return true
}
