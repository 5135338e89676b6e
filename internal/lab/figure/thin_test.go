package figure

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
)

func walk(n int) plotter.XYs {
	rng := rand.New(rand.NewPCG(3, 4))
	points := make(plotter.XYs, n)
	y := 0.0
	for i := range points {
		y += rng.Float64() - 0.5
		points[i] = plotter.XY{X: float64(i) * rng.Float64() / 8, Y: y}
		if i > 0 {
			points[i].X = points[i-1].X + rng.Float64()
		}
	}
	return points
}

func TestThinLosesNoPeak(t *testing.T) {
	const columns = 100
	points := walk(50_000)
	points[31_415].Y = 1e6 // one sample high: a window that collapsed at once
	points[27_182].Y = -1e6
	kept := thin(points, columns)

	require.LessOrEqual(t, len(kept), 4*(columns+1))
	assert.Contains(t, kept, points[31_415])
	assert.Contains(t, kept, points[27_182])
	assert.Equal(t, points[0], kept[0])
	assert.Equal(t, points[len(points)-1], kept[len(kept)-1])
	for i := 1; i < len(kept); i++ {
		require.Less(t, kept[i-1].X, kept[i].X, "in order, and none twice")
	}
}

func TestThinKeepsEachColumnsRange(t *testing.T) {
	const columns = 40
	points := walk(10_000)
	kept := thin(points, columns)
	width := (points[len(points)-1].X - points[0].X) / columns
	type span struct{ least, greatest float64 }
	spans := func(points plotter.XYs) map[int]span {
		found := map[int]span{}
		for _, p := range points {
			c := int((p.X - points[0].X) / width)
			s, ok := found[c]
			if !ok {
				s = span{p.Y, p.Y}
			}
			found[c] = span{min(s.least, p.Y), max(s.greatest, p.Y)}
		}
		return found
	}
	assert.Equal(t, spans(points), spans(kept))
}

func TestThinLeavesWhatIsFewAlone(t *testing.T) {
	points := walk(400)
	assert.Equal(t, points, thin(points, 100))
	assert.Empty(t, thin(nil, 100))
	same := make(plotter.XYs, 1000) // all at one instant
	same[500].Y = 7
	assert.Equal(t, plotter.XYs{{}, {Y: 7}, {}}, thin(same, 10))
}

func TestEventsCountEverything(t *testing.T) {
	samples := sawtooth(20e6, 0.02)
	at := func(s *Sample) plotter.XY { return plotter.XY{X: s.Seconds, Y: s.Acked} }
	for _, columns := range []int{1, 7, 1000, 1_000_000} {
		total := 0
		for _, e := range events(samples, columns, retransmits, at) {
			total += e.Count
		}
		last := &samples[len(samples)-1]
		assert.Equal(t, last.Retransmits-samples[0].Retransmits, total, "%d columns", columns)
	}
	assert.Empty(t, events(nil, 10, retransmits, at))
	assert.Empty(t, events(sawtooth(1e6, 0), 10, retransmits, at))
}
