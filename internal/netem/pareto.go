package netem

import "math"

// quantiles is the number of entries of tc's tables.
const quantiles = 4096

// pareto is the distribution pareto of tc-netem(8): a Pareto variable x with exponent 3, mean 1.5
// and minimum 1, scaled to (x-1.5)·4/3 times the jitter, and cut off at 4 times. So a packet is
// early by at most 2/3 of the jitter, and sometimes very late.
//
// It returns the entry of tc's table such that k of 4096 values are at least as large, with k
// from 1: (4096/k)^(1/3)·4/3·8192 is the cube root of 2^57/(27k). Floating point is used only for
// the first guess, so that the result is the same on every machine.
func pareto(k int64) int64 {
	const mean, most, cube = 16384, math.MaxInt16, 1 << 57 / 27.0
	y := int64(math.Cbrt(cube / float64(k)))
	// The result is the y with y-½ not above the root and y+½ above it. The loops compare the cubes
	// of twice these values.
	for ; 27*k*(2*y-1)*(2*y-1)*(2*y-1) > 1<<60; y-- {
		continue
	}
	for ; 27*k*(2*y+1)*(2*y+1)*(2*y+1) <= 1<<60; y++ {
		continue
	}
	return min(y-mean, most)
}

// paretoNormal is tc's distribution of this name: each quantile is a quarter of the normal
// distribution's and three quarters of pareto's. It returns the entry of tc's table such that j of
// 4096 values are smaller. The normal part could differ between machines; rounding removes that. A
// test checks that no value is near the middle between two integers.
func paretoNormal(j int64) int64 {
	normal := int64(math.Round(normalQuantile(j) * jitterScale))
	return (normal + 3*pareto(quantiles-j)) / 4
}

// normalQuantile returns the quantile of the normal distribution in the middle of the first of the
// four entries that tc combines.
func normalQuantile(j int64) float64 {
	const entries = 4 * quantiles
	return -math.Sqrt2 * math.Erfcinv(2*(4*float64(j)+0.5)/entries)
}
