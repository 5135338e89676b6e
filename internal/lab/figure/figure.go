// Package figure draws what was measured of a transfer.
//
// A probe file's way: ReadSamples (sample.go) -> Connection -> Figure (figure.go) -> its six panels
// (panel.go, series.go), each curve thinned to what the picture can show (thin.go) -> SVG and PNG.
package figure

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is a transfer in pictures: congestion window, round-trip time and sequence over time, the
// whole transfer on the left and a few round trips of its middle on the right.
type Figure struct {
	Title   string
	Note    string   // a second, smaller line; empty: none
	Samples []Sample // of one connection, in order of time; some are required
}

// Sizes of the figure.
const (
	figureWidth  = 12.5 * vg.Inch
	figureHeight = 9 * vg.Inch
	wholeShare   = 0.6 // of the width, for the whole transfer
	dotsPerInch  = 110
	// wholeColumns and detailColumns are how many columns a panel's curve is thinned to: about as
	// many as the PNG has dots across it.
	wholeColumns  = 720
	detailColumns = 450
)

// Okabe and Ito's colours, which stay apart for colour-blind readers.
var (
	blue       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	sky        = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	green      = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	orange     = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	vermillion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	ink        = color.RGBA{0x22, 0x22, 0x22, 0xff}
	pale       = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}
)

// WriteSVG draws the figure as SVG.
func (f Figure) WriteSVG(w io.Writer) error {
	return f.write(w, vgsvg.New(figureWidth, figureHeight))
}

// WritePNG draws the figure as PNG.
func (f Figure) WritePNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(figureWidth, figureHeight), vgimg.UseDPI(dotsPerInch))
	return f.write(w, vgimg.PngCanvas{Canvas: c})
}

func (f Figure) write(w io.Writer, c vg.CanvasWriterTo) error {
	if len(f.Samples) == 0 {
		return ErrNoSamples
	}
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

func (f Figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	c = draw.Crop(c, 14, -14, 8, -12)
	c.FillText(style(15, draw.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y}, f.Title)
	c.FillText(style(10, draw.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y - 21}, f.Note)
	c.Max.Y -= 46

	split := (c.Max.X - c.Min.X) * wholeShare
	whole, detail := f.Samples, middle(f.Samples)
	left, right := c, c
	left.Max.X = left.Min.X + split - 8
	right.Min.X += split + 8
	origin := whole[0].Seconds
	column{"The whole transfer", whole, newTimeline(whole, origin), wholeColumns}.draw(left)
	column{"Its middle", detail, newTimeline(detail, origin), detailColumns}.draw(right)
}

// column is one stretch of time: three panels under each other.
type column struct {
	title   string
	samples []Sample
	time    timeline
	width   int // columns of dots
}

func (col column) draw(c draw.Canvas) {
	panels := []panel{
		windowPanel(col.samples, col.time, col.width),
		rttPanel(col.samples, col.time, col.width),
		sequencePanel(col.samples, col.time, col.width),
	}
	const strip = 20 // above each panel, for its title and key
	c.FillText(style(12, draw.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y},
		col.title+", "+col.time.length())
	c.Max.Y -= 14
	rows := make([][]*plot.Plot, len(panels))
	for i := range panels {
		rows[i] = []*plot.Plot{panels[i].plot(col.time)}
	}
	tiles := draw.Tiles{Cols: 1, Rows: len(panels), PadTop: strip, PadY: strip + 6}
	for i, canvas := range plot.Align(rows, tiles, c) {
		rows[i][0].Draw(canvas[0])
		panels[i].drawKey(rows[i][0].DataCanvas(canvas[0]))
	}
}

// style is text of a size in the figure's one typeface.
func style(points vg.Length, y text.YAlignment) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: points},
		XAlign:  draw.XLeft,
		YAlign:  y,
		Handler: plot.DefaultTextHandler,
	}
}
