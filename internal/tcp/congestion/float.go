package congestion

import "math"

// These algorithms use floating point, and must give the same results on every machine. IEEE 754
// defines sums, products, quotients and square roots exactly. But a compiler may fuse x*y+z into
// one rounding, which Go does on arm64 and not on amd64, and most functions of package math differ
// between machines too. So products that are added to something are converted to float64 first,
// which forces the rounding (Go specification), and only exact functions of math are used. A test
// of package sim finds violations.

// cubeRoot returns the cube root of a positive x, identical on every machine. It uses Newton's
// method, and starts from a third of the exponent.
func cubeRoot(x float64) float64 {
	const bias, steps = 715094163 << 32, 4 // each step doubles the number of correct digits
	t := math.Float64frombits(math.Float64bits(x)/3 + bias)
	for range steps {
		square := float64(t * t)
		t -= (float64(square*t) - x) / float64(3*square)
	}
	return t
}
