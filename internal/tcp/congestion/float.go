package congestion

import "math"

// Floating point decides here, and a run must go the same way on every machine. IEEE 754
// says what a sum, a product, a quotient and a square root are; but a compiler may round
// x*y+z once instead of twice, which arm64's does and amd64's does not, and what
// package math makes of them differs likewise. So products that are added to something are
// converted to float64 first, which the language takes for rounding, and there is nothing
// of math but what is exact. A test of package sim looks for what was forgotten.

// cubeRoot returns the cube root of a positive x, the same one everywhere: by Newton's
// method, from a third of the exponent.
func cubeRoot(x float64) float64 {
	const bias, steps = 715094163 << 32, 4 // each doubles the digits; the first guess has one
	t := math.Float64frombits(math.Float64bits(x)/3 + bias)
	for range steps {
		square := float64(t * t)
		t -= (float64(square*t) - x) / float64(3*square)
	}
	return t
}
