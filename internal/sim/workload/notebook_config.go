package workload

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrNotebookConfig is wrapped by errors in a Config.
var ErrNotebookConfig = errors.New("notebook: invalid configuration")

// NotebookConfig is how a sender and its receiver run. The zero Config is the document's.
type NotebookConfig struct {
	// Duration is how long the sender sends; 0: a minute.
	Duration time.Duration
	// Record keeps a Point for each acknowledgment, 40 bytes each.
	Record bool
	// SenderCost is the time of an iteration of the sender's polling loop, which reads an
	// acknowledgment and sends a segment. ReceiverCost is the receiver's time for a segment, for
	// which it also prints a line. 0: 50 µs, about Python's time, and 150 µs, with which the window
	// falls at 1,437 as in the document's figure of its fast link: 277 datagrams in the receiver's
	// buffer, and 176 ms of processing. Negative: no time. The document's "bottleneck is the
	// receiver" is this cost; besides, a go-back-N sender does not send a window at one instant.
	SenderCost, ReceiverCost time.Duration
	// HeldCost is what a segment costs the receiver on top for each one that it holds: it
	// holds all since it had none missing the last time. 0: 500 ns; to find, sort and walk the
	// document's list takes Python 3.11 from 0.3 to 1.3 µs for each. Negative: no time.
	HeldCost time.Duration
	// Buffer is how many datagrams the sender's socket queues, and the receivers' in all; 0:
	// 277, which is Linux's 208 KiB, of which a small one takes 768 bytes.
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
	receiverCost    = 150 * time.Microsecond
	heldCost        = 500 * time.Nanosecond
)

// datagramCharge is what a small datagram takes of a receive buffer here.
const datagramCharge = 256

func (c NotebookConfig) withDefaults() NotebookConfig {
	c.Duration = cmp.Or(c.Duration, defaultDuration)
	c.SenderCost = cmp.Or(c.SenderCost, senderCost)
	c.ReceiverCost = cmp.Or(c.ReceiverCost, receiverCost)
	c.HeldCost = cmp.Or(c.HeldCost, heldCost)
	c.SenderCost, c.ReceiverCost = max(0, c.SenderCost), max(0, c.ReceiverCost)
	c.HeldCost = max(0, c.HeldCost)
	c.Buffer = cmp.Or(c.Buffer, defaultBuffer)
	c.Window = cmp.Or(c.Window, defaultWindow)
	return c
}

func (c *NotebookConfig) validate() error {
	switch {
	case c.Duration < 0 || c.Duration > 24*time.Hour:
		return fmt.Errorf("%w: duration %v: must be 0 to 24h", ErrNotebookConfig, c.Duration)
	case max(c.SenderCost, c.ReceiverCost, c.HeldCost) > time.Second:
		return fmt.Errorf("%w: costs %v, %v, %v: must be at most 1s", ErrNotebookConfig,
			c.SenderCost,
			c.ReceiverCost, c.HeldCost)
	case c.Buffer < 0 || c.Buffer > maxBuffer || c.Window < 2 || c.Window > 1<<24:
		return fmt.Errorf("%w: buffer of %d datagrams, window of %d segments: out of range",
			ErrNotebookConfig,
			c.Buffer, c.Window)
	}
	return nil
}
