package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// autotuning is the state of the receive buffer's automatic tuning. It changes only the ring's
// limit, because a ring allocates memory for its contents alone.
type autotuning struct {
	size, max int           // the buffer's size and its maximum
	copied    int           // the most bytes that the user read in one round trip
	rtt       time.Duration // the round trip as a receiver measures it: the time to fill a window
}

// CheckBuffer returns an ErrOption if no buffer can have n bytes.
func CheckBuffer(n int) error {
	if n < MinBuffer || n > MaxBuffer {
		return fmt.Errorf("tcp: buffer of %d bytes: must be %d to %d: %w",
			n, MinBuffer, MaxBuffer, ErrOption)
	}
	return nil
}

// windowScale returns the smallest shift that can advertise the largest receive buffer (RFC 7323
// §2.3).
func (r *receiver) windowScale() uint8 {
	var s uint8
	for s < maxWindowScale && 65535<<s < r.tune.max {
		s++
	}
	return s
}

// nearRTT is the round trip below which RecvNear limits the buffer.
const nearRTT = time.Millisecond

// grow adapts the receive buffer to the rate at which the user reads (dynamic right-sizing). The
// data that the user reads in one round trip arrived in the round trip before, and a sender in slow
// start doubles its rate. So the buffer holds twice that data, and a few segments more for a slow
// reader.
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
	want := 2*copied + 16*max(r.mss, defaultMSS4)
	most := u.max
	if near := r.shared.cfg.Buffers.RecvNear; rtt < nearRTT && near != 0 {
		most = min(most, near)
	}
	if want = min(want, most); want > u.size {
		u.size = want
		r.rx.SetLimit(want)
	}
}

// setBuffer sets the size of the buffer and turns autotuning off.
func (r *receiver) setBuffer(n int) {
	r.tune.size, r.tune.max = n, n
	r.rx.SetLimit(n)
}

// window returns RCV.WND as the peer knows it.
func (r *receiver) window() int { return int(r.edge - r.nxt) }

// windowField returns the window to advertise and remembers its right edge. The edge never moves
// back (RFC 9293 §3.8.6.2.1). To avoid silly windows, it moves forward by at least a segment or
// half the buffer (§3.8.6.2.2). The window of a SYN is not scaled (RFC 7323 §2.2).
func (r *receiver) windowField(handshake bool) uint16 {
	scale, most := r.scale, 65535<<r.scale
	if handshake {
		scale, most = 0, 65535
	}
	if edge := r.nextEdge(most); edge >= r.edge+r.edgeStep() {
		r.edge = edge
	}
	// Rounding up advertises an edge that is up to a unit beyond ours. RFC 7323 §2.4 requires the
	// receiver to accept data up to there, and nextEdge has left room for it.
	unit := uint64(1) << scale
	return uint16(min((r.edge-r.nxt+unit-1)>>scale, 65535))
}

// nextEdge returns the right edge that the free space in the buffer allows. It never exceeds
// RCV.NXT plus most.
func (r *receiver) nextEdge(most int) uint64 {
	free := r.tune.size
	if !r.closed {
		free -= r.rx.Len()
	}
	unit := 1 << r.scale
	if unit > 1 {
		free -= unit // windowField may round up by a unit
	}
	return r.nxt + uint64(min(max(free, 0), most))&^uint64(unit-1)
}

// edgeStep returns the minimum by which the right edge moves.
func (r *receiver) edgeStep() uint64 {
	return uint64(max(1, min(r.tune.size/2, max(r.mss, defaultMSS4))))
}

// consumed is called after the user has read from rx (RFC 9293 §3.10.3, RECEIVE). If the window
// that the peer knows is less than half the buffer and can be doubled, consumed sends an
// acknowledgment at once and returns true, because the peer may wait for a larger window.
func (r *receiver) consumed(now clock.Time, srtt time.Duration) bool {
	r.grow(now, srtt)
	known := r.edge - r.nxt
	if known >= uint64(r.tune.size/2) || known >= uint64(32768)<<r.scale ||
		r.nextEdge(65535<<r.scale) < r.edge+max(r.edgeStep(), known) {
		return false
	}
	r.ack.atOnce()
	return true
}
