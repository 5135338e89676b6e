package chart

import (
	"cmp"
	"math"
	"slices"
)

// These are sizes within a figure.
const (
	textSize    = 7.5
	smallSize   = 6.5
	lineHeight  = 10.0
	titleSize   = 11.0
	titleHeight = 14.0
	tickLength  = 3.0
	stripGap    = 2.5
	stripSize   = 7.0
	panelGap    = 14.0
	rowGap      = 8.0
	edge        = 4.0
)

type layout struct {
	titles, notes []string // lines of the title and the note
	width, height float64
	font          Font
	panels        []*placed
}

type placed struct {
	*Panel
	font           Font
	x, y           Axis
	inside         box
	xTicks, yTicks []tick
	key            [][]entry // lines of the legend
	left, right    float64   // space beside the inside, for labels
	above, below   float64
	// keyAt is the top of the legend, and labelAt is the distance of y's label from the left edge.
	keyAt, labelAt float64
}

// layout places the panels. Panels in a column have the same edges if their rows are alike.
func (f *Figure) layout(s Style) *layout {
	if s.Width > 0 {
		f = f.stacked(s.Width)
	}
	l := f.place(s, 1)
	if s.Height > 0 { // the insides of the panels get the remaining height
		insides := 0.0
		for i := range f.Rows {
			insides += f.rowHeight(i)
		}
		scale := (s.Height - l.height + insides) / max(insides, 1)
		l = f.place(s, max(scale, minInside/max(insides, 1)*float64(len(f.Rows))))
	}
	return l
}

// minInside is the minimum height of the inside of a panel.
const minInside = 24

func (f *Figure) place(s Style, scale float64) *layout {
	l := &layout{width: cmp.Or(s.Width, PageWidth), font: s.Font}
	l.titles = l.font.wrap(Clean(f.Title, 100), titleSize, true, l.width-2*edge)
	l.notes = l.font.wrap(Clean(f.Note, 400), textSize, false, l.width-2*edge)
	rows := make([][]*placed, len(f.Rows))
	for i := range f.Rows {
		for j := range f.Rows[i].Panels {
			p := &placed{Panel: &f.Rows[i].Panels[j], font: l.font}
			p.x, p.y = p.X.drawable(), p.Y.drawable()
			rows[i] = append(rows[i], p)
			l.panels = append(l.panels, p)
		}
	}
	for i := range rows {
		l.measure(rows[i], scale*f.rowHeight(i))
	}
	for i := range rows {
		align(rows, i)
	}
	top := edge
	top += float64(len(l.titles)) * titleHeight
	top += float64(len(l.notes)) * lineHeight
	if top > edge {
		top += rowGap
	}
	for i := range rows {
		l.spread(rows[i])
		above, below := 0.0, 0.0
		for _, p := range rows[i] {
			p.measureAcross()
			above, below = max(above, p.above), max(below, p.below)
		}
		for _, p := range rows[i] {
			p.inside.top = top + above
			p.inside.bottom = p.inside.top + scale*f.rowHeight(i)
			p.keyAt = p.inside.top - p.above
		}
		top += above + scale*f.rowHeight(i) + below + rowGap
	}
	l.height = top - rowGap + edge
	if s.Height <= 0 {
		l.height = math.Ceil(l.height)
	}
	return l
}

// narrow is the width, in points, below which panels are stacked instead of side by side.
const narrow = 290

// stacked returns the figure with one panel in each row if it is narrow. Each panel then has
// numbers on its axes.
func (f *Figure) stacked(width float64) *Figure {
	several := func(r Row) bool { return len(r.Panels) > 1 }
	if width >= narrow || !slices.ContainsFunc(f.Rows, several) {
		return f
	}
	s := *f
	s.Rows = nil
	for _, row := range f.Rows {
		for _, p := range row.Panels {
			p.X.Bare, p.Y.Bare = p.X.Bare && !several(row), false
			s.Rows = append(s.Rows, Row{Height: row.Height, Panels: []Panel{p}})
		}
	}
	return &s
}

func (f *Figure) rowHeight(i int) float64 { return cmp.Or(f.Rows[i].Height, 120) }

