package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is one plot with a line above it that says what its curves are.
type panel struct {
	title  string
	label  string // of the vertical axis, with its unit
	curves []curve
	marks  []marks
	bars   bars
	top    float64 // of the vertical axis
}

// curve is a line in a panel; its pieces do not touch each other.
type curve struct {
	name   string
	color  color.Color
	dashed bool
	pieces []plotter.XYs
}

// marks are glyphs in a panel.
type marks struct {
	name   string
	color  color.Color
	shape  draw.GlyphDrawer
	points plotter.XYs
}

// bars stand on the lower edge: how often something happened in each column of dots.
type bars struct {
	name   string
	scale  string // how many the highest is; left out of the key where there is no room
	color  color.Color
	points plotter.XYs
}

// plot makes the panel's plot for a stretch of time.
func (p *panel) plot(t timeline) *plot.Plot {
	plt := plot.New()
	plt.X.Min, plt.X.Max = t.start, t.end
	plt.Y.Min, plt.Y.Max = 0, p.top
	plt.X.Label.Text = "time, " + t.unit
	plt.Y.Label.Text = p.label
	for _, axis := range []*plot.Axis{&plt.X, &plt.Y} {
		axis.Label.TextStyle.Font = style(10, 0).Font
		axis.Label.TextStyle.Color = ink
		axis.Tick.Label.Font = style(9, 0).Font
		axis.Tick.Label.Color = ink
		axis.Tick.Length = 4
		axis.Padding = 0
		axis.Tick.Marker = plot.TickerFunc(ticks)
		axis.Color, axis.Tick.Color = ink, ink
	}
	grid := plotter.NewGrid()
	for _, line := range []*draw.LineStyle{&grid.Vertical, &grid.Horizontal} {
		line.Color, line.Width, line.Dashes = pale, 0.5, nil
	}
	plt.Add(grid)
	for _, b := range p.bars.points {
		// A bar is a line: at one dot's width they make a solid histogram.
		foot := plotter.XYs{{X: b.X}, b}
		plt.Add(&plotter.Line{XYs: foot, LineStyle: draw.LineStyle{Color: p.bars.color, Width: 1}})
	}
	for i := range p.curves {
		for _, piece := range p.curves[i].pieces {
			// A value stands until the next sample changes it.
			plt.Add(&plotter.Line{
				XYs: piece, LineStyle: p.curves[i].style(), StepStyle: plotter.PostStep,
			})
		}
	}
	for _, m := range p.marks {
		plt.Add(&plotter.Scatter{XYs: m.points, GlyphStyle: m.style()})
	}
	// Add has widened the axes to what the curves cover; a panel's are its own.
	plt.X.Min, plt.X.Max = t.start, t.end
	plt.Y.Min, plt.Y.Max = 0, p.top
	return plt
}

func (c *curve) style() draw.LineStyle {
	s := draw.LineStyle{Color: c.color, Width: 1}
	if c.dashed {
		s.Dashes = []vg.Length{4, 3}
	}
	return s
}

func (m *marks) style() draw.GlyphStyle {
	return draw.GlyphStyle{Color: m.color, Radius: 3, Shape: m.shape}
}

// drawKey writes the panel's title above it, and behind it the name of each curve with a sample of
// its line. What is not in the panel is not in the key.
func (p *panel) drawKey(c draw.Canvas) {
	pen := vg.Point{X: c.Min.X, Y: c.Max.Y + 6}
	write := func(text string, size vg.Length) {
		s := style(size, draw.YBottom)
		c.FillText(s, pen, text)
		pen.X += s.Width(text)
	}
	write(p.title, 11)
	for i := range p.curves {
		if len(p.curves[i].pieces) == 0 {
			continue
		}
		pen.X += 12
		c.StrokeLine2(p.curves[i].style(), pen.X, pen.Y+4, pen.X+18, pen.Y+4)
		pen.X += 22
		write(p.curves[i].name, 9)
	}
	for _, m := range p.marks {
		if len(m.points) == 0 {
			continue
		}
		pen.X += 14
		c.DrawGlyphNoClip(m.style(), vg.Point{X: pen.X, Y: pen.Y + 4})
		pen.X += 6
		write(m.name, 9)
	}
	if len(p.bars.points) > 0 {
		pen.X += 14
		for i, height := range []vg.Length{3, 8, 5} {
			x := pen.X + vg.Length(2*i)
			line := draw.LineStyle{Color: p.bars.color, Width: 1.4}
			c.StrokeLine2(line, x, pen.Y+1, x, pen.Y+1+height)
		}
		pen.X += 9
		write(p.bars.name, 9)
		if pen.X+style(9, draw.YBottom).Width(p.bars.scale) < c.Max.X {
			write(p.bars.scale, 9)
		}
	}
}
