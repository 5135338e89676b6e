package tcp

// Inside a connection, sequence numbers have 64 bits, and segments carry the low half. So the wrap
// at 2^32 (RFC 9293 §3.4) needs no special case in comparisons, and an offset in a ring is a
// subtraction.

// wideBase keeps the first 64-bit numbers far above zero, so that a number shortly before the
// initial sequence number does not underflow.
const wideBase = 1 << 32

// wide returns the 64-bit form of an initial sequence number.
func wide(iss uint32) uint64 { return wideBase + uint64(iss) }

// widen returns the 64-bit number closest to ref whose low half is s.
func widen(ref uint64, s uint32) uint64 {
	return ref + uint64(int64(int32(s-uint32(ref))))
}

// after reports whether the 32-bit number a is later than b (RFC 9293 §3.4), for code without a
// connection.
func after(a, b uint32) bool { return int32(a-b) > 0 }

// streamed returns the stream offset of a 64-bit sequence number; iss is the number of the SYN.
// Numbers before the stream have offset zero.
func streamed(n, iss uint64) uint64 {
	if n <= iss {
		return 0
	}
	return n - iss - 1
}
