package chart

import (
	"cmp"
	"math"
	"slices"
)

var (
	dashes  = []float64{3.5, 2}
	dotted  = []float64{1, 1.6}
	axisPen = pen{paint: Ink, width: 0.6}
	gridPen = pen{paint: Faint, width: 0.5}
)

func (l *layout) draw(c canvas) {
	at := Point{X: edge, Y: edge + titleSize}
	for _, line := range l.titles {
		c.text(line, at, lettering{size: titleSize, bold: true, paint: Ink})
		at.Y += titleHeight
	}
	if len(l.titles) > 0 {
		at.Y -= titleHeight - lineHeight - 1
	}
	for _, line := range l.notes {
		c.text(line, at, lettering{size: textSize, paint: Soft})
		at.Y += lineHeight
	}
	for _, p := range l.panels {
		p.drawGrid(c)
		for i := range p.Layers {
			p.drawLayer(c, &p.Layers[i])
		}
		p.drawRules(c)
		p.drawNames(c)
		p.drawMoments(c)
		p.drawAxes(c)
		p.drawStrips(c)
		p.drawKey(c)
	}
}

func (p *placed) place(q Point) Point {
	return Point{
		X:   p.x.at(q.X, p.inside.left, p.inside.right),
		Y:   p.y.at(q.Y, p.inside.bottom, p.inside.top),
		Low: p.y.at(q.Low, p.inside.bottom, p.inside.top),
	}
}

func (p *placed) drawGrid(c canvas) {
	if len(p.y.Names) > 0 {
		return
	}
	var lines [][]Point
	for _, t := range p.yTicks {
		if t.label != "" {
			y := p.y.at(t.value, p.inside.bottom, p.inside.top)
			lines = append(lines, []Point{{X: p.inside.left, Y: y}, {X: p.inside.right, Y: y}})
		}
	}
	c.stroke(lines, gridPen)
}

func (p *placed) drawAxes(c canvas) {
	b := p.inside
	lines := [][]Point{
		{{X: b.left, Y: b.top}, {X: b.left, Y: b.bottom}, {X: b.right, Y: b.bottom}},
	}
	foot := b.bottom + p.below
	if !p.X.Bare {
		foot = p.stripFoot()
	}
	label := lettering{size: textSize, paint: Ink}
	for _, t := range p.xTicks {
		x := p.x.at(t.value, b.left, b.right)
		long := tickLength
		if t.label == "" {
			long /= 2
		}
		lines = append(lines, []Point{{X: x, Y: b.bottom}, {X: x, Y: b.bottom + long}})
		if !p.X.Bare {
			label.anchor = middle
			half := p.font.width(t.label, textSize, false) / 2
			at := min(max(x, b.left-p.left+half), b.right+p.right-half)
			c.text(t.label, Point{X: at, Y: foot + tickLength + textSize}, label)
		}
	}
	for _, t := range p.yTicks {
		y := p.y.at(t.value, b.bottom, b.top)
		long := tickLength
		if t.label == "" {
			long /= 2
		}
		lines = append(lines, []Point{{X: b.left - long, Y: y}, {X: b.left, Y: y}})
		if !p.Y.Bare {
			label.anchor = end
			c.text(t.label, Point{X: b.left - tickLength - 3, Y: y + 0.36*textSize}, label)
		}
	}
	c.stroke(lines, axisPen)
	label.anchor = middle
	if p.X.Label != "" && !p.X.Bare {
		at := Point{X: (b.left + b.right) / 2, Y: foot + tickLength + lineHeight + textSize}
		c.text(p.font.fit(p.X.Label, b.width()+20), at, label)
	}
	if p.Y.Label != "" && !p.Y.Bare {
		label.upward = true
		at := Point{X: b.left - p.labelAt, Y: (b.top + b.bottom) / 2}
		c.text(p.font.fit(p.Y.Label, b.height()+12), at, label)
	}
}

func (p *placed) stripFoot() float64 {
	foot := p.inside.bottom
	if n := len(p.Strips); n > 0 {
		foot += stripGap + float64(n)*stripSize
	}
	return foot
}

func (p *placed) drawStrips(c canvas) {
	b := p.inside
	top := b.bottom + stripGap
	for _, s := range p.Strips {
		at := make([]float64, 0, len(s.At))
		for _, v := range s.At {
			if x := p.x.at(v, b.left, b.right); x >= b.left && x <= b.right {
				at = append(at, x)
			}
		}
		slices.Sort(at)
		var ticks [][]Point
		for _, x := range apartBy(at, grain) {
			ticks = append(ticks, []Point{{X: x, Y: top + 1}, {X: x, Y: top + stripSize - 1}})
		}
		c.stroke(ticks, pen{paint: s.Paint, width: 0.7})
		c.text(s.Name, Point{X: b.left - tickLength - 3, Y: top + stripSize - 1.2},
			lettering{size: smallSize, anchor: end, paint: s.Paint})
		top += stripSize
	}
}

