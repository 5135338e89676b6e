package sim

import (
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// App is an application: what a connection belongs to.
type App interface {
	// Turn lets it act on c: when it gets the connection, after events, and when
	// it was to be woken; e is zero without an event. It may do to the connection
	// whatever it likes.
	Turn(now clock.Time, c *Conn, e tcp.Event)
}

// Conn is an application's end of a connection.
type Conn struct {
	actor // the application's alarm
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

// act is the alarm going off.
func (c *Conn) act(now clock.Time) {
	c.app.Turn(now, c, 0)
	c.host.settle(now)
}

// TCP returns the connection itself.
func (c *Conn) TCP() *tcp.Conn { return c.tcp }

// SetProbe has f called with a sample of the connection's state whenever that changes:
// see tcp.Conn's. An application that sets it in its first turn misses nothing.
func (c *Conn) SetProbe(f func(*tcp.Info)) { c.tcp.SetProbe(f) }

// Host returns the host that the connection is on.
func (c *Conn) Host() *Host { return c.host }

// Rand returns the random stream with this name of the connection's host. Streams with one name are
// the same.
func (c *Conn) Rand(name string) *rand.Rand {
	return c.host.world.Rand(c.host.name + " " + name)
}

// Write gives the connection as much of p as it takes, and returns how much that
// was.
func (c *Conn) Write(p []byte) int {
	n := c.tcp.Tx().Write(p)
	if n > 0 {
		c.tcp.Wrote(c.host.world.now)
	}
	return n
}

// WritePattern is Write with the next n bytes of the pattern, for an application whose whole
// stream is the pattern from an offset on. Nothing is copied: the bytes are sent from where the
// pattern lies.
func (c *Conn) WritePattern(start uint64, n int) int {
	n = c.tcp.Tx().Repeat(Pattern(start, patternBytes), n)
	if n > 0 {
		c.tcp.Wrote(c.host.world.now)
	}
	return n
}

// Read takes up to len(p) bytes that have arrived, and returns how many there were.
func (c *Conn) Read(p []byte) int {
	n := c.tcp.Rx().Read(p)
	if n > 0 {
		c.tcp.Consumed(c.host.world.now)
	}
	return n
}

// Peek returns the next n bytes that have arrived, of which there must be so many, where
// they lie. They are lent until the next call.
func (c *Conn) Peek(n int) [][]byte {
	w, rx := c.host.world, c.tcp.Rx()
	w.pieces = rx.Slices(w.pieces[:0], rx.Head(), n)
	return w.pieces
}

// Discard takes the next n bytes that have arrived, of which there must be so many,
// without looking at them.
func (c *Conn) Discard(n int) {
	if n == 0 {
		return
	}
	rx := c.tcp.Rx()
	rx.Release(rx.Head() + uint64(n))
	c.tcp.Consumed(c.host.world.now)
}

// EOF reports whether the peer has closed its side and everything was read.
func (c *Conn) EOF() bool { return c.tcp.ReadDone() && c.tcp.Rx().Len() == 0 }

// CloseWrite ends what the application sends.
func (c *Conn) CloseWrite() { _ = c.tcp.CloseWrite(c.host.world.now) }

// CloseRead says that the application reads no more.
func (c *Conn) CloseRead() { c.tcp.CloseRead(c.host.world.now) }

// Close closes the connection.
func (c *Conn) Close() { c.tcp.Close(c.host.world.now) }

// Abort resets the connection.
func (c *Conn) Abort() { c.tcp.Abort(c.host.world.now) }

// Wake calls the application at a time, or cancels that if it is never. A connection has one alarm.
func (c *Conn) Wake(at clock.Time) { c.host.world.agenda.set(&c.actor, at) }
