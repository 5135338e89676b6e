package rdt

import (
	"errors"
	"fmt"
	"time"
)

// The errors of this room.
var (
	// ErrConfig is wrapped by what NewSender and NewReceiver have against a Config.
	ErrConfig = errors.New("rdt: impossible configuration")
	// ErrObject is wrapped by what is wrong with an object or a request for some.
	ErrObject = errors.New("rdt: impossible object")
	// ErrSilent ends a flow, and every object not complete by then, when nothing
	// new has come from the other end for Config.Patience.
	ErrSilent = errors.New("rdt: the other end is silent")
	// ErrAbsent completes an object that the sender does not have.
	ErrAbsent = errors.New("rdt: no such object")
	// ErrMalformed completes an object whose chunks contradict each other.
	ErrMalformed = errors.New("rdt: malformed object")
	// ErrTooLarge completes an object that is more than Config.MaxBytes allows.
	ErrTooLarge = errors.New("rdt: object too large")
)

// Limits of a flow.
const (
	// MaxObjects is how many objects one flow carries: what a request for all of them
	// may list and still fit into the 576 bytes that every host takes (RFC 1122 §3.3.2).
	MaxObjects = 256
	// MaxWindow is the widest window in packets. Sequence numbers that are compared
	// are less than half their space apart.
	MaxWindow = 1 << 15
	// MaxPayload is the longest payload that a UDP datagram over IPv4 has room for.
	MaxPayload = 65507 - dataLen - 16
	// MaxObject is the longest object in bytes: a packet says in 32 bits where in
	// its object it belongs.
	MaxObject = 1<<32 - 1
)

// Config is how a flow is to be. Both ends need the same Payload, Window and Checksum;
// the rest is for the end that its comment names. The zero Config is the document's.
type Config struct {
	// Payload is the most bytes of an object in one packet. Zero means 1325.
	Payload int
	// Window is how many packets may be without an acknowledgment. Zero means 1120. As
	// nothing paces them they may all arrive at once: what the receiver's socket has no
	// room for is lost. 1120 packets of 1325 bytes want a buffer of 1.6 MB.
	Window int
	// Checksum is what a packet is verified by. Zero means MD5.
	Checksum Checksum

	// Timeout is how long the sender waits for an acknowledgment of a packet before
	// it sends it again, and the receiver for an answer to its request. Zero means 1 s.
	Timeout time.Duration
	// Adaptive lets the sender's time-out follow the round trips; Timeout is then what
	// it begins with.
	Adaptive bool
	// MinTimeout and MaxTimeout bound the adaptive time-out. Zero means 10 ms, and
	// twice Timeout.
	MinTimeout, MaxTimeout time.Duration
	// Duplicates is how many duplicate acknowledgments tell of a loss; with Selective,
	// how many packets sent later must have arrived. Zero means 3.
	Duplicates int
	// Selective asks for acknowledgments that name the packet that they answer, so
	// that the sender repeats what was lost and nothing else.
	Selective bool
	// Compress lets the sender compress each chunk that becomes shorter by it (RFC 1950).
	Compress bool
	// Interleave lets the sender's objects take turns, a packet each. Without it they
	// leave one after the other.
	Interleave bool
	// Trust lets a Server send a whole window to an address that has only asked, as the
	// document's does. Without it that gets 4 kB, and the rest when it has answered: a forged
	// request makes no flood.
	Trust bool

	// InOrder makes the receiver hold a complete object back until everything that was
	// sent before its end has arrived, as a single stream would: head-of-line blocking,
	// to compare with.
	InOrder bool
	// Push says that the sender begins unasked: the receiver sends no request.
	Push bool
	// MaxBytes bounds what the receiver holds of objects that nobody has taken yet.
	// Zero means 256 MiB.
	MaxBytes int
	// Linger is how long a receiver that has everything still answers, since the last
	// arrival: its last acknowledgment may have been lost. Zero means 8 times Timeout.
	Linger time.Duration

	// Patience is how long either end goes on without progress. Zero means 30 s.
	Patience time.Duration
}

// echoes reports whether the sender asks for acknowledgments with names and time stamps.
func (c *Config) echoes() bool { return c.Adaptive || c.Selective }

// WithDefaults replaces zeros by the defaults.
func (c Config) WithDefaults() Config {
	set(&c.Payload, 1325)
	set(&c.Window, 1120)
	set(&c.Timeout, time.Second)
	set(&c.MinTimeout, 10*time.Millisecond)
	set(&c.MaxTimeout, max(2*c.Timeout, c.MinTimeout))
	set(&c.Duplicates, 3)
	set(&c.MaxBytes, 256<<20)
	set(&c.Linger, 8*c.Timeout)
	set(&c.Patience, 30*time.Second)
	return c
}

func set[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

func (c Config) validate() error {
	for _, f := range []struct {
		name         string
		value, limit int64
	}{
		{"payload", int64(c.Payload), MaxPayload},
		{"window", int64(c.Window), MaxWindow},
		{"duplicates", int64(c.Duplicates), MaxWindow},
		{"max bytes", int64(c.MaxBytes), 1 << 40},
		{"time-out", int64(c.Timeout), int64(time.Hour)},
		{"least time-out", int64(c.MinTimeout), int64(c.MaxTimeout)},
		{"greatest time-out", int64(c.MaxTimeout), int64(time.Hour)},
		{"linger", int64(c.Linger), int64(24 * time.Hour)},
		{"patience", int64(c.Patience), int64(24 * time.Hour)},
	} {
		if f.value < 1 || f.value > f.limit {
			return fmt.Errorf("%w: %s %d is not in 1 to %d", ErrConfig, f.name, f.value, f.limit)
		}
	}
	if c.Checksum > CRC32C {
		return fmt.Errorf("%w: checksum %d", ErrConfig, c.Checksum)
	}
	return nil
}
