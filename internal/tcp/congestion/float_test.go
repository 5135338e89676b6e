package congestion

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCubeRoot(t *testing.T) {
	for _, x := range []float64{1, 8, 27, 0.001, 1e-300, 1e300, 5e-9, 2.5e6, 12345.678} {
		require.InEpsilon(t, math.Cbrt(x), cubeRoot(x), 4e-16, "of %v", x)
	}
	for x := 1e-6; x < 1e12; x *= 1.01 {
		require.InEpsilon(t, math.Cbrt(x), cubeRoot(x), 4e-16, "of %v", x)
	}
	require.InDelta(t, 3, cubeRoot(27), 0)
}
