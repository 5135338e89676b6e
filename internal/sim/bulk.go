package sim

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Bulk is an application that sends a number of bytes of the pattern, and checks that the bytes it
// receives are the pattern. It closes its side when it has sent all, and the connection when both
// sides are closed. The fields before Sent configure it. The zero value sends nothing, and receives
// as fast as it can.
type Bulk struct {
	// Send is the number of bytes to send.
	Send uint64
	// SendAt and RecvAt are the pattern's offsets of the first byte in each direction.
	SendAt, RecvAt uint64
	// MaxWrite and MaxRead are the maximum sizes of a write and of a read. Each write and read has
	// a random size up to that maximum. Zero means as much as possible.
	MaxWrite, MaxRead int
	// MaxPause is the maximum of the random pause after each write and read. Zero: no pauses.
	MaxPause time.Duration
	// Lazy is the probability that the application leaves data unread until the end of the next
	// pause. It has no effect without pauses.
	Lazy float64
	// KeepOpen leaves the sending side open after all data is sent.
	KeepOpen bool
	// Leave says how the application ends the connection early, once the connection is established
	// and After bytes have been sent or received in total.
	Leave Leave
	After uint64

	// Sent is the number of bytes written, and Received is the number of correct bytes read.
	Sent, Received uint64
	// Wrong is set when a received byte differs from the pattern; Received is its offset.
	Wrong bool
	// EOF is set when the peer has closed its side.
	EOF bool
	// Left is set when the application has ended the connection early.
	Left bool
	// Over is set when the connection has ended; Err is the reason, or nil after an orderly close.
	Over bool
	Err  error
	// Finished is the time when both sides were closed, or when the connection ended.
	Finished clock.Time

	random     *rand.Rand
	next       clock.Time // time of the next piece
	ended      bool       // the sending side is closed
	readClosed bool       // the application reads no more
	abandoned  bool       // the application has closed the connection
}

// Leave is a way to end a connection early.
type Leave uint8

// These are the ways to end a connection early.
const (
	Stay Leave = iota
	// LeaveClose closes the connection. Written data is still delivered, unless received data was
	// left unread or arrives later.
	LeaveClose
	// LeaveAbort resets the connection.
	LeaveAbort
	// LeaveCloseRead stops reading, but continues to send.
	LeaveCloseRead
	// LeaveCloseWrite stops sending, but continues to read.
	LeaveCloseWrite
)

// Turn implements App.
func (b *Bulk) Turn(now clock.Time, c *Conn, e tcp.Event) {
	if b.random == nil {
		b.random = c.Rand("bulk")
	}
	if b.Over {
		return
	}
	if e&tcp.Closed != 0 {
		b.over(now, c)
		return
	}
	if b.MaxPause == 0 {
		for b.piece(c) {
			continue
		}
		b.finish(now, c)
		return
	}
	if now < b.next {
		c.Wake(b.next)
		return
	}
	lazy := b.random.Float64() < b.Lazy
	if b.write(c) || !lazy && b.read(c) || lazy && c.TCP().Rx().Len() > 0 {
		b.next = now.Add(1 + time.Duration(b.random.Int64N(int64(b.MaxPause))))
		c.Wake(b.next)
	}
	b.leave(c)
	b.finish(now, c)
}

// over handles the connection's end. Received data can still be read.
func (b *Bulk) over(now clock.Time, c *Conn) {
	for !b.abandoned && b.read(c) {
		continue
	}
	b.EOF = b.EOF || c.EOF()
	b.Over, b.Err = true, c.TCP().Err()
	if b.Finished == clock.Never {
		b.Finished = now
	}
	c.Wake(clock.Never)
}

// piece writes and reads once and reports whether any data moved.
func (b *Bulk) piece(c *Conn) bool {
	wrote := b.write(c)
	read := b.read(c)
	b.leave(c)
	return wrote || read
}

func (b *Bulk) size(n, most int) int {
	if most > 0 {
		n = min(n, 1+b.random.IntN(most))
	}
	return n
}

func (b *Bulk) write(c *Conn) bool {
	if b.ended || b.abandoned {
		return false
	}
	if b.Sent == b.Send {
		if b.KeepOpen {
			return false
		}
		b.ended = true
		c.CloseWrite()
		return true
	}
	n := int(min(uint64(c.TCP().Tx().Free()), b.Send-b.Sent, PatternRun))
	if n = b.size(n, b.MaxWrite); n == 0 {
		return false
	}
	b.Sent += uint64(c.WritePattern(b.SendAt, n))
	return true
}

func (b *Bulk) read(c *Conn) bool {
	if b.abandoned || b.readClosed || b.Wrong {
		return false
	}
	n := b.size(min(c.TCP().Rx().Len(), PatternRun), b.MaxRead)
	if n == 0 {
		b.EOF = b.EOF || c.EOF()
		return false
	}
	for _, p := range c.Peek(n) {
		right := Check(p, b.RecvAt+b.Received)
		b.Received += uint64(right)
		if right < len(p) {
			b.Wrong = true
			break
		}
	}
	c.Discard(n)
	b.EOF = b.EOF || c.EOF()
	return n > 0
}

// leave ends the connection early if it is time.
func (b *Bulk) leave(c *Conn) {
	if b.Leave == Stay || b.Left || b.Sent+b.Received < b.After ||
		c.TCP().State() == tcp.StateSynSent {
		return
	}
	b.Left = true
	switch b.Leave {
	case LeaveClose:
		b.abandoned = true
		c.Close()
	case LeaveAbort:
		b.abandoned = true
		c.Abort()
	case LeaveCloseRead:
		b.readClosed = true
		c.CloseRead()
	case LeaveCloseWrite:
		b.ended = true
		c.CloseWrite()
	case Stay:
	}
}

func (b *Bulk) finish(now clock.Time, c *Conn) {
	if b.abandoned || !b.ended || !b.EOF && !(b.readClosed && c.TCP().ReadDone()) {
		return
	}
	b.abandoned = true
	b.Finished = now
	c.Close()
}
