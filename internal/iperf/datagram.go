package iperf

import (
	"encoding/binary"
	"slices"
	"time"
)

// A flow of datagrams begins with four bytes from the client, which the server answers with four
// others. Versions before 3.12 say something else.
const (
	GreetingSize = 4

	greeting    = 0x36373839
	reply       = 0x39383736
	oldGreeting = 123456789
	oldReply    = 987654321
)

// AppendGreeting appends what a client sends first, and AppendReply what a server answers.
func AppendGreeting(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, greeting) }

// AppendReply appends a server's answer to a greeting.
func AppendReply(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, reply) }

// IsGreeting reports whether a datagram is a client's first. What a machine of the other byte order
// sends as a greeting would be an answer here, so the order is that of all who measure today.
func IsGreeting(b []byte) bool { return isOne(b, greeting, oldGreeting) }

// IsReply reports whether a datagram is a server's answer to a greeting.
func IsReply(b []byte) bool { return isOne(b, reply, oldReply) }

func isOne(b []byte, values ...uint32) bool {
	if len(b) != GreetingSize {
		return false
	}
	return slices.Contains(values, binary.LittleEndian.Uint32(b))
}

// Header is in front of each datagram: when it was sent, since 1970, and its number, from 1.
type Header struct {
	Sent   time.Duration
	Number uint64
}

// Put writes the header into the first 12 bytes of b, or 16 if wide.
func (h Header) Put(b []byte, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(h.Sent/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(h.Sent%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], h.Number)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(h.Number))
	}
}

// ParseHeader reads a header; false: the datagram is too short to have one.
func ParseHeader(b []byte, wide bool) (h Header, ok bool) {
	if len(b) < 12 || wide && len(b) < 16 {
		return h, false
	}
	h.Sent = time.Duration(binary.BigEndian.Uint32(b))*time.Second +
		time.Duration(binary.BigEndian.Uint32(b[4:]))*time.Microsecond
	h.Number = uint64(binary.BigEndian.Uint32(b[8:]))
	if wide {
		h.Number = binary.BigEndian.Uint64(b[8:])
	}
	return h, true
}

// Arrivals is what a receiver of datagrams reckons. The zero Arrivals has seen none.
type Arrivals struct {
	Highest uint64 // of the numbers
	Lost    int64
	Early   int64 // came out of order
	// Jitter is RFC 3550 §6.4.1's: how much the time on the way differs from one to the next,
	// with a gain of a sixteenth.
	Jitter time.Duration

	jitter  float64
	transit time.Duration
	any     bool
}

// farAhead is how many numbers a datagram may be ahead of the one before it: what claims more is
// nobody's datagram, and would be the loss of all between.
const farAhead = 1 << 31

// Add counts a datagram that arrived at now, since 1970.
func (a *Arrivals) Add(now time.Duration, h Header) {
	switch {
	case h.Number > a.Highest && h.Number-a.Highest < farAhead:
		a.Lost += int64(h.Number - a.Highest - 1)
		a.Highest = h.Number
	default:
		a.Early++
		if a.Lost > 0 {
			a.Lost-- // it was taken for lost
		}
	}
	transit := now - h.Sent
	if a.any {
		// RFC 3550 §6.4.1: J += (|D| - J) / 16.
		d := transit - a.transit
		a.jitter += (float64(max(d, -d)) - a.jitter) / 16
		a.Jitter = time.Duration(a.jitter)
	}
	a.transit, a.any = transit, true
}
