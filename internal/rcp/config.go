package rcp

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// These are the errors of calls, and the errors that end a socket.
var (
	// ErrConfig is the error for an invalid Config.
	ErrConfig = errors.New("invalid RCP configuration")
	// ErrAddress is the error for an invalid address of a peer.
	ErrAddress = errors.New("invalid address of an RCP peer")
	// ErrInUse means that the peer already has a socket. Two ports have at most one connection.
	ErrInUse = errors.New("already connected to that peer")
	// ErrTooMany means that the router has Config.MaxSessions sockets.
	ErrTooMany = errors.New("too many RCP sockets")
	// ErrListening means that the router already listens.
	ErrListening = errors.New("already listening")
	// ErrClosed means that the caller has closed the router or the direction.
	ErrClosed = errors.New("closed")
	// ErrTimeout means that the peer was silent for Config.Timeout.
	ErrTimeout = errors.New("the RCP peer does not answer")
)

// Config configures a router and its sockets. The zero Config has the document's values, except for
// Timeout.
type Config struct {
	// Tick is the time between two rounds of the send loop; 0: 10 ms.
	Tick time.Duration
	// Timeout is the silence after which a socket fails; 0: 3 s, and at least ten ticks. It must
	// exceed the round-trip time. The document has ten ticks, which is shorter than some pauses of
	// a busy machine.
	Timeout time.Duration
	// Width is the number of packets in the fence, at most MaxWidth; 0: 32.
	Width int
	// PacketSize is the maximum number of bytes in a DAT; 0: 256.
	PacketSize int
	// MaxPayload is the maximum length of a received DAT; 0: 1467 bytes, which fit in an Ethernet
	// frame with the headers, or PacketSize if that is more.
	MaxPayload int
	// Window ignores the bitmaps of acknowledgments and uses only their contiguous part, like a
	// classic window.
	Window bool
	// Timer retransmits a packet when its retransmission timer expires (RFC 6298), and not every
	// Tick.
	Timer bool
	// MaxRTO is the maximum of a packet's timer; 0: the Timeout.
	MaxRTO time.Duration
	// SendBuffer and RecvBuffer are the sizes of a socket's rings in bytes; 0: 64 KiB. The receive
	// buffer holds at least one packet.
	SendBuffer, RecvBuffer int
	// MaxSessions is the maximum number of a router's sockets; 0: 1024.
	MaxSessions int
	// Rand draws the phase of a send loop that a peer's packet starts. Otherwise the two ends would
	// send at the same instants and wait a whole Tick for each other. Nil: the loop starts at once.
	Rand *rand.Rand
}

const (
	defaultTick     = 10 * time.Millisecond
	defaultTimeout  = 3 * time.Second
	timeoutTicks    = 10
	defaultWidth    = 32
	defaultSize     = 256
	defaultPayload  = 1500 - 20 - 8 - HeaderLen
	maxPayload      = 65535 - 20 - 8 - HeaderLen
	defaultBuffer   = 64 << 10
	maxBuffer       = 1 << 30
	defaultSessions = 1024
)

func (c Config) withDefaults() Config {
	c.Width = cmp.Or(c.Width, defaultWidth)
	c.PacketSize = cmp.Or(c.PacketSize, defaultSize)
	c.SendBuffer = cmp.Or(c.SendBuffer, defaultBuffer)
	c.RecvBuffer = cmp.Or(c.RecvBuffer, defaultBuffer)
	c.MaxSessions = cmp.Or(c.MaxSessions, defaultSessions)
	c.MaxPayload = cmp.Or(c.MaxPayload, max(defaultPayload, c.PacketSize))
	c.RecvBuffer = max(c.RecvBuffer, c.MaxPayload)
	c.Tick = cmp.Or(c.Tick, defaultTick)
	c.Timeout = cmp.Or(c.Timeout, max(defaultTimeout, timeoutTicks*c.Tick))
	c.MaxRTO = cmp.Or(c.MaxRTO, c.Timeout)
	return c
}

func (c *Config) validate() error {
	for _, v := range []struct {
		name        string
		n, from, to int
	}{
		{"Width", c.Width, 1, MaxWidth},
		{"PacketSize", c.PacketSize, 1, maxPayload},
		{"MaxPayload", c.MaxPayload, 1, maxPayload},
		{"SendBuffer", c.SendBuffer, 1, maxBuffer},
		{"RecvBuffer", c.RecvBuffer, 1, maxBuffer},
		{"MaxSessions", c.MaxSessions, 1, 1 << 20},
	} {
		if v.n < v.from || v.n > v.to {
			return fmt.Errorf("%w: %s %d: must be %d to %d", ErrConfig, v.name, v.n, v.from, v.to)
		}
	}
	if c.Tick < 0 || c.Timeout <= c.Tick {
		return fmt.Errorf("%w: Timeout %v: must be longer than Tick, %v", ErrConfig, c.Timeout,
			c.Tick)
	}
	if c.MaxRTO < c.Tick {
		return fmt.Errorf("%w: MaxRTO %v: must be at least Tick, %v", ErrConfig, c.MaxRTO, c.Tick)
	}
	return nil
}
