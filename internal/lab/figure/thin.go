package figure

import (
	"math"

	"gonum.org/v1/plot/plotter"
)

// thin keeps of a curve what a picture of that many columns can show: the first, the least, the
// greatest and the last point of each column, in their order. No peak is lost, however short it
// was. The points are in order of X.
func thin(points plotter.XYs, columns int) plotter.XYs {
	if len(points) <= 4*columns || columns < 1 {
		return points
	}
	start := points[0].X
	width := (points[len(points)-1].X - start) / float64(columns)
	if !(width > 0) {
		return extremes(nil, points)
	}
	kept := make(plotter.XYs, 0, 4*columns)
	for len(points) > 0 {
		column := math.Floor((points[0].X - start) / width)
		n := 1
		for n < len(points) && math.Floor((points[n].X-start)/width) == column {
			n++
		}
		kept = extremes(kept, points[:n])
		points = points[n:]
	}
	return kept
}

// extremes appends the first, the least, the greatest and the last of some points, in their order
// and none twice.
func extremes(kept, points plotter.XYs) plotter.XYs {
	least, greatest := 0, 0
	for i, p := range points {
		if p.Y < points[least].Y {
			least = i
		}
		if p.Y > points[greatest].Y {
			greatest = i
		}
	}
	last := -1
	for _, i := range [...]int{0, min(least, greatest), max(least, greatest), len(points) - 1} {
		if i != last {
			kept = append(kept, points[i])
			last = i
		}
	}
	return kept
}

// event is how often something happened within one column of a picture, and where.
type event struct {
	X, Y  float64
	Count int
}

// events finds where a counter grew, one event a column of the picture from one X to the other.
// counter and at give a sample's count and position.
func events(
	samples []Sample, columns int, counter func(*Sample) int, at func(*Sample) plotter.XY,
) []event {
	if len(samples) == 0 {
		return nil
	}
	first, last := at(&samples[0]).X, at(&samples[len(samples)-1]).X
	width := (last - first) / float64(columns)
	var found []event
	column := -1
	for i := 1; i < len(samples); i++ {
		grown := counter(&samples[i]) - counter(&samples[i-1])
		if grown <= 0 {
			continue
		}
		p := at(&samples[i])
		c := 0
		if width > 0 {
			c = int((p.X - first) / width)
		}
		if c == column {
			found[len(found)-1].Count += grown
			continue
		}
		column = c
		found = append(found, event{X: p.X, Y: p.Y, Count: grown})
	}
	return found
}
