package notebook

import (
	"errors"
	"fmt"
	"time"
)

// ErrConfig is wrapped by what is wrong with a Config.
var ErrConfig = errors.New("notebook: impossible configuration")

// Config is how a sender and its receiver run. The zero Config is the document's.
type Config struct {
	// Duration is how long the sender sends; 0: a minute.
	Duration time.Duration
	// Record keeps a Point for each acknowledgment, 40 bytes each.
	Record bool
	// SenderCost is what a turn of the sender's polling loop takes, which reads an
	// acknowledgment and sends a segment, and ReceiverCost what a segment costs the receiver,
	// who also prints a line. 0: 50 µs and 80 µs, about what Python takes; negative: no time.
	// The document's "bottleneck is the receiver" is this, and that a sender which goes back
	// by a window does not send it at one instant.
	SenderCost, ReceiverCost time.Duration
	// Buffer is how many datagrams the two sockets queue; 0: 277, which is Linux's 208 KiB,
	// of which a small one takes 768 bytes.
	Buffer int
	// Window is how many segments the receiver keeps; 0: 100000, as in the document.
	Window int
}

const (
	defaultDuration = time.Minute
	defaultBuffer   = 208 << 10 / 768
	defaultWindow   = 100_000
	maxBuffer       = 1 << 20
	senderCost      = 50 * time.Microsecond
	receiverCost    = 80 * time.Microsecond
)

// datagramCharge is what a small datagram takes of a receive buffer here.
const datagramCharge = 256

func (c Config) withDefaults() Config {
	if c.Duration == 0 {
		c.Duration = defaultDuration
	}
	if c.SenderCost == 0 {
		c.SenderCost = senderCost
	}
	if c.ReceiverCost == 0 {
		c.ReceiverCost = receiverCost
	}
	c.SenderCost, c.ReceiverCost = max(0, c.SenderCost), max(0, c.ReceiverCost)
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	return c
}

func (c *Config) validate() error {
	switch {
	case c.Duration < 0 || c.Duration > 24*time.Hour:
		return fmt.Errorf("%w: a duration of %v: want up to 24h", ErrConfig, c.Duration)
	case c.SenderCost > time.Second || c.ReceiverCost > time.Second:
		return fmt.Errorf("%w: a cost of %v, %v: want up to 1s", ErrConfig, c.SenderCost,
			c.ReceiverCost)
	case c.Buffer < 0 || c.Buffer > maxBuffer || c.Window < 2 || c.Window > 1<<24:
		return fmt.Errorf("%w: a buffer of %d datagrams, a window of %d segments", ErrConfig,
			c.Buffer, c.Window)
	}
	return nil
}
