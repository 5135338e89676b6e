package rdt

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// These are the errors of this package.
var (
	// ErrConfig is wrapped by the errors of NewSender and NewReceiver about a Config.
	ErrConfig = errors.New("rdt: invalid configuration")
	// ErrObject is wrapped by errors about an object or a request.
	ErrObject = errors.New("rdt: invalid object")
	// ErrSilent ends a flow and its incomplete objects after Config.Patience without progress at
	// the other end.
	ErrSilent = errors.New("rdt: the peer does not answer")
	// ErrAbsent is the error of an object that the sender does not have.
	ErrAbsent = errors.New("rdt: no such object")
	// ErrMalformed is the error of an object whose chunks contradict each other.
	ErrMalformed = errors.New("rdt: malformed object")
	// ErrTooLarge is the error of an object that exceeds Config.MaxBytes.
	ErrTooLarge = errors.New("rdt: object too large")
)

// These are limits of a flow.
const (
	// MaxObjects is the maximum number of objects in a flow. A request that lists all of them fits
	// in the 576 bytes that every host accepts (RFC 1122 §3.3.2).
	MaxObjects = 256
	// MaxWindow is the maximum window in packets. Sequence numbers that are compared differ by less
	// than half of their range.
	MaxWindow = 1 << 15
	// MaxPayload is the maximum payload in a UDP datagram over IPv4.
	MaxPayload = 65507 - dataLen - 16
	// MaxObject is the maximum length of an object in bytes: offsets have 32 bits.
	MaxObject = 1<<32 - 1
)

// Config configures a flow. Payload, Window and Checksum must be the same at both ends. The
// comments of the other fields name their end. The zero Config is the protocol of the document.
type Config struct {
	// Payload is the maximum number of bytes of an object in a packet. Zero means 1325.
	Payload int
	// Window is the maximum number of unacknowledged packets. Zero means 1120. Packets are not
	// paced, so they may all arrive at once, and the receiver's socket needs a buffer for them.
	// 1120 packets of 1325 bytes need 1.6 MB.
	Window int
	// Checksum is the checksum of packets. Zero means MD5.
	Checksum Checksum

	// Timeout is the sender's retransmission timeout, and the time that the receiver waits for an
	// answer to its request. Zero means 1 s.
	Timeout time.Duration
	// Adaptive derives the sender's timeout from round-trip times. Timeout is the initial value.
	Adaptive bool
	// MinTimeout and MaxTimeout limit the adaptive timeout. Zero means 10 ms and twice Timeout.
	MinTimeout, MaxTimeout time.Duration
	// Duplicates is the number of duplicate acknowledgments that indicate a loss. With Selective it
	// is the number of later packets that have arrived. Zero means 3.
	Duplicates int
	// Selective requests acknowledgments that identify the received packet, so that the sender
	// retransmits only lost packets.
	Selective bool
	// Compress makes the sender compress chunks that become shorter (RFC 1950).
	Compress bool
	// Interleave makes the sender take turns between its objects, one packet each, instead of
	// sending one object after the other.
	Interleave bool
	// Trust lets a Server send a whole window to an address that has only sent a request, as the
	// document's server does. Otherwise it sends 4 kB first and the rest after an answer, so that
	// forged requests cause no flood.
	Trust bool

	// InOrder makes the receiver hold a complete object until everything that was sent before its
	// end has arrived. It shows the head-of-line blocking of a single stream.
	InOrder bool
	// Push means that the sender starts without a request.
	Push bool
	// MaxBytes limits the receiver's memory for objects that Next has not returned. Zero means 256
	// MiB.
	MaxBytes int
	// Linger is how long a receiver that has everything keeps answering after the latest packet,
	// because its last acknowledgment may have been lost. Zero means 8 times Timeout.
	Linger time.Duration

	// Patience is how long either end waits without progress. Zero means 30 s.
	Patience time.Duration
}

// echoes reports whether the sender requests acknowledgments with packet numbers and timestamps.
func (c *Config) echoes() bool { return c.Adaptive || c.Selective }

// WithDefaults replaces zeros by the defaults.
func (c Config) WithDefaults() Config {
	c.Payload = cmp.Or(c.Payload, 1325)
	c.Window = cmp.Or(c.Window, 1120)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.MinTimeout = cmp.Or(c.MinTimeout, 10*time.Millisecond)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, max(2*c.Timeout, c.MinTimeout))
	c.Duplicates = cmp.Or(c.Duplicates, 3)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.Linger = cmp.Or(c.Linger, 8*c.Timeout)
	c.Patience = cmp.Or(c.Patience, 30*time.Second)
	return c
}

func (c Config) validate() error {
	if c.Checksum > CRC32C {
		return fmt.Errorf("%w: checksum %d: must be 0 (MD5) or 1 (CRC32C)", ErrConfig, c.Checksum)
	}
	return cmp.Or(
		within("payload", c.Payload, MaxPayload),
		within("window", c.Window, MaxWindow),
		within("duplicates", c.Duplicates, MaxWindow),
		within("max bytes", int64(c.MaxBytes), 1<<40),
		within("timeout", c.Timeout, time.Hour),
		within("minimum timeout", c.MinTimeout, c.MaxTimeout),
		within("maximum timeout", c.MaxTimeout, time.Hour),
		within("linger", c.Linger, 24*time.Hour),
		within("patience", c.Patience, 24*time.Hour),
	)
}

// within returns ErrConfig unless a value is positive and at most limit.
func within[T int | int64 | time.Duration](name string, value, limit T) error {
	if value < 1 || value > limit {
		return fmt.Errorf("%w: %s %v: must be %v to %v", ErrConfig, name, value, T(1), limit)
	}
	return nil
}
