package sim

import (
	"bytes"
	"math/rand/v2"
)

// patternBytes is the period of the pattern. It is a prime, so that a shift by a power of two or by
// a segment changes the data.
const patternBytes = 65521

// PatternRun is the maximum length that Pattern returns.
const PatternRun = 64 << 10

// pattern is the period followed by PatternRun more bytes, so that every run is contiguous.
var pattern = func() []byte {
	b := make([]byte, patternBytes+PatternRun)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range patternBytes {
		b[i] = byte(r.Uint32())
	}
	for i := patternBytes; i < len(b); {
		i += copy(b[i:], b[:patternBytes])
	}
	return b
}()

// Pattern returns n bytes of the pattern from an offset on. n must be at most PatternRun. Callers
// must not change the result.
func Pattern(off uint64, n int) []byte {
	at := int(off % patternBytes)
	return pattern[at : at+n : at+n]
}

// Fill writes the pattern into b, starting at an offset of the pattern.
func Fill(b []byte, off uint64) {
	for len(b) > 0 {
		n := copy(b, pattern[off%patternBytes:])
		b, off = b[n:], off+uint64(n)
	}
}

// Check returns how many bytes at the start of b equal the pattern from an offset on.
func Check(b []byte, off uint64) int {
	right := 0
	for right < len(b) {
		want := pattern[(off+uint64(right))%patternBytes:]
		got := b[right:]
		n := min(len(want), len(got))
		if !bytes.Equal(got[:n], want[:n]) {
			for got[0] == want[0] {
				got, want = got[1:], want[1:]
				right++
			}
			return right
		}
		right += n
	}
	return right
}
