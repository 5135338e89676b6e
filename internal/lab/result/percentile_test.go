package result

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPercentile(t *testing.T) {
	values := []float64{10, 20, 30, 40}
	for p, want := range map[float64]float64{0: 10, 0.25: 17.5, 0.5: 25, 0.75: 32.5, 0.9: 37, 1: 40} {
		assert.InDelta(t, want, quantile(values, p), 1e-12, "p %v", p)
	}
	assert.True(t, math.IsNaN(quantile(nil, 0.5)))
}
