package simulation

import (
	"math/bits"
	"time"
)

// Histogram counts times so finely that a percentile is off by less than a thousandth of itself.
// The mean, the least and the most are exact. The zero Histogram is empty.
type Histogram struct {
	Count       uint64
	Least, Most time.Duration

	sum float64
	// Each octave is cut into steps of one size; one that nothing was in has no memory.
	octaves [64 - stepBits][]uint32
}

// stepBits is the number of significant binary digits of a time.
const stepBits = 10

// Add counts a time; a negative one is 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	if h.Count == 0 || d < h.Least {
		h.Least = d
	}
	h.Most = max(h.Most, d)
	h.Count++
	h.sum += float64(d)
	octave := max(bits.Len64(uint64(d))-stepBits, 0)
	if h.octaves[octave] == nil {
		h.octaves[octave] = make([]uint32, 1<<stepBits)
	}
	h.octaves[octave][d>>octave]++
}

// Mean returns the mean, 0 of nothing.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.Count))
}

// Percentile returns a time that a share of all are not above: the smallest for which at least
// that many are not.
func (h *Histogram) Percentile(share float64) time.Duration {
	rank := max(uint64(float64(share*float64(h.Count))+0.999999), 1)
	seen := uint64(0)
	for octave, steps := range h.octaves {
		for step, n := range steps {
			if seen += uint64(n); n > 0 && seen >= rank {
				middle := time.Duration(step)<<octave + (1<<octave)/2
				return min(max(middle, h.Least), h.Most)
			}
		}
	}
	return h.Most
}
