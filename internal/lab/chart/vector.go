package chart

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// vector is a canvas that writes the operators of PDF. An EPS file defines the same operators in
// PostScript. Both count from the lower left.
type vector struct {
	body      bytes.Buffer
	height    float64
	font      Font
	eps       bool
	opacities []int // opacity of fills, in percent
}

func (v *vector) num(x float64) {
	text := strconv.AppendFloat(nil, math.Round(x*100)/100, 'f', -1, 64)
	v.body.Write(text)
	v.body.WriteByte(' ')
}

func (v *vector) color(p Paint, operator string) {
	for _, shift := range []uint{16, 8, 0} {
		v.num(float64(p.rgb>>shift&0xff) / 255)
	}
	v.body.WriteString(operator + "\n")
}

func (v *vector) path(lines [][]Point, closed bool) {
	for _, line := range lines {
		for i, p := range line {
			v.num(p.X)
			v.num(v.height - p.Y)
			if i == 0 {
				v.body.WriteString("m\n")
			} else {
				v.body.WriteString("l\n")
			}
		}
		if closed && len(line) > 0 {
			v.body.WriteString("h\n")
		}
	}
}

func (v *vector) stroke(lines [][]Point, p pen) {
	v.color(p.paint, "RG")
	v.num(p.width)
	v.body.WriteString("w 0 J [")
	for _, d := range p.dash {
		v.num(d)
	}
	v.body.WriteString("] 0 d\n")
	// Each line is drawn separately, because interpreters limit the length of a path.
	for _, line := range lines {
		v.path([][]Point{line}, false)
		if len(line) > 0 {
			v.body.WriteString("S\n")
		}
	}
}

func (v *vector) fill(shapes [][]Point, p Paint, opacity float64) {
	if v.eps { // PostScript has no opacity: mix the color with the background
		p, opacity = p.Tint(1-opacity), 1
	}
	percent := int(math.Round(opacity * 100))
	if !slices.Contains(v.opacities, percent) {
		v.opacities = append(v.opacities, percent)
	}
	if !v.eps {
		fmt.Fprintf(&v.body, "/O%d gs\n", percent)
	}
	v.color(p, "rg")
	for _, shape := range shapes {
		if len(shape) > 0 {
			v.path([][]Point{shape}, true)
			v.body.WriteString("f\n")
		}
	}
}

func (v *vector) dots(at []Point, diameter float64, p Paint) {
	v.color(p, "RG")
	v.num(diameter)
	v.body.WriteString("w 1 J [] 0 d\n")
	for _, q := range at {
		v.path([][]Point{{q, q}}, false)
		v.body.WriteString("S\n")
	}
}

func (v *vector) text(words string, at Point, l lettering) {
	if words == "" {
		return
	}
	back := map[anchor]float64{middle: 0.5, end: 1}[l.anchor] * v.font.width(words, l.size, l.bold)
	x, y, turn := at.X-back, v.height-at.Y, "1 0 0 1"
	if l.upward {
		x, y, turn = at.X, v.height-at.Y-back, "0 1 -1 0"
	}
	if !v.eps {
		v.body.WriteString("/O100 gs\n")
		v.opacities = append(v.opacities, 100)
	}
	v.color(l.paint, "rg")
	face := 1
	if l.bold {
		face = 2
	}
	if v.eps {
		fmt.Fprintf(&v.body, "F%d ", face)
		v.num(l.size)
		v.body.WriteString("[" + turn + " ")
	} else {
		fmt.Fprintf(&v.body, "BT /F%d ", face)
		v.num(l.size)
		v.body.WriteString("Tf " + turn + " ")
	}
	v.num(x)
	v.num(y)
	if v.eps {
		v.body.WriteString("] (" + latin(words) + ") T\n")
	} else {
		v.body.WriteString("Tm (" + latin(words) + ") Tj ET\n")
	}
}

