package chart

import (
	"bufio"
	"image/png"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// dotsPerInch is the resolution of a PNG: a figure of PageWidth is 1400 pixels wide.
const dotsPerInch = 200

// raster is a canvas of pixels. Its library counts from the lower left.
type raster struct {
	*vgimg.Canvas
	height float64
	font   Font
}

func (r *raster) at(p Point) vg.Point {
	return vg.Point{X: vg.Length(p.X), Y: vg.Length(r.height - p.Y)}
}

func (r *raster) path(lines [][]Point, closed bool) vg.Path {
	var path vg.Path
	for _, line := range lines {
		for i, p := range line {
			if i == 0 {
				path.Move(r.at(p))
			} else {
				path.Line(r.at(p))
			}
		}
		if closed {
			path.Close()
		}
	}
	return path
}

// strokePiece is the number of points of a line that are drawn at once. The rasterizer searches all
// edges in a row of pixels, so drawing a line with thousands of peaks at once would take seconds.
const strokePiece = 48

func (r *raster) stroke(lines [][]Point, p pen) {
	r.SetColor(p.paint.rgba(1))
	r.SetLineWidth(vg.Length(p.width))
	dash := make([]vg.Length, len(p.dash))
	for i, v := range p.dash {
		dash[i] = vg.Length(v)
	}
	r.SetLineDash(dash, 0)
	var some [][]Point
	held := 0
	flush := func() {
		r.Stroke(r.path(some, false))
		some, held = some[:0], 0
	}
	for _, line := range lines {
		for len(line) > strokePiece && len(dash) == 0 {
			some, line = append(some, line[:strokePiece]), line[strokePiece-1:]
			flush()
		}
		some = append(some, line)
		if held += len(line); held > strokePiece {
			flush()
		}
	}
	flush()
}

func (r *raster) fill(shapes [][]Point, p Paint, opacity float64) {
	r.SetColor(p.rgba(opacity))
	r.Fill(r.path(shapes, true))
}

// dots draws octagons: at a dot's size they look like circles, and they are faster to draw.
func (r *raster) dots(at []Point, diameter float64, p Paint) {
	const corners = 8
	var around [corners]Point
	for i := range around {
		sin, cos := math.Sincos((float64(i) + 0.5) * 2 * math.Pi / corners)
		around[i] = Point{X: diameter / 2 * cos, Y: diameter / 2 * sin}
	}
	r.SetColor(p.rgba(1))
	for _, center := range at {
		shape := make([]Point, corners)
		for i, corner := range around {
			shape[i] = Point{X: center.X + corner.X, Y: center.Y + corner.Y}
		}
		r.Fill(r.path([][]Point{shape}, true))
	}
}

func (r *raster) text(words string, at Point, l lettering) {
	if words == "" {
		return
	}
	r.SetColor(l.paint.rgba(1))
	wide := r.font.width(words, l.size, l.bold)
	back := map[anchor]float64{start: 0, middle: wide / 2, end: wide}[l.anchor]
	r.Push()
	defer r.Pop()
	r.Translate(r.at(at))
	if l.upward {
		r.Rotate(math.Pi / 2)
	}
	r.FillString(r.font.face(l.size, l.bold), vg.Point{X: vg.Length(-back)}, words)
}

func (l *layout) writePNG(w io.Writer) error {
	r := &raster{height: l.height, font: l.font}
	r.Canvas = vgimg.NewWith(
		vgimg.UseWH(vg.Length(l.width), vg.Length(l.height)), vgimg.UseDPI(dotsPerInch))
	l.draw(r)
	out := bufio.NewWriter(w)
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(out, r.Image()); err != nil {
		return err
	}
	return out.Flush()
}
