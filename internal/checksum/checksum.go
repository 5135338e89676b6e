// Package checksum computes the Internet checksum (RFC 1071) in wide words and
// updates it incrementally (RFC 1624).
package checksum

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Sum adds b to a partial one's-complement sum, initial, which is 0 or the result of an earlier
// Sum. Calls can be chained if all pieces but the last have an even length. Only Sum, Fold and
// Valid interpret the result.
//
// The sum does not depend on byte order (RFC 1071 §2(B)): Sum adds words as the machine loads them,
// eight bytes at a time, and Fold swaps the bytes once. With AVX2, sum_amd64.s sums the long runs.
func Sum(b []byte, initial uint64) uint64 {
	s, c := initial, uint64(0)
	switch {
	case len(b) >= 128 && wide:
		n := len(b) &^ 31
		s, c = bits.Add64(s, sumWide(b[:n]), 0)
		b = b[n:]
	case len(b) >= 128:
		b, s, c = sumPairs(b, s)
	}
	for len(b) >= 32 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[24:]), c)
		b = b[32:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		b = b[8:]
	}
	var tail uint64
	if len(b) >= 4 {
		tail = uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		tail += uint64(binary.LittleEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		tail += uint64(b[0])
	}
	s, c = bits.Add64(s, tail, c)
	s, c = bits.Add64(s, 0, c)
	return s + c
}

// sumPairs sums all but the last len(b)%128 bytes, in two independent chains. Each addition must
// wait for the carry of the one before it; the processor works on the other chain meanwhile.
func sumPairs(b []byte, s uint64) (rest []byte, sum, carry uint64) {
	var t, c, d uint64
	for len(b) >= 128 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[24:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[32:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[40:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[48:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[56:]), c)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[64:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[72:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[80:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[88:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[96:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[104:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[112:]), d)
		t, d = bits.Add64(t, binary.LittleEndian.Uint64(b[120:]), d)
		b = b[128:]
	}
	s, c = bits.Add64(s, t, c)
	s, c = bits.Add64(s, d, c)
	return b, s, c
}

// Fold returns the 16-bit one's-complement sum of a partial sum, as a big-endian value.
func Fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return bits.ReverseBytes16(uint16(s))
}

// Checksum returns the Internet checksum of b, whose checksum field must be zero.
func Checksum(b []byte) uint16 { return ^Fold(Sum(b, 0)) }

// Valid reports whether a sum over data and its checksum field is all ones, which means that the
// checksum is right.
func Valid(sum uint64) bool { return sum != 0 && sum%0xffff == 0 }

// Verify reports whether b, with its checksum field, sums to all ones.
func Verify(b []byte, initial uint64) bool { return Valid(Sum(b, initial)) }

// SumHeader is like Sum, for an IP header without options. It has no loop.
func SumHeader(h *[20]byte) uint64 {
	s, c := bits.Add64(binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:]), 0)
	s, c = bits.Add64(s, uint64(binary.LittleEndian.Uint32(h[16:])), c)
	return s + c
}

// Update returns the new checksum after one of the 16-bit words that it covers changed from was to
// is (RFC 1624 §3, HC' = ~(~HC + ~m + m')).
func Update(stored, was, is uint16) uint16 {
	s := uint32(^stored) + uint32(^was) + uint32(is)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return ^uint16(s)
}

// PseudoHeader returns the partial sum of the pseudo-header: the addresses, the protocol of the
// upper layer and the length of the segment in bytes. The family of the addresses selects the
// format of IPv4 (RFC 9293 §3.1) or IPv6 (RFC 8200 §8.1).
func PseudoHeader(src, dst netip.Addr, protocol uint8, length int) uint64 {
	if src.Is6() {
		return pseudoHeader6(src.As16(), dst.As16(), protocol, length)
	}
	a, b := src.As4(), dst.As4()
	s := uint64(binary.LittleEndian.Uint32(a[:])) + uint64(binary.LittleEndian.Uint32(b[:]))
	word := uint32(bits.ReverseBytes16(uint16(length)))
	return s + uint64(word) + uint64(protocol)<<8
}

func pseudoHeader6(src, dst [16]byte, protocol uint8, length int) uint64 {
	s := uint64(bits.ReverseBytes32(uint32(length))) + uint64(protocol)<<24
	s, c := bits.Add64(s, binary.LittleEndian.Uint64(src[:]), 0)
	s, c = bits.Add64(s, binary.LittleEndian.Uint64(src[8:]), c)
	s, c = bits.Add64(s, binary.LittleEndian.Uint64(dst[:]), c)
	s, c = bits.Add64(s, binary.LittleEndian.Uint64(dst[8:]), c)
	return s + c
}

// SumPieces adds pieces to a partial sum as if they were one run of bytes that begins at an even
// offset. A piece may have any length.
func SumPieces(pieces [][]byte, initial uint64) uint64 {
	s, odd := initial, false
	for _, p := range pieces {
		if odd {
			// RFC 1071 §2(B): at an odd offset every byte falls into the other half of its word.
			// Fold has swapped the halves already.
			sum, carry := bits.Add64(s, uint64(Fold(Sum(p, 0))), 0)
			s = sum + carry
		} else {
			s = Sum(p, s)
		}
		odd = odd != (len(p)%2 == 1)
	}
	return s
}
