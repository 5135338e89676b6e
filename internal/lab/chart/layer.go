package chart

import (
	"math"
	"slices"
)

// maxLetters limits the letters of a layer: more would be illegible.
const maxLetters = 400

func (p *placed) drawLayer(c canvas, l *Layer) {
	switch l.Kind {
	case Line, Steps:
		c.stroke(p.lines(l), l.pen())
	case Fill, Blocks:
		c.fill(p.areas(l), l.Paint, l.opacity())
	case Dots:
		c.dots(p.scattered(l), l.diameter(), l.Paint)
	case Bars:
		c.stroke(p.bars(l), l.pen())
	case Letters:
		style := lettering{size: smallSize, anchor: middle, bold: true, paint: l.Paint}
		across, up := 0.0, 2.0
		if l.AtLeft {
			style.anchor, across, up = end, 2, -0.36*smallSize
		}
		at := p.scattered(l)
		for _, q := range at[:min(len(at), maxLetters)] {
			q.X, q.Y = q.X-across, q.Y-up
			c.text(Clean(l.Text, 20), q, style)
		}
	case Crosses:
		c.stroke(crosses(p.scattered(l)), l.pen())
	case Shape:
		p.drawShape(c, l)
	}
}

func crosses(at []Point) [][]Point {
	const arm = 2.4
	var lines [][]Point
	for _, p := range at {
		lines = append(lines, []Point{{X: p.X - arm, Y: p.Y - arm}, {X: p.X + arm, Y: p.Y + arm}},
			[]Point{{X: p.X - arm, Y: p.Y + arm}, {X: p.X + arm, Y: p.Y - arm}})
	}
	return lines
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// piece is a part of a line without gaps, thinned, with the lower edge of the area.
type piece struct{ upper, lower []Point }

func (p *placed) pieces(l *Layer) []piece {
	var list []piece
	var upper, lower columns
	cut := func() {
		if q := (piece{upper.take(), lower.take()}); len(q.upper) > 0 {
			list = append(list, q)
		}
	}
	area := l.Kind == Fill || l.Kind == Blocks
	for _, q := range l.Points {
		at := p.place(q)
		if !finite(at.X) || !finite(at.Y) {
			cut()
			continue
		}
		upper.add(at)
		if area {
			if !finite(at.Low) {
				at.Low = p.inside.bottom
			}
			lower.add(Point{X: at.X, Y: at.Low})
		}
	}
	cut()
	return list
}

// lines returns the lines of a Line or of Steps.
func (p *placed) lines(l *Layer) [][]Point {
	var lines [][]Point
	for _, q := range p.pieces(l) {
		line := q.upper
		if l.Kind == Steps {
			line = stairs(line)
		}
		for _, part := range p.inside.clip(line) {
			lines = append(lines, p.stretched(part, l.MinLength))
		}
	}
	return lines
}

// stretched extends a horizontal line to a visible length, within the panel.
func (p *placed) stretched(line []Point, least float64) []Point {
	first, last := line[0], line[len(line)-1]
	if last.X-first.X >= least {
		return line
	}
	from := min(first.X, p.inside.right-least)
	return []Point{{X: from, Y: first.Y}, {X: from + least, Y: last.Y}}
}

func stairs(line []Point) []Point {
	steps := make([]Point, 0, 2*len(line))
	for i, q := range line {
		if i > 0 && line[i-1].Y != q.Y {
			steps = append(steps, Point{X: q.X, Y: line[i-1].Y, Low: line[i-1].Low})
		}
		steps = append(steps, q)
	}
	return steps
}

func (p *placed) areas(l *Layer) [][]Point {
	var shapes [][]Point
	for _, q := range p.pieces(l) {
		upper, lower := q.upper, q.lower
		if len(upper) < 2 {
			continue
		}
		if l.Kind == Blocks {
			upper, lower = stairs(upper), stairs(lower)
		}
		shape := make([]Point, 0, len(upper)+len(lower))
		for _, q := range upper {
			shape = append(shape, p.inside.clamp(q))
		}
		for _, q := range slices.Backward(lower) {
			shape = append(shape, p.inside.clamp(q))
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

func (p *placed) scattered(l *Layer) []Point {
	seen := dots{grain: max(grain, 0.6*l.diameter())}
	for _, q := range l.Points {
		if at := p.place(q); finite(at.X) && finite(at.Y) && p.inside.has(at) {
			seen.add(at)
		}
	}
	return seen.kept
}

func (p *placed) bars(l *Layer) [][]Point {
	bars := make([]Point, 0, len(l.Points))
	for _, q := range l.Points {
		at := p.place(q)
		if !finite(at.X) || !finite(at.Y) || !finite(at.Low) {
			continue
		}
		from, to, ok := p.inside.cut(Point{X: at.X, Y: at.Y}, Point{X: at.X, Y: at.Low})
		if ok {
			bars = append(bars, Point{X: at.X, Y: from.Y, Low: to.Y})
		}
	}
	var lines [][]Point
	for _, b := range thinBars(bars) {
		low := b.Low
		if low-b.Y < grain { // keeps a bar of zero height visible
			low = b.Y + grain
		}
		lines = append(lines, []Point{{X: b.X, Y: b.Y}, {X: b.X, Y: low}})
	}
	return lines
}

func (p *placed) drawShape(c canvas, l *Layer) {
	for _, q := range p.pieces(l) {
		if len(q.upper) < 3 {
			continue
		}
		shape := make([]Point, len(q.upper), len(q.upper)+1)
		for i, at := range q.upper {
			shape[i] = p.inside.clamp(at)
		}
		c.fill([][]Point{shape}, l.Paint, l.opacity())
		c.stroke([][]Point{append(shape, shape[0])}, l.pen())
	}
}
