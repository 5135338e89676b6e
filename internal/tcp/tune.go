package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// tuning is how large a connection's buffers are, and may become. A ring's
// memory comes and goes with what is in it; its limit is what tunes itself.
type tuning struct {
	recv, recvMax int // the receive buffer: what is offered, and the most
	recvNear      int // the most while the peer is near; zero: recvMax
	sendMax       int
	copied        int           // the most that the user took in one round trip
	rtt           time.Duration // as a receiver sees it: how long a window takes to fill
	*taking
}

// taking is what is being measured of how a user takes what arrives.
type taking struct {
	head     uint64     // of Rx when the current round trip began,
	since    clock.Time // and when that was
	rttEnd   uint64     // where the window ends that is being timed
	rttSince clock.Time
}

// begin sets a new connection's buffers.
func (u *tuning) begin(cfg *Config) {
	u.recv, u.recvMax, u.recvNear = cfg.RecvBuffer, cfg.RecvBufferMax, cfg.RecvBufferNear
	u.sendMax = cfg.SendBufferMax
}

// CheckBuffer reports an ErrOption for a size in bytes that no buffer can have.
func CheckBuffer(n int) error {
	if n < MinBuffer || n > MaxBuffer {
		return fmt.Errorf("tcp: a buffer of %d bytes, want %d to %d: %w",
			n, MinBuffer, MaxBuffer, ErrOption)
	}
	return nil
}

// SetReadBuffer sets the receive buffer, which then does not tune itself. A
// window that was offered is not taken back (RFC 9293 §3.8.6): after a smaller
// n the offer shrinks as data arrives.
func (c *Conn) SetReadBuffer(now clock.Time, n int) {
	n = min(max(n, MinBuffer), MaxBuffer)
	c.tune.recv, c.tune.recvMax = n, n
	c.rx.SetLimit(n)
	c.Consumed(now)
}

// SetWriteBuffer sets the send buffer, which then does not tune itself.
func (c *Conn) SetWriteBuffer(n int) {
	n = min(max(n, MinBuffer), MaxBuffer)
	c.tune.sendMax = n
	c.tx.Resize(n)
	c.raise(Writable)
	c.touch()
}

// Buffers returns the receive and send buffers as they are now.
func (c *Conn) Buffers() (receive, send int) { return c.tune.recv, c.tx.Limit() }

// windowScale returns the shift that lets the largest receive buffer be offered
// whole (RFC 7323 §2.3).
func (c *Conn) windowScale() uint8 {
	var s uint8
	for s < maxWindowScale && 65535<<s < c.tune.recvMax {
		s++
	}
	return s
}

// timeWindow measures the round trip as a receiver can: the peer fills no
// window faster than one a round trip.
func (c *Conn) timeWindow(now clock.Time) {
	u := &c.tune
	if c.rcv.nxt < u.rttEnd {
		return
	}
	if u.rttSince != clock.Never {
		if d := now.Sub(u.rttSince); u.rtt == 0 || d < u.rtt {
			u.rtt = d
		}
	}
	u.rttSince, u.rttEnd = now, c.rcv.edge
}

// near is how long the round trips are of those for whom RecvBufferNear is.
const near = time.Millisecond

// growReceive makes the receive buffer follow the user: dynamic right-sizing.
// What is read in one round trip is what arrived in the one before, and a
// sender in slow start doubles it: so twice that, and some segments for what is
// on its way when the reading is slow.
func (c *Conn) growReceive(now clock.Time) {
	u := &c.tune
	if u.recv >= u.recvMax || c.work == nil {
		return
	}
	rtt := u.rtt
	if s := c.rtt.srtt; s != 0 && (rtt == 0 || s < rtt) {
		rtt = s
	}
	if rtt == 0 || now.Sub(u.since) < rtt {
		return
	}
	head := c.rx.Head()
	copied := int(head - u.head)
	u.head, u.since = head, now
	if copied <= u.copied {
		return
	}
	u.copied = copied
	want := 2*copied + 16*max(c.rcv.mss, defaultMSS)
	most := u.recvMax
	if rtt < near && u.recvNear != 0 {
		most = min(most, u.recvNear)
	}
	if want = min(want, most); want > u.recv {
		u.recv = want
		c.rx.SetLimit(want)
	}
}

// growSend makes the send buffer follow the congestion window: what is in
// flight, and as much again that the user may write meanwhile.
func (c *Conn) growSend() {
	limit := c.tx.Limit()
	if limit >= c.tune.sendMax {
		return
	}
	if want := 2 * c.cc.Cwnd(); want > limit {
		c.tx.SetLimit(min(want, c.tune.sendMax))
		c.raise(Writable)
	}
}