// asciiText replaces characters that the standard fonts lack.
var asciiText = strings.NewReplacer("…", "...", "–", "-", "—", "-", "−", "-", "→", "->", "←", "<-",
	"≤", "<=", "≥", ">=", "μ", "µ", "’", "'", "‘", "'", "“", `"`, "”", `"`,
	"√", "sqrt ", "∞", "inf")

// latin formats a text as a string of PDF and PostScript, in Latin-1.
func latin(s string) string {
	var b strings.Builder
	for _, r := range asciiText.Replace(s) {
		switch {
		case r == '(' || r == ')' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r >= 0xa0 && r <= 0xff:
			fmt.Fprintf(&b, "\\%03o", r)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

func (l *layout) writePDF(w io.Writer, title string) error {
	v := vector{height: l.height, font: l.font}
	l.draw(&v)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(v.body.Bytes()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	slices.Sort(v.opacities)
	var states strings.Builder
	for _, o := range slices.Compact(v.opacities) {
		fmt.Fprintf(&states, "/O%d <</ca %g>> ", o, float64(o)/100)
	}
	font := func(name string) string {
		return "<</Type /Font /Subtype /Type1 /BaseFont /" + name + " /Encoding /WinAnsiEncoding>>"
	}
	objects := []string{
		"<</Type /Catalog /Pages 2 0 R>>",
		"<</Type /Pages /Kids [3 0 R] /Count 1>>",
		fmt.Sprintf("<</Type /Page /Parent 2 0 R /MediaBox [0 0 %.2f %.2f] /Contents 4 0 R "+
			"/Resources <</Font <</F1 5 0 R /F2 6 0 R>> /ExtGState <<%s>>>>>>",
			l.width, l.height, states.String()),
		fmt.Sprintf("<</Length %d /Filter /FlateDecode>>\nstream\n%s\nendstream",
			packed.Len(), packed.String()),
		font(fonts[l.font].regular), font(fonts[l.font].bold),
		"<</Title (" + latin(title) + ")>>",
	}
	out := bytes.NewBufferString("%PDF-1.4\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(out, "trailer\n<</Size %d /Root 1 0 R /Info 7 0 R>>\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1, table)
	_, err := out.WriteTo(w)
	return err
}

// prolog defines PDF's operators in PostScript, with the fonts in Latin-1.
const prolog = `/m{moveto}bind def /l{lineto}bind def /h{closepath}bind def
/S{stroke}bind def /f{fill}bind def /w{setlinewidth}bind def
/J{setlinecap}bind def /d{setdash}bind def
/RG{setrgbcolor}bind def /rg{setrgbcolor}bind def
/L1{findfont dup length dict begin{1 index/FID ne{def}{pop pop}ifelse}forall
/Encoding ISOLatin1Encoding def currentdict end definefont}bind def
/F1 /%s1 /%[1]s L1 def /F2 /%[2]s1 /%[2]s L1 def
/T{gsave exch concat 3 1 roll scalefont setfont 0 0 moveto show grestore}bind def
`

func (l *layout) writeEPS(w io.Writer, title string) error {
	v := vector{height: l.height, font: l.font, eps: true}
	l.draw(&v)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%%!PS-Adobe-3.0 EPSF-3.0\n%%%%BoundingBox: 0 0 %.0f %.0f\n"+
		"%%%%HiResBoundingBox: 0 0 %.2f %.2f\n"+
		"%%%%LanguageLevel: 2\n%%%%Title: (%s)\n%%%%EndComments\n",
		math.Ceil(l.width), math.Ceil(l.height), l.width, l.height,
		latin(Clean(title, 100)))
	fmt.Fprintf(&out, prolog, fonts[l.font].regular, fonts[l.font].bold)
	if _, err := out.WriteTo(w); err != nil {
		return err
	}
	v.body.WriteString("showpage\n%%EOF\n")
	_, err := v.body.WriteTo(w)
	return err
}
