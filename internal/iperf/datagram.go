package iperf

import (
	"encoding/binary"
	"slices"
	"time"
)

// A UDP stream begins with a greeting of four bytes from the client, which the server answers with
// a reply of four bytes. Versions before 3.12 use other values.
const (
	GreetingSize = 4

	greeting    = 0x36373839
	reply       = 0x39383736
	oldGreeting = 123456789
	oldReply    = 987654321
)

// AppendGreeting appends a client's greeting.
func AppendGreeting(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, greeting) }

// AppendReply appends a server's reply to a greeting.
func AppendReply(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, reply) }

// IsGreeting reports whether a datagram is a client's greeting. The byte order is fixed to little
// endian, because a greeting of a big-endian machine equals a reply of a little-endian one.
func IsGreeting(b []byte) bool { return isOne(b, greeting, oldGreeting) }

// IsReply reports whether a datagram is a server's reply to a greeting.
func IsReply(b []byte) bool { return isOne(b, reply, oldReply) }

func isOne(b []byte, values ...uint32) bool {
	if len(b) != GreetingSize {
		return false
	}
	return slices.Contains(values, binary.LittleEndian.Uint32(b))
}

// Header is the header of each datagram: its sending time since 1970 and its number, from 1.
type Header struct {
	Sent   time.Duration
	Number uint64
}

// Put writes the header into the first 12 bytes of b, or the first 16 if wide.
func (h Header) Put(b []byte, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(h.Sent/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(h.Sent%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], h.Number)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(h.Number))
	}
}

// ParseHeader parses a header. It reports false if the datagram is too short.
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

// Arrivals holds a UDP receiver's statistics. The zero value means that no datagram has arrived.
type Arrivals struct {
	Highest uint64 // highest number so far
	Lost    int64
	Early   int64 // datagrams that arrived out of order
	// Jitter is the smoothed difference of transit times of successive datagrams (RFC 3550 §6.4.1).
	Jitter time.Duration

	jitter  float64
	transit time.Duration
	any     bool
}

// farAhead limits how far a datagram's number may be ahead of the highest one. A number beyond it
// is not plausible: Add would count all numbers in between as lost.
const farAhead = 1 << 31

// Add counts a datagram that arrived at the time now, which counts from 1970.
func (a *Arrivals) Add(now time.Duration, h Header) {
	switch {
	case h.Number > a.Highest && h.Number-a.Highest < farAhead:
		a.Lost += int64(h.Number - a.Highest - 1)
		a.Highest = h.Number
	default:
		a.Early++
		if a.Lost > 0 {
			a.Lost-- // the datagram was counted as lost
		}
	}
	transit := now - h.Sent
	if a.any {
		// RFC 3550 §6.4.1 defines J += (|D| - J) / 16.
		d := transit - a.transit
		a.jitter += (float64(max(d, -d)) - a.jitter) / 16
		a.Jitter = time.Duration(a.jitter)
	}
	a.transit, a.any = transit, true
}
