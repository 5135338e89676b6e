package tcp

// Inside a connection sequence numbers are 64 bits wide: segments carry the low half, and
// comparisons are plain. A stream of any length then crosses the wrap of RFC 9293 §3.4 without a
// special case, and a ring offset is a subtraction.

// wideBase keeps the first wide numbers away from zero, so that "a little
// before" the initial sequence number does not underflow.
const wideBase = 1 << 32

// wide returns the wide form of an initial sequence number.
func wide(iss uint32) uint64 { return wideBase + uint64(iss) }

// widen returns the wide number closest to ref that the wire writes as s.
func widen(ref uint64, s uint32) uint64 {
	return ref + uint64(int64(int32(s-uint32(ref))))
}

// after reports whether the wire's a is later than b (RFC 9293 §3.4), for the
// few places that keep no connection.
func after(a, b uint32) bool { return int32(a-b) > 0 }

// streamed returns the offset in the stream of a wide number, given that of the
// SYN before it; zero before there is a stream.
func streamed(n, iss uint64) uint64 {
	if n <= iss {
		return 0
	}
	return n - iss - 1
}
