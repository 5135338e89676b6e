package chart

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationmonobold"
	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-fonts/liberation/liberationserifbold"
	"codeberg.org/go-fonts/liberation/liberationserifregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// PageWidth is the default width of a figure: seven inches, the text width of a page with two
// columns.
const PageWidth = 504.0

// Style is the size and the font of a figure. The zero value is PageWidth wide, as high as its rows
// need, and in Sans.
type Style struct {
	Width, Height float64 // size in points; 0: the default
	Font          Font
}

// Formats are the file formats of figures, by their suffixes.
var Formats = []string{"svg", "png", "pdf", "eps"}

// Write draws the figure in one of Formats.
func (f *Figure) Write(w io.Writer, format string, s Style) error {
	l := f.layout(s)
	switch format {
	case "svg":
		return l.writeSVG(w, f.Alt)
	case "png":
		return l.writePNG(w)
	case "pdf":
		return l.writePDF(w, f.Alt)
	case "eps":
		return l.writeEPS(w, f.Alt)
	}
	return fmt.Errorf("figure format %q: must be one of %s", format, strings.Join(Formats, ", "))
}

// Font is the typeface of a figure. Texts have the same width in all formats, because the
// Liberation fonts have the metrics of Helvetica, Times and Courier.
type Font int

// These are the fonts.
const (
	Sans Font = iota
	Serif
	Mono
)

// fonts lists for each Font its name for people, its names in PDF, EPS and SVG, and its faces.
var fonts = [...]struct {
	name, regular, bold, families string
	faces                         [2][]byte // regular and bold
}{
	{
		"sans", "Helvetica", "Helvetica-Bold", "'Liberation Sans',Arial,Helvetica,sans-serif",
		[2][]byte{liberationsansregular.TTF, liberationsansbold.TTF},
	},
	{
		"serif", "Times-Roman", "Times-Bold", "'Liberation Serif','Times New Roman',Times,serif",
		[2][]byte{liberationserifregular.TTF, liberationserifbold.TTF},
	},
	{
		"mono", "Courier", "Courier-Bold", "'Liberation Mono','Courier New',Courier,monospace",
		[2][]byte{liberationmonoregular.TTF, liberationmonobold.TTF},
	},
}

// SetFont sets the font by its name: sans, serif or mono.
func (s *Style) SetFont(name string) error {
	for i := range fonts {
		if strings.EqualFold(name, fonts[i].name) {
			s.Font = Font(i)
			return nil
		}
	}
	return errors.New("must be sans, serif or mono")
}

// faces parses the fonts when the first figure is drawn, because most commands draw none.
var faces = sync.OnceValue(func() (list [len(fonts)][2]font.Face) {
	for i := range fonts {
		for k, text := range fonts[i].faces {
			face, err := opentype.Parse(text)
			if err != nil {
				panic(fmt.Sprintf("BUG: chart: font %s: %v", fonts[i].name, err))
			}
			list[i][k].Face = face
		}
	}
	return list
})

func (f Font) face(size float64, bold bool) font.Face {
	face := faces()[f][0]
	if bold {
		face = faces()[f][1]
	}
	face.Font.Size = vg.Length(size)
	return face
}

func (f Font) width(s string, size float64, bold bool) float64 {
	face := f.face(size, bold)
	return face.Width(s).Points()
}

// lengths lists the units of size and their lengths in points.
var lengths = []struct {
	name   string
	points float64
}{{"in", 72}, {"cm", 72 / 2.54}, {"mm", 72 / 25.4}, {"pt", 1}}

// These limit the size of a figure, in points: from an inch to a poster.
const (
	minSize = 80
	maxSize = 3000
)

// SetSize sets the size from WIDTH or WIDTHxHEIGHT with a unit, such as 3.5in, 88mm or 8.8x6cm.
func (s *Style) SetSize(text string) error {
	wrong := errors.New("must be WIDTH or WIDTHxHEIGHT with the unit in, cm, mm or pt, " +
		"such as 3.5in or 8.8x6cm")
	for _, unit := range lengths {
		rest, ok := strings.CutSuffix(strings.ToLower(strings.TrimSpace(text)), unit.name)
		if !ok {
			continue
		}
		parts := strings.Split(rest, "x")
		if len(parts) > 2 {
			break
		}
		var sizes [2]float64
		for i, part := range parts {
			part = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(part), unit.name))
			v, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return wrong
			}
			if sizes[i] = v * unit.points; !(sizes[i] >= minSize && sizes[i] <= maxSize) {
				return fmt.Errorf("must be %d to %d points (72 per inch)", minSize, maxSize)
			}
		}
		s.Width, s.Height = sizes[0], sizes[1]
		return nil
	}
	return wrong
}
