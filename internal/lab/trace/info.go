package trace

import (
	"slices"
	"time"
)

// Info is what is in a trace.
type Info struct {
	Lines  int
	Length time.Duration // after which it begins again
	First  time.Duration
	// Mean is what its name usually says, in bits a second: 1500 bytes an opportunity, over its
	// length. Bytes counts what mahimahi gives: 1504, of which each packet spends 4.
	Mean, Bytes float64
	// Gap is the longest time without an opportunity and Burst the most in one millisecond.
	Gap   time.Duration
	Burst int
	// Rates are those of each window of Window: the least, 5 %, median, 95 % and the most.
	Window time.Duration
	Rates  [5]float64
}

// Info looks at a trace.
func (t Trace) Info() Info {
	i := Info{Lines: len(t), Length: t[len(t)-1], First: t[0]}
	seconds := i.Length.Seconds()
	i.Mean = float64(len(t)) * OpportunityBits / seconds
	i.Bytes = float64(len(t)) * 8 * 1504 / seconds
	i.Gap = t[0]
	burst := 1
	for k := 1; k < len(t); k++ {
		i.Gap = max(i.Gap, t[k]-t[k-1])
		if t[k] == t[k-1] {
			burst++
		} else {
			burst = 1
		}
		i.Burst = max(i.Burst, burst)
	}
	i.Burst = max(i.Burst, 1)
	i.Window = time.Second
	if i.Length < 5*time.Second {
		i.Window = max(i.Length/5, time.Millisecond)
	}
	rates := t.rates(i.Window)
	slices.Sort(rates)
	last := len(rates) - 1
	for k, p := range []int{0, 5, 50, 95, 100} {
		i.Rates[k] = rates[last*p/100]
	}
	return i
}

// rates are the bits a second of each whole window.
func (t Trace) rates(window time.Duration) []float64 {
	out := make([]float64, max(1, int(t[len(t)-1]/window)))
	for _, at := range t {
		// The opportunity at a window's end is its last.
		if k := int((at - 1) / window); at > 0 && k < len(out) {
			out[k] += OpportunityBits / window.Seconds()
		}
	}
	return out
}
