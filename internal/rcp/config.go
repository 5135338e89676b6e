package rcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Errors of the calls, and those that end a socket.
var (
	// ErrConfig is a Config that makes no sense.
	ErrConfig = errors.New("bad RCP configuration")
	// ErrAddress is a peer that cannot have a socket.
	ErrAddress = errors.New("not the address of an RCP peer")
	// ErrInUse is a peer that has a socket already: two ports have one connection.
	ErrInUse = errors.New("already connected to that peer")
	// ErrTooMany is a router with as many sockets as it may have.
	ErrTooMany = errors.New("too many RCP sockets")
	// ErrListening is a router that listens already.
	ErrListening = errors.New("already listening")
	// ErrClosed is a router or a direction that the caller has closed.
	ErrClosed = errors.New("closed")
	// ErrTimeout is a peer that was silent for Config.Timeout.
	ErrTimeout = errors.New("the RCP peer is silent")
)

// Config describes a router and its sockets. The zero Config is the document's, but for Timeout.
type Config struct {
	// Tick is the time between two rounds of the send loop; 0: 10 ms.
	Tick time.Duration
	// Timeout is the silence that ends a socket; 0: 3 s, and at least ten ticks. The document
	// has ten ticks, which a pause of a busy machine exceeds. A round trip must be shorter.
	Timeout time.Duration
	// Width is how many packets the fence holds, at most MaxWidth; 0: 32.
	Width int
	// PacketSize is how many bytes of the stream a DAT carries at the most; 0: 256.
	PacketSize int
	// MaxPayload is the longest DAT that is taken; 0: 1467 bytes, which is what fits an
	// Ethernet frame with its headers, and PacketSize if that is more.
	MaxPayload int
	// Window ignores the bitmaps of acknowledgments: only what is contiguous counts, as
	// in the classic window.
	Window bool
	// Timer repeats a packet when its retransmission timer has expired (RFC 6298), and
	// not every Tick.
	Timer bool
	// MaxRTO bounds what a packet waits for its timer; 0: the Timeout.
	MaxRTO time.Duration
	// SendBuffer and RecvBuffer are what a socket's rings hold, in bytes; 0: 64 KiB. The
	// receive buffer holds at least one packet.
	SendBuffer, RecvBuffer int
	// MaxSessions is how many sockets a router has at the most; 0: 1024.
	MaxSessions int
	// Rand chooses the phase of a send loop that a peer's packet starts, so that two ends
	// do not send at the same instants and wait a whole Tick for each other. Nil: it
	// starts at once.
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
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.Width, defaultWidth},
		{&c.PacketSize, defaultSize},
		{&c.SendBuffer, defaultBuffer},
		{&c.RecvBuffer, defaultBuffer},
		{&c.MaxSessions, defaultSessions},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = max(defaultPayload, c.PacketSize)
	}
	c.RecvBuffer = max(c.RecvBuffer, c.MaxPayload)
	if c.Tick == 0 {
		c.Tick = defaultTick
	}
	if c.Timeout == 0 {
		c.Timeout = max(defaultTimeout, timeoutTicks*c.Tick)
	}
	if c.MaxRTO == 0 {
		c.MaxRTO = c.Timeout
	}
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
			return fmt.Errorf("%w: %s %d is not in %d to %d", ErrConfig, v.name, v.n, v.from, v.to)
		}
	}
	if c.Tick < 0 || c.Timeout <= c.Tick {
		return fmt.Errorf("%w: a time-out of %v with a tick of %v", ErrConfig, c.Timeout, c.Tick)
	}
	if c.MaxRTO < c.Tick {
		return fmt.Errorf("%w: a MaxRTO of %v with a tick of %v", ErrConfig, c.MaxRTO, c.Tick)
	}
	return nil
}
