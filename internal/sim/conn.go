package sim

import (
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// App is the application that uses a connection.
type App interface {
	// The host calls Turn when the application gets the connection, after events, and at the time
	// of Wake; e is zero without an event. Turn may call all methods of c.
	Turn(now clock.Time, c *Conn, e tcp.Event)
}

// Conn is an application's end of a connection.
type Conn struct {
	actor // alarm of the application
	host  *Host
	tcp   *tcp.Conn
	app   App
}

func (h *Host) newConn(tc *tcp.Conn) *Conn {
	c := &Conn{host: h, tcp: tc}
	c.acts = c
	tc.Owner = c
	return c
}

func (c *Conn) act(now clock.Time) {
	c.app.Turn(now, c, 0)
	c.host.settle(now)
}

// TCP returns the protocol engine's connection.
func (c *Conn) TCP() *tcp.Conn { return c.tcp }

// SetProbe makes the connection call f with a sample of its state after each change: see
// tcp.Conn.SetProbe. An application that calls it in its first Turn gets all samples.
func (c *Conn) SetProbe(f func(*tcp.Info)) { c.tcp.SetProbe(f) }

// Host returns the host of the connection.
func (c *Conn) Host() *Host { return c.host }

// Rand returns the random stream with this name of the connection's host. The same name always
// returns the same stream, from its beginning.
func (c *Conn) Rand(name string) *rand.Rand {
	return c.host.world.Rand(c.host.name + " " + name)
}

// Write writes as much of p as the send buffer accepts, and returns the number of bytes.
func (c *Conn) Write(p []byte) int {
	n := c.tcp.Tx().Write(p)
	if n > 0 {
		c.tcp.Wrote(c.host.world.now)
	}
	return n
}

// WritePattern writes up to n more bytes of the pattern without copying them, and returns their
// number. The connection's first byte is at offset start of the pattern. Nothing else may be sent.
func (c *Conn) WritePattern(start uint64, n int) int {
	n = c.tcp.Tx().Repeat(Pattern(start, patternBytes), n)
	if n > 0 {
		c.tcp.Wrote(c.host.world.now)
	}
	return n
}

// Read reads up to len(p) bytes that have arrived, and returns their number.
func (c *Conn) Read(p []byte) int {
	n := c.tcp.Rx().Read(p)
	if n > 0 {
		c.tcp.Consumed(c.host.world.now)
	}
	return n
}

// Peek returns the next n bytes without copying them. At least n bytes must have arrived. The
// result is valid until the next call.
func (c *Conn) Peek(n int) [][]byte {
	w, rx := c.host.world, c.tcp.Rx()
	w.pieces = rx.Slices(w.pieces[:0], rx.Head(), n)
	return w.pieces
}

// Discard skips the next n bytes. At least n bytes must have arrived.
func (c *Conn) Discard(n int) {
	if n == 0 {
		return
	}
	rx := c.tcp.Rx()
	rx.Release(rx.Head() + uint64(n))
	c.tcp.Consumed(c.host.world.now)
}

// EOF reports whether the peer has closed its side and all data was read.
func (c *Conn) EOF() bool { return c.tcp.ReadDone() && c.tcp.Rx().Len() == 0 }

// CloseWrite closes the sending side.
func (c *Conn) CloseWrite() { _ = c.tcp.CloseWrite(c.host.world.now) }

// CloseRead closes the receiving side.
func (c *Conn) CloseRead() { c.tcp.CloseRead(c.host.world.now) }

// Close closes the connection.
func (c *Conn) Close() { c.tcp.Close(c.host.world.now) }

// Abort resets the connection.
func (c *Conn) Abort() { c.tcp.Abort(c.host.world.now) }

// Wake sets the connection's only alarm, which calls its application's Turn. clock.Never cancels
// it.
func (c *Conn) Wake(at clock.Time) { c.host.world.eventQueue.set(&c.actor, at) }
