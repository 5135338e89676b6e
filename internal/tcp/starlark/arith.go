package starlark

import "math"

// These functions have bit-identical results on every processor. Go's math functions do not: some
// are assembly on one platform and Go on another, and Go may fuse x*y + z into one rounding. Each
// product is converted to float64, which forbids fusing (Go specification, "Floating-point
// operators"). The results are accurate to a few units in the last place.

// ln2Hi + ln2Lo is the natural logarithm of 2. ln2Hi has enough trailing zeros for its product with
// an exponent to be exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// exp returns e**x as 2**k times e**r. The remainder r is within ±ln2/2, and a Taylor series gives
// e**r.
func exp(x float64) float64 {
	switch {
	case math.IsNaN(x) || x > 709.782712893384:
		return x * math.Inf(1) // NaN or +Inf
	case x < -745.2:
		return 0
	}
	k := math.Round(float64(x / math.Ln2))
	r := float64(x-float64(k*ln2Hi)) - float64(k*ln2Lo)
	sum := 1.0
	for n := 14.0; n >= 1; n-- {
		sum = 1 + float64(float64(r/n)*sum)
	}
	return math.Ldexp(sum, int(k))
}

// log returns the natural logarithm of x = m * 2**k, with m between √½ and √2. The logarithm of m
// is twice the inverse hyperbolic tangent of (m-1)/(m+1).
func log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = float64(m*2), e-1
	}
	f := (m - 1) / (m + 1)
	s := float64(f * f)
	sum := 0.0
	for n := 25.0; n >= 3; n -= 2 {
		sum = float64(s * (float64(1/n) + sum))
	}
	k := float64(e)
	return float64(k*ln2Hi) + (float64(k*ln2Lo) + float64(float64(2*f)*(1+sum)))
}

// pow returns x**y. It squares repeatedly if y is a moderate whole number, and uses log otherwise.
func pow(x, y float64) float64 {
	const most = 1024
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case y == math.Trunc(y) && math.Abs(y) <= most:
		result := 1.0
		for n := int(math.Abs(y)); n > 0; n >>= 1 {
			if n&1 == 1 {
				result = float64(result * x)
			}
			x = float64(x * x)
		}
		if y < 0 {
			return 1 / result
		}
		return result
	case x == 0 && y > 0:
		return 0
	}
	return exp(float64(y * log(x)))
}

// cbrt returns the cube root by Newton's method, from an estimate with the right exponent.
func cbrt(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	m, e := math.Frexp(math.Abs(x))
	for e%3 != 0 {
		m, e = m/2, e+1
	}
	// m lies between 1/8 and 1, so its root lies between 1/2 and 1.
	t := float64(0.6*m) + 0.4
	for range 6 {
		t -= (t - float64(m/float64(t*t))) / 3
	}
	return math.Copysign(math.Ldexp(t, e/3), x)
}
