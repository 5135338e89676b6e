package chart

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func walk(n int) []Point {
	rng := rand.New(rand.NewPCG(3, 4))
	points := make([]Point, n)
	y := 200.0
	for i := range points {
		y += rng.Float64() - 0.5
		points[i] = Point{X: float64(i) * PageWidth / float64(n), Y: y}
	}
	return points
}

func TestThinKeepsPeaks(t *testing.T) {
	points := walk(300_000)
	points[31_415].Y = 1e6 // a peak of one sample, after which the window collapsed
	points[271_828].Y = -1e6
	kept := thinLine(points)
	require.LessOrEqual(t, len(kept), int(4*(PageWidth/grain+1)))
	assert.Contains(t, kept, points[31_415])
	assert.Contains(t, kept, points[271_828])
	assert.Equal(t, points[0], kept[0])
	assert.Equal(t, points[len(points)-1], kept[len(kept)-1])
	for i := 1; i < len(kept); i++ {
		require.Less(t, kept[i-1].X, kept[i].X, "in order, without duplicates")
	}
}

func TestThinKeepsTheRangeOfEachColumn(t *testing.T) {
	type span struct{ least, greatest float64 }
	spans := func(points []Point) map[int]span {
		found := map[int]span{}
		for _, p := range points {
			c := int(math.Floor(p.X / grain))
			s, ok := found[c]
			if !ok {
				s = span{p.Y, p.Y}
			}
			found[c] = span{min(s.least, p.Y), max(s.greatest, p.Y)}
		}
		return found
	}
	points := walk(50_000)
	assert.Equal(t, spans(points), spans(thinLine(points)))
}

func TestThinDotsCoverTheSameArea(t *testing.T) {
	all := walk(100_000)
	d := dots{grain: grain}
	for _, p := range all {
		d.add(p)
	}
	kept := d.kept
	assert.Less(t, len(kept), len(all)/4)
	covered := map[cell]bool{}
	for _, p := range kept {
		covered[cell{int32(p.X / grain), int32(p.Y / grain)}] = true
	}
	for _, p := range all {
		require.True(t, covered[cell{int32(p.X / grain), int32(p.Y / grain)}])
	}
}

func TestThinBarsCoverTheSameRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 4))
	var bars, before []Point
	for range 20_000 {
		y := 300 * rng.Float64()
		bars = append(bars, Point{X: PageWidth * rng.Float64() / 20, Y: y + 3*rng.Float64(), Low: y})
	}
	before = append(before, bars...)
	kept := thinBars(bars)
	assert.Less(t, len(kept), len(before)/2)
	byColumn := map[int][]Point{}
	for _, b := range kept {
		c := int(math.Floor(b.X / grain))
		byColumn[c] = append(byColumn[c], b)
	}
	for _, b := range before {
		covered := false
		for _, k := range byColumn[int(math.Floor(b.X/grain))] {
			covered = covered || k.Y <= b.Low && b.Y <= k.Low
		}
		require.True(t, covered, "%v", b)
	}
}

func TestClip(t *testing.T) {
	b := box{0, 0, 10, 10}
	got := b.clip([]Point{{X: -5, Y: 5}, {X: 5, Y: 5}, {X: 5, Y: 20}, {X: 8, Y: 20}, {X: 8, Y: 2}})
	assert.Equal(t, [][]Point{
		{{X: 0, Y: 5}, {X: 5, Y: 5}, {X: 5, Y: 10}},
		{{X: 8, Y: 10}, {X: 8, Y: 2}},
	}, got)
	assert.Empty(t, b.clip([]Point{{X: -1, Y: 0}, {X: -1, Y: 10}}))
	assert.Len(t, b.clip([]Point{{X: 1, Y: 1}}), 1)
}

func TestTint(t *testing.T) {
	assert.Equal(t, "#ffffff", Blue.Tint(1).String())
	assert.Equal(t, "#000000", Blue.Tint(-1).String())
	assert.Equal(t, Blue, Blue.Tint(0))
	assert.Equal(t, "#808080", RGB(0).Tint(0.5).String())
}

// thinLine thins a line.
func thinLine(line []Point) []Point {
	var c columns
	for _, p := range line {
		c.add(p)
	}
	return c.take()
}
