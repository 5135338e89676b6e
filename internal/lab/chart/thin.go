package chart

import (
	"cmp"
	"math"
	"slices"
)

// grain is the resolution of a picture: points closer than that look like one.
const grain = 0.4

// columns thins a line whose X never decreases. In each column of the picture, it keeps the first,
// the highest, the lowest and the last point, in their order. The thinned line has every peak.
type columns struct {
	kept, column []Point
	at           float64
}

func (c *columns) add(p Point) {
	if at := math.Floor(p.X / grain); at != c.at || len(c.column) == 0 {
		c.flush()
		c.at = at
	}
	c.column = append(c.column, p)
}

func (c *columns) flush() {
	c.kept = extremes(c.kept, c.column)
	c.column = c.column[:0]
}

func (c *columns) take() []Point {
	c.flush()
	kept := c.kept
	c.kept = nil
	return kept
}

func extremes(kept, points []Point) []Point {
	if len(points) <= 4 {
		return append(kept, points...)
	}
	low, high := 0, 0
	for i, p := range points {
		if p.Y < points[low].Y {
			low = i
		}
		if p.Y > points[high].Y {
			high = i
		}
	}
	last := -1
	for _, i := range [...]int{0, min(low, high), max(low, high), len(points) - 1} {
		if i != last {
			kept = append(kept, points[i])
			last = i
		}
	}
	return kept
}

// dots drops dots that coincide with an earlier one.
type dots struct {
	grain float64
	kept  []Point
	seen  map[cell]struct{}
}

type cell struct{ x, y int32 }

func (d *dots) add(p Point) {
	if d.seen == nil {
		d.seen = map[cell]struct{}{}
	}
	c := cell{int32(p.X / d.grain), int32(p.Y / d.grain)}
	if _, ok := d.seen[c]; !ok {
		d.seen[c] = struct{}{}
		d.kept = append(d.kept, p)
	}
}

// thinBars joins the bars of each column that touch.
func thinBars(bars []Point) []Point {
	for i := range bars {
		if bars[i].Low < bars[i].Y {
			bars[i].Y, bars[i].Low = bars[i].Low, bars[i].Y
		}
	}
	slices.SortStableFunc(bars, func(a, b Point) int {
		return cmp.Or(cmp.Compare(math.Floor(a.X/grain), math.Floor(b.X/grain)),
			cmp.Compare(a.Y, b.Y))
	})
	var kept []Point
	for _, b := range bars {
		if n := len(kept); n > 0 {
			last := &kept[n-1]
			if math.Floor(last.X/grain) == math.Floor(b.X/grain) && b.Y <= last.Low+grain/2 {
				last.Low = max(last.Low, b.Low)
				continue
			}
		}
		kept = append(kept, b)
	}
	return kept
}

// apartBy returns the sorted values, except those within a distance of the last one returned.
func apartBy(values []float64, distance float64) []float64 {
	var kept []float64
	for _, v := range values {
		if len(kept) == 0 || v-kept[len(kept)-1] >= distance {
			kept = append(kept, v)
		}
	}
	return kept
}