// measure computes the space to the left and to the right of each panel of a row.
func (l *layout) measure(row []*placed, height float64) {
	for _, p := range row {
		p.yTicks = p.y.ticks(height, func(string) float64 { return 1.5 * textSize })
		wide := 0.0
		if !p.Y.Bare {
			for _, t := range p.yTicks {
				wide = max(wide, p.font.width(t.label, textSize, false))
			}
		}
		for _, s := range p.Strips {
			wide = max(wide, p.font.width(s.Name, smallSize, false))
		}
		p.left = wide + tickLength + 3
		p.labelAt = p.left + 4
		if p.Y.Label != "" && !p.Y.Bare {
			p.left += 4 + textSize
		}
		p.right = 4
		if !p.X.Bare { // the last number is centered at its tick, so half of it is outside
			for _, t := range p.x.ticks(l.width/3, p.apart) {
				p.right = max(p.right, p.font.width(t.label, textSize, false)/2)
			}
		}
		for _, r := range p.rules() {
			p.right = max(p.right, p.font.width(r.Text, smallSize, false)+6)
		}
	}
}

func align(rows [][]*placed, i int) {
	for j := range rows {
		if len(rows[j]) != len(rows[i]) {
			continue
		}
		for k, p := range rows[i] {
			p.left = max(p.left, rows[j][k].left)
			p.right = max(p.right, rows[j][k].right)
			p.labelAt = max(p.labelAt, rows[j][k].labelAt)
		}
	}
}

func (l *layout) spread(row []*placed) {
	room, shares := l.width-2*edge, 0.0
	for i, p := range row {
		room -= p.left + p.right
		if i > 0 {
			room -= panelGap
		}
		shares += p.share()
	}
	room = max(room, 40)
	at := edge
	for _, p := range row {
		p.inside.left = at + p.left
		p.inside.right = p.inside.left + room*p.share()/shares
		at = p.inside.right + p.right + panelGap
	}
}

func (p *placed) share() float64 { return cmp.Or(p.Share, 1) }

// measureAcross measures the titles and axes above and below a panel of known width.
func (p *placed) measureAcross() {
	p.xTicks = p.x.ticks(p.inside.width(), p.apart)
	p.key = p.entries()
	p.above = float64(len(p.key)) * lineHeight
	if len(p.moments()) > 0 {
		p.above += lineHeight - 1
	}
	p.below = float64(len(p.Strips)) * stripSize
	if len(p.Strips) > 0 {
		p.below += stripGap
	}
	if !p.X.Bare {
		p.below += tickLength + lineHeight
		if p.X.Label != "" {
			p.below += lineHeight
		}
	}
}

// apart returns the distance that two numbers on the axis x need.
func (p *placed) apart(label string) float64 {
	return p.font.width(label, textSize, false) + textSize
}

func (p *placed) rules() []Rule {
	var seen []Rule
	for _, r := range p.Rules {
		if r.Value >= p.y.Min && r.Value <= p.y.Max {
			r.Text = Clean(r.Text, 24)
			seen = append(seen, r)
		}
	}
	return seen
}

func (p *placed) moments() []Moment {
	var seen []Moment
	for _, m := range p.Moments {
		if m.Value >= p.x.Min && m.Value <= p.x.Max && len(seen) < 100 {
			m.Text = Clean(m.Text, 40)
			seen = append(seen, m)
		}
	}
	return seen
}

// entry is an entry of the legend, with its layer. The title has no layer.
type entry struct {
	text  string
	layer *Layer
	at    float64 // distance from the panel's left edge
}

func (l *Layer) hasPoints() bool {
	return slices.ContainsFunc(l.Points, func(p Point) bool { return finite(p.X) && finite(p.Y) })
}

// These are sizes of the legend.
const (
	swatch    = 14.0
	swatchGap = 3.0
	entryGap  = 11.0
)

// entries returns the title and the entries of the legend, in as many lines as they need.
func (p *placed) entries() [][]entry {
	var lines [][]entry
	var line []entry
	at := 0.0
	add := func(e entry, wide float64) {
		if at > 0 && at+wide > p.inside.width()+p.right {
			lines, line, at = append(lines, line), nil, 0
		}
		e.at = at
		line = append(line, e)
		at += wide + entryGap
	}
	if p.Title != "" {
		title := Clean(p.Title, 80)
		add(entry{text: title}, p.font.width(title, textSize, true))
	}
	for i := range p.Layers {
		layer := &p.Layers[i]
		if layer.Name == "" || !layer.hasPoints() {
			continue
		}
		name := Clean(layer.Name, 48)
		add(entry{text: name, layer: layer}, swatch+swatchGap+p.font.width(name, textSize, false))
	}
	if len(line) > 0 {
		lines = append(lines, line)
	}
	return lines
}
