package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// sender is the sending half of a connection: the send sequence space (RFC 9293 §3.3.1, figure 3),
// the data that the user has written, and its recovery. It does not refer to the connection.
type sender struct {
	recovery.Space
	cfg      *Config
	rec      recovery.Recovery
	path     pathMTU
	wait     userTimeout
	persist  persist
	limit    limited
	pace     clock.Time // when delayed data may leave
	corkEnds clock.Time // when to send a short segment despite Cork
	tx       *buffer.Ring
	txMax    int // maximum size of tx
	iss      uint64
	wl1      uint64 // SEG.SEQ of the segment that last updated wnd
	fin      uint64 // sequence number of our FIN; zero: not sent yet
	smallEnd uint64 // end of the last segment sent below the MSS (Nagle)
	wnd      int    // the peer's window, unscaled
	maxWnd   int    // the largest value of wnd so far
	port     uint16 // our port
	scale    uint8
	closed   bool // the user does not write any more
	finAlone bool // our FIN waits for all data to be acknowledged
	nagle    nagle
}

// nagle holds back short segments: RFC 9293 §3.7.4.
type nagle struct {
	off         bool
	cork        bool // all short segments are held back
	corkExpired bool // a short segment has been held back long enough
}

// corkTime is how long a cork holds back a short segment, as in Linux.
const corkTime = 200 * time.Millisecond

// begin sets our initial sequence number.
func (d *sender) begin(iss uint32) {
	d.iss = wide(iss)
	d.Una, d.Nxt = d.iss, d.iss+1
}

// beginAfter sets an initial sequence number beyond all sequence numbers of the last connection
// with the same tuple. The ISN clock of RFC 9293 §3.4.1 may advance more slowly than the sequence
// numbers that we use (RFC 1122 §4.2.2.13 (a)).
func (d *sender) beginAfter(last *timeWait) { d.begin(last.sndNxt + 1<<16) }

func (d *sender) offset(seq uint64) uint64 { return seq - d.iss - 1 }

// usable returns how many bytes of new data the peer's window admits. It is negative after the peer
// has shrunk its window.
func (d *sender) usable() int { return d.wnd - int(d.Nxt-d.Una) }

func (d *sender) unsent() int {
	if d.fin != 0 {
		return 0
	}
	return int(d.tx.Tail() - d.offset(d.Nxt))
}

// waits reports whether new data or the FIN waits to be sent.
func (d *sender) waits() bool { return d.unsent() > 0 || d.closed && d.fin == 0 }

// onlyFIN reports whether only our FIN is unacknowledged.
func (d *sender) onlyFIN() bool { return d.fin != 0 && d.Una == d.fin }

// delivered reports whether the peer has acknowledged all data before our FIN.
func (d *sender) delivered() bool { return d.fin != 0 && d.Una >= d.fin }

// addPayload adds the data [seq, seq+n) to a train of segments of size mss.
func (d *sender) addPayload(t *Train, seq uint64, n, mss int) {
	t.MSS, t.Len = mss, n
	if n == 0 {
		return
	}
	from := d.offset(seq)
	t.Payload = d.tx.Slices(t.Payload, from, n)
	if from+uint64(n) == d.tx.Tail() {
		t.Flags |= PSH // RFC 9293 §3.9.1.2: no more data is waiting
	}
}

// admitted returns how many of the waiting bytes may leave now, in whole segments or all of them
// (RFC 9293 §3.8.6.2.1), and what limits them. most is what fits a train, and allowed what
// congestion control allows.
func (d *sender) admitted(now clock.Time, waiting, most, allowed int) (int, Limit) {
	allowed, remainder := d.rec.Allow(allowed, waiting)
	n, why := d.fits(waiting, most, allowed, remainder)
	if why == LimitCork && d.corkEnds == clock.Never {
		d.corkEnds = now.Later(corkTime)
	}
	return n, why
}

// fits does the part of admitted that needs no clock. With remainder, the last segment may be
// shorter than the MSS because the peer's window ends there.
func (d *sender) fits(waiting, most, allowed int, remainder bool) (int, Limit) {
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
		} else if n < d.maxWnd/2 && !remainder {
			// Silly window avoidance: wait for a larger window or for the persist timer.
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

// holdsTail returns why a short segment must wait (Nagle's algorithm with Minshall's refinement: it
// waits only for another short segment).
func (d *sender) holdsTail() Limit {
	switch {
	case d.closed, d.nagle.cork && d.nagle.corkExpired:
		return LimitNone
	case d.nagle.cork:
		return LimitCork
	case !d.nagle.off && d.smallEnd > d.Una:
		return LimitNagle
	}
	return LimitNone
}

// opening reports whether our SYN is unacknowledged.
func (d *sender) opening() bool { return d.Una == d.iss }

// pending reports whether anything is in flight or waits for the peer's window.
func (d *sender) pending() bool {
	return d.opening() || !d.rec.Record.Empty() || d.probing()
}

// wants reports whether the sender has something to send, now or later.
func (d *sender) wants() bool {
	return d.wait.due || d.persist.due || !d.rec.Idle() && d.rec.Kept.TLP.Due ||
		!d.opening() && d.waits()
}

// quiet reports whether nothing is in flight, held back or being retransmitted.
func (d *sender) quiet() bool {
	return d.rec.Record.Empty() && !d.probing() && d.rec.Episode.Open() && d.pace == clock.Never
}

// limitBy sets what limits the sender now, and calls the probe if that has changed.
func (d *sender) limitBy(now clock.Time, by Limit) {
	changed := by != d.limit.by
	d.limit.set(now, by)
	if by == LimitCwnd || by == LimitRecovery {
		d.rec.CwndLimited()
	}
	if changed && d.rec.Changed != nil {
		d.rec.Changed(now)
	}
}

// updateMSS sets the MSS from the path, the peer and the user's limit. If it shrinks, updateMSS
// splits the records of the sent queue: RFC 5681 §3.1's loss window is one segment of the new size.
func (d *sender) updateMSS() {
	before := d.MSS
	d.MSS = d.path.mss(d.path.MTU)
	if d.MSS < before && !d.rec.Idle() && !d.rec.Record.Empty() {
		d.rec.Recut(d.MSS)
	}
}

// deadline returns when advance or the retransmission timeout is due next, in the form of
// clock.Time.Order.
func (d *sender) deadline() uint64 {
	at := &d.rec.At
	first := min(at.RTO.Order(), at.Probe.Order(), at.Reorder.Order(), d.persist.at.Order(),
		d.pace.Order(), d.corkEnds.Order(), d.wait.at.Order())
	if d.rec.CC.Timed {
		first = min(first, d.rec.CC.Deadline().Order())
	}
	return first
}

// advance runs the timers that are due, except the retransmission timeout. An error ends the
// connection.
func (d *sender) advance(now clock.Time) error {
	fired(&d.pace, now) // the next Output sends the data
	d.path.lost(d.rec.Advance(now))
	if fired(&d.persist.at, now) && !d.onPersist(now) {
		return ErrTimeout
	}
	if fired(&d.corkEnds, now) {
		d.nagle.corkExpired = true
	}
	if fired(&d.wait.at, now) && d.wait.expired(now, d.pending()) {
		return ErrUserTimeout
	}
	return nil
}

// stop is called when the connection is over.
func (d *sender) stop() {
	d.persist.at, d.pace, d.corkEnds, d.wait.at = 0, 0, 0, 0
	d.rec.Stop()
}
