package checksum_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
)

// naive is the reference: the loop of RFC 1071 §4.1.
func naive(b []byte) uint16 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
		s = s>>16 + s&0xffff
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func TestSumRFC1071Example(t *testing.T) {
	// RFC 1071 §3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	assert.Equal(t, uint16(0xddf2), checksum.Fold(checksum.Sum(b, 0)))
}

// RFC 1071 §2(B): words may be added in the machine's byte order.
func TestSumEqualsNaiveAtEveryLengthAndSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1500)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for n := range len(b) {
		require.Equal(t, naive(b[:n]), checksum.Fold(checksum.Sum(b[:n], 0)), "length %d", n)
		cut := rng.IntN(n/2+1) * 2
		chained := checksum.Sum(b[cut:n], checksum.Sum(b[:cut], 0))
		require.Equal(t, naive(b[:n]), checksum.Fold(chained), "length %d cut at %d", n, cut)
	}
}

// RFC 1071 §2(B): the bytes of a piece at an odd offset are swapped.
func TestSumPiecesOfAnyLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := make([]byte, 3000)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for range 5000 {
		n := rng.IntN(len(b))
		x := rng.IntN(n + 1)
		y := x + rng.IntN(n-x+1)
		pieces := [][]byte{b[:x], b[x:y], b[y:n]}
		require.Equal(t, naive(b[:n]), checksum.Fold(checksum.SumPieces(pieces, 0)), "%d %d %d", x, y, n)
	}
}

func TestUpdateEqualsRecomputation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	h := make([]byte, 20)
	for range 10000 {
		for i := range h {
			h[i] = byte(rng.Uint32())
		}
		binary.BigEndian.PutUint16(h[10:], 0)
		binary.BigEndian.PutUint16(h[10:], checksum.Checksum(h))
		at := []int{0, 2, 4, 6, 8, 12, 14, 16, 18}[rng.IntN(9)]
		old, changed := binary.BigEndian.Uint16(h[at:]), uint16(rng.Uint32())
		binary.BigEndian.PutUint16(h[at:], changed)
		stored := binary.BigEndian.Uint16(h[10:])
		binary.BigEndian.PutUint16(h[10:], checksum.Update(stored, old, changed))
		require.True(t, checksum.Verify(h, 0))
		require.True(t, checksum.Valid(checksum.SumHeader((*[20]byte)(h))))
		h[at] ^= uint8(1 << rng.IntN(8))
		require.False(t, checksum.Valid(checksum.SumHeader((*[20]byte)(h))))
		require.Equal(t, naive(h), checksum.Fold(checksum.SumHeader((*[20]byte)(h))))
	}
}

func TestPseudoHeader(t *testing.T) {
	src, dst := [4]byte{10, 0, 0, 1}, [4]byte{10, 1, 0, 2}
	flat := []byte{10, 0, 0, 1, 10, 1, 0, 2, 0, 6, 0x05, 0x50}
	assert.Equal(t, naive(flat), checksum.Fold(checksum.PseudoHeader(netip.AddrFrom4(src), netip.AddrFrom4(dst), 6, 0x550)))
}

// RFC 8200 §8.1: addresses, 32-bit length, three zero bytes and the protocol. Sums that carry are
// right, too.
func TestRFC8200_8_1_PseudoHeader(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		src, dst := [16]byte{0x20, 1, 0xd, 0xb8}, [16]byte{}
		for i := range dst {
			src[i], dst[i] = byte(rng.Uint32())|0xf0, byte(rng.Uint32())|0xf0
		}
		if rng.IntN(3) == 0 {
			src, dst = [16]byte(contents(16)["ones"]), [16]byte(contents(16)["ones"])
		}
		n := rng.IntN(1 << 20)
		flat := binary.BigEndian.AppendUint32(append(src[:], dst[:]...), uint32(n))
		flat = append(flat, 0, 0, 0, 58)
		sum := checksum.PseudoHeader(netip.AddrFrom16(src), netip.AddrFrom16(dst), 58, n)
		require.Equal(t, naive(flat), checksum.Fold(sum))
	}
}

func TestValidMeansAllOnes(t *testing.T) {
	for _, sum := range []uint64{0, 1, 0xfffe, 0xffff, 0x10000, 0x1fffe, 1<<32 - 1, 1<<64 - 1, 1<<64 - 2} {
		assert.Equal(t, checksum.Fold(sum) == 0xffff, checksum.Valid(sum), "%#x", sum)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10000 {
		sum := rng.Uint64() >> rng.IntN(64)
		require.Equal(t, checksum.Fold(sum) == 0xffff, checksum.Valid(sum), "%#x", sum)
		sum -= sum % 0xffff
		require.Equal(t, sum != 0, checksum.Valid(sum), "%#x", sum)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{0xff, 0xff}, uint16(0), uint16(1), uint64(0))
	f.Add([]byte{1, 2, 3}, uint16(0), uint16(2), uint64(1))
	for _, b := range contents(1500) {
		f.Add(b, uint16(1), uint16(700), uint64(1)<<63)
	}
	f.Fuzz(func(t *testing.T, b []byte, from, cut uint16, initial uint64) {
		b = b[min(int(from), len(b)):]
		at := min(int(cut)&^1, len(b)&^1)
		got := checksum.Fold(checksum.Sum(b[at:], checksum.Sum(b[:at], 0)))
		assert.Equal(t, naive(b), got)
		want := checksum.Fold(checksum.Pure(b, initial))
		sum := checksum.Sum(b, initial)
		assert.Equal(t, want, checksum.Fold(sum))
		assert.Equal(t, want == 0xffff, checksum.Valid(sum))
	})
}

// Every addition carries, including those that join the chains.
func TestSumOfOnesCarriesAll(t *testing.T) {
	b := make([]byte, 600)
	for i := range b {
		b[i] = 0xff
	}
	for n := range len(b) {
		got := checksum.Fold(checksum.Sum(b[:n], ^uint64(0)))
		want := uint32(naive(b[:n])) + 0xffff
		require.Equal(t, uint16(want>>16+want&0xffff), got, "length %d", n)
	}
}

// sumOne is an earlier Sum with one chain of additions, for comparison in BenchmarkSum.
func sumOne(b []byte, s uint64) uint64 {
	var c uint64
	for len(b) >= 64 {
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[8:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[16:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[24:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[32:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[40:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[48:]), c)
		s, c = bits.Add64(s, binary.LittleEndian.Uint64(b[56:]), c)
		b = b[64:]
	}
	return checksum.Sum(b, s+c)
}

func BenchmarkSum(b *testing.B) {
	p := make([]byte, 1<<16)
	for _, size := range []int{40, 128, 1400, len(p)} {
		for name, sum := range map[string]func([]byte, uint64) uint64{
			"here": checksum.Sum, "two chains": checksum.Pure, "one chain": sumOne,
		} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				b.SetBytes(int64(size))
				var s uint64
				for b.Loop() {
					s = sum(p[:size], s)
				}
			})
		}
	}
}
