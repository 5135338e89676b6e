// Package checksum computes the Internet checksum (RFC 1071) in wide words and
// updates it incrementally (RFC 1624).
package checksum

import (
	"encoding/binary"
	"math/bits"
)

// Sum adds b to a partial one's-complement sum, starting from initial (0 or
// what an earlier Sum returned). Pieces can be chained when all but the last
// have an even length. The result is only meaningful to Sum and Fold.
//
// RFC 1071 §2(B): the sum does not depend on byte order, so words are added as
// the machine loads them, eight bytes at a time, and swapped once in Fold.
// Where the machine adds more at a time (sum_amd64.s), the long runs are summed so.
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

// sumPairs adds all but less than 128 bytes, in two chains: an addition waits for the carry of the
// one before it, and the processor has another to do meanwhile.
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

// Fold returns the 16-bit one's-complement sum as a big-endian value.
func Fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return bits.ReverseBytes16(uint16(s))
}

// Checksum returns the Internet checksum of b as it is stored in a header
// whose checksum field was zero.
func Checksum(b []byte) uint16 { return ^Fold(Sum(b, 0)) }

// Valid reports whether a sum over a checksum field and what it covers is right: all ones.
func Valid(sum uint64) bool { return sum != 0 && sum%0xffff == 0 }

// Verify reports whether b, its checksum field included, sums to all ones.
func Verify(b []byte, initial uint64) bool { return Valid(Sum(b, initial)) }

// SumHeader is Sum for an IP header without its options, without a loop.
func SumHeader(h *[20]byte) uint64 {
	s, c := bits.Add64(binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:]), 0)
	s, c = bits.Add64(s, uint64(binary.LittleEndian.Uint32(h[16:])), c)
	return s + c
}

// Update returns the stored checksum after one of the words that it covers
// changed from was to is: RFC 1624 §3, HC' = ~(~HC + ~m + m').
func Update(stored, was, is uint16) uint16 {
	s := uint32(^stored) + uint32(^was) + uint32(is)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return ^uint16(s)
}

// PseudoHeader returns the partial sum of the IPv4 pseudo-header (RFC 9293
// §3.1): addresses, protocol and the length in bytes of what follows.
func PseudoHeader(src, dst [4]byte, protocol uint8, length int) uint64 {
	s := uint64(binary.LittleEndian.Uint32(src[:])) + uint64(binary.LittleEndian.Uint32(dst[:]))
	word := uint32(bits.ReverseBytes16(uint16(length)))
	return s + uint64(word) + uint64(protocol)<<8
}

// SumPieces adds pieces to a partial sum as if they were one run of bytes that
// begins at an even offset; a piece may have any length.
func SumPieces(pieces [][]byte, initial uint64) uint64 {
	s, odd := initial, false
	for _, p := range pieces {
		if odd {
			// RFC 1071 §2(B): at an odd offset every byte counts for the other half of its
			// word, and Fold has swapped the halves already.
			s = addCarry(s, uint64(Fold(Sum(p, 0))))
		} else {
			s = Sum(p, s)
		}
		odd = odd != (len(p)%2 == 1)
	}
	return s
}

func addCarry(a, b uint64) uint64 {
	s, c := bits.Add64(a, b, 0)
	return s + c
}
