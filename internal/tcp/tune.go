package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// autotuning is how large a receive buffer is, and may become. A ring's memory comes and goes with
// what is in it; its limit is what tunes itself.
type autotuning struct {
	size, max int
	copied    int           // the most that the user took in one round trip
	rtt       time.Duration // as a receiver sees it: how long a window takes to fill
}

// CheckBuffer reports an ErrOption for a size in bytes that no buffer can have.
func CheckBuffer(n int) error {
	if n < MinBuffer || n > MaxBuffer {
		return fmt.Errorf("tcp: a buffer of %d bytes, want %d to %d: %w",
			n, MinBuffer, MaxBuffer, ErrOption)
	}
	return nil
}

// windowScale returns the shift that lets the largest receive buffer be offered
// whole (RFC 7323 §2.3).
func (r *receiver) windowScale() uint8 {
	var s uint8
	for s < maxWindowScale && 65535<<s < r.tune.max {
		s++
	}
	return s
}

// timeWindow measures the round trip as a receiver can: the peer fills no
// window faster than one a round trip.
func (r *receiver) timeWindow(now clock.Time) {
	if r.nxt < r.reassembly.rttEnd {
		return
	}
	if r.reassembly.rttSince != clock.Never {
		if d := now.Sub(r.reassembly.rttSince); r.tune.rtt == 0 || d < r.tune.rtt {
			r.tune.rtt = d
		}
	}
	r.reassembly.rttSince, r.reassembly.rttEnd = now, r.edge
}

// nearRTT is how long the round trips are of those for whom RecvBufferNear is.
const nearRTT = time.Millisecond

// grow makes the receive buffer follow the user: dynamic right-sizing.
// What is read in one round trip is what arrived in the one before, and a
// sender in slow start doubles it: so twice that, and some segments for what is
// on its way when the reading is slow.
func (r *receiver) grow(now clock.Time, srtt time.Duration) {
	u := &r.tune
	if u.size >= u.max || r.reassembly == nil {
		return
	}
	rtt := u.rtt
	if srtt != 0 && (rtt == 0 || srtt < rtt) {
		rtt = srtt
	}
	if rtt == 0 || now.Sub(r.reassembly.since) < rtt {
		return
	}
	head := r.rx.Head()
	copied := int(head - r.reassembly.head)
	r.reassembly.head, r.reassembly.since = head, now
	if copied <= u.copied {
		return
	}
	u.copied = copied
	want := 2*copied + 16*max(r.mss, defaultMSS)
	most := u.max
	if near := r.shared.cfg.Buffers.RecvNear; rtt < nearRTT && near != 0 {
		most = min(most, near)
	}
	if want = min(want, most); want > u.size {
		u.size = want
		r.rx.SetLimit(want)
	}
}
