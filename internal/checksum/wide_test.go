package checksum_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// contents returns n bytes of each kind that the sums are tested with: random bytes, and ones,
// which carry at every addition.
func contents(n int) map[string][]byte {
	rng := rand.New(rand.NewPCG(7, 8))
	random, ones := make([]byte, n), make([]byte, n)
	for i := range n {
		random[i], ones[i] = byte(rng.Uint32()), 0xff
	}
	return map[string][]byte{"random": random, "ones": ones}
}

// aligned returns the part of b from the first address that is a multiple of 64.
func aligned(b []byte) []byte {
	return b[-uintptr(unsafe.Pointer(&b[0]))%64:]
}

// TestSumMatchesItsDefinition compares Sum with the definition, in which a byte at an even offset
// counts for the upper half of its word and one at an odd offset for the lower. It covers every
// length, from every alignment within a cache line.
func TestSumMatchesItsDefinition(t *testing.T) {
	t.Parallel()
	const longest = 4096
	for name, all := range contents(longest + 128) {
		for at := range 64 {
			b := aligned(all)[at:]
			want := uint32(0)
			for n := range longest + 1 {
				got := checksum.Fold(checksum.Sum(b[:n], 0))
				if uint32(got) != want {
					require.Failf(t, "wrong", "%s, %d bytes, aligned at %d: %x, want %x",
						name, n, at, got, want)
				}
				want += uint32(b[n]) << (8 * (1 - n%2))
				want = want>>16 + want&0xffff
			}
		}
	}
}

// Sum and Pure agree from any partial sum, and for pieces that begin at odd offsets.
func TestSumEqualsPure(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	for name, all := range contents(1 << 16) {
		for range 5000 {
			at := rng.IntN(128)
			b := all[at : at+rng.IntN(4096)]
			if rng.IntN(100) == 0 {
				b = all[at:]
			}
			for _, initial := range []uint64{0, rng.Uint64(), 1<<64 - 1} {
				want := checksum.Fold(checksum.Pure(b, initial))
				require.Equal(t, want, checksum.Fold(checksum.Sum(b, initial)),
					"%s, %d bytes from %d, initial %x", name, len(b), at, initial)
				cut := rng.IntN(len(b) + 1)
				pieces := [][]byte{b[:cut], b[cut:]}
				require.Equal(t, want, checksum.Fold(checksum.SumPieces(pieces, initial)),
					"%s, %d bytes from %d, initial %x, cut at %d", name, len(b), at, initial, cut)
			}
		}
	}
}

// Sum ignores the bytes before and after its argument.
func TestSumIgnoresNeighboringBytes(t *testing.T) {
	t.Parallel()
	for n := range 600 {
		b := make([]byte, n+64)
		want := checksum.Sum(b[32:32+n], 0)
		for i := range b {
			if i < 32 || i >= 32+n {
				b[i] = 0xff
			}
		}
		require.Equal(t, want, checksum.Sum(b[32:32+n], 0), "%d bytes", n)
	}
}
