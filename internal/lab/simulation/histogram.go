package simulation

import (
	"math/bits"
	"time"
)

// Histogram counts times with a resolution of a thousandth, so percentiles are that accurate. Mean,
// minimum and maximum are exact. The zero Histogram is empty.
type Histogram struct {
	Count    uint64
	Min, Max time.Duration

	sum float64
	// Each octave is divided into steps of equal size. Memory is allocated for octaves in use only.
	octaves [64 - stepBits][]uint32
}

// stepBits is the number of significant binary digits of a time.
const stepBits = 10

// Add counts a time; negative times count as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	if h.Count == 0 || d < h.Min {
		h.Min = d
	}
	h.Max = max(h.Max, d)
	h.Count++
	h.sum += float64(d)
	octave := max(bits.Len64(uint64(d))-stepBits, 0)
	if h.octaves[octave] == nil {
		h.octaves[octave] = make([]uint32, 1<<stepBits)
	}
	h.octaves[octave][d>>octave]++
}

// Mean returns the mean, or 0 if the histogram is empty.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.Count))
}

// Percentile returns the smallest time such that at least the given share of all times do not
// exceed it.
func (h *Histogram) Percentile(share float64) time.Duration {
	rank := max(uint64(float64(share*float64(h.Count))+0.999999), 1)
	seen := uint64(0)
	for octave, steps := range h.octaves {
		for step, n := range steps {
			if seen += uint64(n); n > 0 && seen >= rank {
				middle := time.Duration(step)<<octave + (1<<octave)/2
				return min(max(middle, h.Min), h.Max)
			}
		}
	}
	return h.Max
}