// drawRules draws rules and their names. It moves names apart if they would touch.
func (p *placed) drawRules(c canvas) {
	rules := p.rules()
	slices.SortStableFunc(rules, func(a, b Rule) int {
		if a.Value == b.Value {
			return 0
		}
		if (a.Value > b.Value) != p.y.Reversed {
			return -1
		}
		return 1
	})
	names := make([]float64, len(rules))
	for i, r := range rules {
		y := p.y.at(r.Value, p.inside.bottom, p.inside.top)
		lines := [][]Point{{{X: p.inside.left, Y: y}, {X: p.inside.right, Y: y}}}
		if len(r.Steps) > 0 {
			steps := Layer{Kind: Steps, Points: append(slices.Clone(r.Steps),
				Point{X: p.x.Max, Y: r.Value})}
			lines = p.lines(&steps)
		}
		c.stroke(lines, pen{paint: r.Paint, width: 0.7, dash: dotted})
		names[i] = y
		if i > 0 {
			names[i] = max(y, names[i-1]+smallSize+0.5)
		}
	}
	for i := len(names) - 1; i >= 0; i-- { // moves up the names that left the panel
		limit := p.inside.bottom
		if i < len(names)-1 {
			limit = names[i+1] - smallSize - 0.5
		}
		names[i] = min(names[i], limit)
	}
	for i, r := range rules {
		c.text(r.Text, Point{X: p.inside.right + 4, Y: names[i] + 0.36*smallSize},
			lettering{size: smallSize, paint: r.Paint})
	}
}

func (p *placed) drawMoments(c canvas) {
	b, free := p.inside, math.Inf(-1)
	for _, m := range p.moments() {
		x := p.x.at(m.Value, b.left, b.right)
		c.stroke([][]Point{{{X: x, Y: b.top}, {X: x, Y: b.bottom}}},
			pen{paint: Soft, width: 0.6, dash: dotted})
		wide := p.font.width(m.Text, smallSize, false)
		from := min(x-1, b.right+p.right-wide)
		if from < free {
			continue
		}
		c.text(m.Text, Point{X: from, Y: b.top - 3}, lettering{size: smallSize, paint: Soft})
		free = from + wide + 4
	}
}

func (p *placed) drawKey(c canvas) {
	for i, line := range p.key {
		base := p.keyAt + float64(i)*lineHeight + textSize - 1
		for _, e := range line {
			x := p.inside.left + e.at
			if e.layer == nil {
				c.text(e.text, Point{X: x, Y: base},
					lettering{size: textSize, bold: true, paint: Ink})
				continue
			}
			drawSwatch(c, e.layer, box{x, base - 6, x + swatch, base + 0.5})
			c.text(e.text, Point{X: x + swatch + swatchGap, Y: base},
				lettering{size: textSize, paint: Ink})
		}
	}
}

func drawSwatch(c canvas, l *Layer, b box) {
	mid := Point{X: (b.left + b.right) / 2, Y: (b.top + b.bottom) / 2}
	switch l.Kind {
	case Line, Steps:
		c.stroke([][]Point{{{X: b.left, Y: mid.Y}, {X: b.right, Y: mid.Y}}}, l.pen())
	case Fill, Blocks, Shape:
		b.left += 3
		c.fill([][]Point{b.corners()}, l.Paint, l.opacity())
	case Dots:
		if l.diameter() > 3 {
			c.dots([]Point{mid}, l.diameter(), l.Paint)
			break
		}
		c.dots([]Point{{X: mid.X - 4, Y: mid.Y + 1.5}, {X: mid.X, Y: mid.Y - 1}, {
			X: mid.X + 4, Y: mid.Y + 0.5,
		}}, l.diameter(), l.Paint)
	case Bars:
		c.stroke([][]Point{
			{{X: mid.X - 3, Y: b.bottom}, {X: mid.X - 3, Y: mid.Y}},
			{{X: mid.X, Y: b.bottom - 1}, {X: mid.X, Y: b.top}},
			{{X: mid.X + 3, Y: mid.Y + 1}, {X: mid.X + 3, Y: b.top}},
		}, l.pen())
	case Crosses:
		c.stroke(crosses([]Point{mid}), l.pen())
	case Letters:
		c.text(l.Text, Point{X: mid.X, Y: b.bottom - 0.5},
			lettering{size: smallSize, anchor: middle, bold: true, paint: l.Paint})
	}
}

func (l *Layer) pen() pen {
	p := pen{paint: l.Paint, width: cmp.Or(l.Width, 1)}
	if l.Dash {
		p.dash = dashes
	}
	return p
}

func (l *Layer) diameter() float64 { return cmp.Or(l.Width, 2) }

func (l *Layer) opacity() float64 {
	if l.Kind == Shape {
		return cmp.Or(l.Opacity, 0.25)
	}
	return cmp.Or(l.Opacity, 1)
}
