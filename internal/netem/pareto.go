package netem

import (
	"math"
	"math/rand/v2"
	"time"
)

// ParetoJitter is what tc-netem(8) calls the distribution pareto: a Pareto variable x of
// exponent 3, whose mean is 1.5 and least value 1, as (x-1.5)·4/3 times this jitter, and 4
// times at most. So a packet is early by 2/3 of it at most, and now and then very late.
type ParetoJitter time.Duration

// Validate reports what is wrong with the description.
func (p ParetoJitter) Validate() error { return validJitter(time.Duration(p)) }

// Draw implements Jitter.
func (p ParetoJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	return scaledJitter(time.Duration(p), pareto(1+int64(random.Uint32N(quantiles))))
}

// ParetoNormalJitter is what tc-netem(8) calls the distribution paretonormal: at each quantile
// a quarter of the normal one and three of pareto.
type ParetoNormalJitter time.Duration

// Validate reports what is wrong with the description.
func (p ParetoNormalJitter) Validate() error { return validJitter(time.Duration(p)) }

// Draw implements Jitter.
func (p ParetoNormalJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	return scaledJitter(time.Duration(p), paretoNormal(int64(random.Uint32N(quantiles))))
}

// quantiles is how many entries tc's tables have.
const quantiles = 4096

// pareto is the entry of tc's table than which k of 4096 values are as large or larger, k from
// 1: (4096/k)^(1/3)·4/3·8192 is the cube root of 2^57/27k. Floating point only guesses, so
// that it is the same on every machine.
func pareto(k int64) int64 {
	const mean, most, cube = 16384, math.MaxInt16, 1 << 57 / 27.0
	y := int64(math.Cbrt(cube / float64(k)))
	// Right is the y with y-½ not above the root and y+½ above it; both sides times two, cubed.
	for ; 27*k*(2*y-1)*(2*y-1)*(2*y-1) > 1<<60; y-- {
		continue
	}
	for ; 27*k*(2*y+1)*(2*y+1)*(2*y+1) <= 1<<60; y++ {
		continue
	}
	return min(y-mean, most)
}

// paretoNormal is the entry of tc's table than which j of 4096 values are smaller. Rounding
// takes what may differ between machines off the normal part: a test sees that none is near
// the middle between two numbers.
func paretoNormal(j int64) int64 {
	normal := int64(math.Round(normalQuantile(j) * jitterScale))
	return (normal + 3*pareto(quantiles-j)) / 4
}

// normalQuantile is the normal distribution's quantile in the middle of the first of the four
// entries that tc takes together.
func normalQuantile(j int64) float64 {
	const entries = 4 * quantiles
	return -math.Sqrt2 * math.Erfcinv(2*(4*float64(j)+0.5)/entries)
}
