package chart

import "slices"

// drawNames writes names next to their points. It chooses a side inside the panel that is free of
// other names, or else any side inside the panel, or else the left side.
func (p *placed) drawNames(c canvas) {
	const gap, high = 5.0, smallSize + 1
	var taken []box
	for _, n := range p.Names {
		at := p.place(Point{X: n.X, Y: n.Y})
		if !finite(at.X) || !finite(at.Y) || !p.inside.has(at) {
			continue
		}
		text := Clean(n.Text, 40)
		wide := p.font.width(text, textSize, true)
		sides := []Point{ // possible positions of the name's lower left corner
			{X: at.X + gap, Y: at.Y + 0.36*textSize},
			{X: at.X - gap - wide, Y: at.Y + 0.36*textSize},
			{X: at.X - wide/2, Y: at.Y - gap},
			{X: at.X - wide/2, Y: at.Y + gap + 0.72*textSize},
			{X: at.X + gap, Y: at.Y - gap},
			{X: at.X + gap, Y: at.Y + gap + 0.72*textSize},
			{X: at.X - gap - wide, Y: at.Y - gap},
			{X: at.X - gap - wide, Y: at.Y + gap + 0.72*textSize},
			{X: at.X - gap - wide, Y: at.Y - gap - lineHeight},
			{X: at.X + gap, Y: at.Y + 0.36*textSize + lineHeight},
			{X: at.X - gap - wide, Y: at.Y + 0.36*textSize + lineHeight},
		}
		best, found := sides[1], false
		for _, s := range sides {
			b := box{s.X, s.Y - high, s.X + wide, s.Y + 1}
			inside := p.inside.has(Point{X: b.left, Y: b.top}) &&
				p.inside.has(Point{X: b.right, Y: b.bottom})
			if inside && !b.touches(taken) {
				best = s
				break
			}
			if inside && !found { // an overlap with another name is better than leaving the panel
				best, found = s, true
			}
		}
		taken = append(taken, box{best.X, best.Y - high, best.X + wide, best.Y + 1})
		c.text(text, best, lettering{size: textSize, bold: true, paint: n.Paint})
	}
}

func (b box) touches(others []box) bool {
	return slices.ContainsFunc(others, func(o box) bool {
		return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
	})
}
