package play

import (
	"math/bits"
	"time"
)

// histogram counts times so finely that a percentile is off by less than a thousandth of itself.
// The mean, the least and the most are exact. The zero histogram is empty.
type histogram struct {
	count       uint64
	sum         float64
	least, most time.Duration
	// Each octave is cut into steps of one size; one that nothing was in has no memory.
	octaves [64 - stepBits][]uint32
}

// stepBits is how many binary digits of a time are told apart.
const stepBits = 10

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	if h.count == 0 || d < h.least {
		h.least = d
	}
	h.most = max(h.most, d)
	h.count++
	h.sum += float64(d)
	octave := max(bits.Len64(uint64(d))-stepBits, 0)
	if h.octaves[octave] == nil {
		h.octaves[octave] = make([]uint32, 1<<stepBits)
	}
	h.octaves[octave][d>>octave]++
}

func (h *histogram) mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.count))
}

// percentile returns a time that a share of all are not above: the smallest for which at least
// that many are not.
func (h *histogram) percentile(share float64) time.Duration {
	rank := max(uint64(float64(share*float64(h.count))+0.999999), 1)
	seen := uint64(0)
	for octave, steps := range h.octaves {
		for step, n := range steps {
			if seen += uint64(n); n > 0 && seen >= rank {
				middle := time.Duration(step)<<octave + (1<<octave)/2
				return min(max(middle, h.least), h.most)
			}
		}
	}
	return h.most
}
