package workload

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrNotebookConfig is wrapped by errors in a NotebookConfig.
var ErrNotebookConfig = errors.New("notebook: invalid configuration")

// NotebookConfig configures a sender and its receiver. The zero value follows the document.
type NotebookConfig struct {
	// Duration is how long the sender sends; 0: a minute.
	Duration time.Duration
	// Record keeps a Point for each acknowledgment, 40 bytes each.
	Record bool
	// SenderCost is the time of an iteration of the sender's polling loop, which reads an
	// acknowledgment and sends a segment. ReceiverCost is the receiver's time for a segment,
	// including the line that it prints. 0: 50 µs, about Python's time, and 150 µs. With these
	// times, the window falls at 1,437, as in the document's figure of its fast link: there are 277
	// datagrams in the receiver's buffer, and 176 ms of processing. A negative value means no time.
	SenderCost, ReceiverCost time.Duration
	// HeldCost is the extra time that the receiver takes for a segment, per segment that it
	// holds. It holds all segments that arrived since it last had no gap. 0: 500 ns; Python 3.11
	// needs 0.3 to 1.3 µs for each to find, sort and walk the document's list. A negative value
	// means no time.
	HeldCost time.Duration
	// Buffer limits the datagrams in the queues of the sender's socket and of the receivers'
	// socket; 0: 277 datagrams. They fill Linux's 208 KiB, because a small datagram uses 768 bytes.
	Buffer int
	// Window limits the segments that the receiver keeps; 0: 100000, as in the document.
	Window int
}

const (
	defaultDuration = time.Minute
	defaultBuffer   = 208 << 10 / 768
	defaultWindow   = 100_000
	maxBuffer       = 1 << 20
	maxWindow       = 1 << 24
	senderCost      = 50 * time.Microsecond
	receiverCost    = 150 * time.Microsecond
	heldCost        = 500 * time.Nanosecond
)

// datagramCharge is the number of bytes that a small datagram uses in a simulated receive buffer.
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
		return fmt.Errorf("%w: costs %v, %v, %v: each must be at most 1s", ErrNotebookConfig,
			c.SenderCost, c.ReceiverCost, c.HeldCost)
	case c.Buffer < 0 || c.Buffer > maxBuffer || c.Window < 2 || c.Window > maxWindow:
		return fmt.Errorf("%w: buffer of %d datagrams, window of %d segments: must be 1 to %d and "+
			"2 to %d", ErrNotebookConfig, c.Buffer, c.Window, maxBuffer, maxWindow)
	}
	return nil
}
