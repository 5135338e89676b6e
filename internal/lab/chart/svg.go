package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
)

// perPoint is the number of SVG units in a point. Coordinates are integers, so that curves with
// thousands of points stay short.
const perPoint = 10

// svg is a canvas that writes SVG. Its colors are CSS variables if it is themed.
type svg struct {
	body   bytes.Buffer
	themed bool
	font   Font
}

func (s *svg) paint(p Paint) string {
	if s.themed {
		return p.CSS()
	}
	return p.String()
}

func units(v float64) int { return int(math.Round(v * perPoint)) }

func (s *svg) stroke(lines [][]Point, p pen) {
	d := pathData(lines, false)
	if len(d) == 0 {
		return
	}
	fmt.Fprintf(&s.body, `<path fill="none" stroke="%s" stroke-width="%d"`,
		s.paint(p.paint), max(1, units(p.width)))
	if len(p.dash) > 0 {
		s.body.WriteString(` stroke-dasharray="`)
		for i, v := range p.dash {
			if i > 0 {
				s.body.WriteByte(' ')
			}
			s.body.WriteString(strconv.Itoa(units(v)))
		}
		s.body.WriteByte('"')
	}
	fmt.Fprintf(&s.body, ` d="%s"/>`+"\n", d)
}

func (s *svg) fill(shapes [][]Point, p Paint, opacity float64) {
	d := pathData(shapes, true)
	if len(d) == 0 {
		return
	}
	fmt.Fprintf(&s.body, `<path fill="%s"`, s.paint(p))
	if opacity < 1 {
		fmt.Fprintf(&s.body, ` fill-opacity="%.3g"`, opacity)
	}
	fmt.Fprintf(&s.body, ` d="%s"/>`+"\n", d)
}

// dots draws lines of zero length with round ends. This is the shortest notation for many dots.
func (s *svg) dots(at []Point, diameter float64, p Paint) {
	if len(at) == 0 {
		return
	}
	fmt.Fprintf(&s.body, `<path fill="none" stroke="%s" stroke-width="%d" `+
		`stroke-linecap="round" d="`, s.paint(p), max(1, units(diameter)))
	x, y := 0, 0
	for _, q := range at {
		nextX, nextY := units(q.X), units(q.Y)
		fmt.Fprintf(&s.body, "m%d %dh0", nextX-x, nextY-y)
		x, y = nextX, nextY
	}
	s.body.WriteString(`"/>` + "\n")
}

// text sets the width of the text to the measured one, because the reader may have another
// typeface.
func (s *svg) text(words string, at Point, l lettering) {
	if words == "" {
		return
	}
	if l.upward {
		fmt.Fprintf(&s.body, `<text transform="translate(%d %d)rotate(-90)"`,
			units(at.X), units(at.Y))
	} else {
		fmt.Fprintf(&s.body, `<text x="%d" y="%d"`, units(at.X), units(at.Y))
	}
	fmt.Fprintf(&s.body, ` font-size="%d" fill="%s"`, units(l.size), s.paint(l.paint))
	if l.bold {
		s.body.WriteString(` font-weight="bold"`)
	}
	switch l.anchor {
	case middle:
		s.body.WriteString(` text-anchor="middle"`)
	case end:
		s.body.WriteString(` text-anchor="end"`)
	case start:
	}
	if len(words) > 1 {
		fmt.Fprintf(&s.body, ` textLength="%d" lengthAdjust="spacingAndGlyphs"`,
			units(s.font.width(words, l.size, l.bold)))
	}
	s.body.WriteByte('>')
	_ = xml.EscapeText(&s.body, []byte(words)) // writing to a buffer does not fail
	s.body.WriteString("</text>\n")
}

func pathData(lines [][]Point, closed bool) []byte {
	var d []byte
	x, y := 0, 0
	number := func(v int) {
		if v >= 0 && len(d) > 0 && d[len(d)-1] >= '0' && d[len(d)-1] <= '9' {
			d = append(d, ' ')
		}
		d = strconv.AppendInt(d, int64(v), 10)
	}
	for _, line := range lines {
		verb := byte('m')
		for i, p := range line {
			dx, dy := units(p.X)-x, units(p.Y)-y
			x, y = x+dx, y+dy
			next := byte('l')
			switch {
			case i == 0:
				next = 'm'
			case dx == 0 && dy == 0:
				continue
			case dy == 0:
				next = 'h'
			case dx == 0:
				next = 'v'
			}
			if i == 0 || next != verb {
				d = append(d, next)
				verb = next
			}
			if next != 'v' {
				number(dx)
			}
			if next != 'h' {
				number(dy)
			}
		}
		if closed && len(line) > 0 {
			d = append(d, 'z')
			x, y = units(line[0].X), units(line[0].Y)
		}
	}
	return d
}

func (l *layout) writeSVG(w io.Writer, alt string) error {
	var head bytes.Buffer
	wide, high := units(l.width), units(l.height)
	fmt.Fprintf(&head, `<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%.1fpt" `+
		`viewBox="0 0 %d %d" font-family="%s">`+"\n<title>",
		l.width, l.height, wide, high, fonts[l.font].families)
	_ = xml.EscapeText(&head, []byte(alt)) // writing to a buffer does not fail
	fmt.Fprintf(&head, "</title>\n"+`<path fill="#ffffff" d="M0 0h%dv%dH0z"/>`+"\n", wide, high)
	return l.write(w, &head, false)
}

// WriteInline draws the figure as an SVG element for a page that defines the theme's colors as the
// variables --ink, --soft, --faint and --paper, with --paper as its background.
func (f *Figure) WriteInline(w io.Writer, s Style) error {
	l := f.layout(s)
	var head bytes.Buffer
	fmt.Fprintf(&head, `<svg viewBox="0 0 %d %d" font-family="%s" role="img" aria-label="`,
		units(l.width), units(l.height), fonts[l.font].families)
	_ = xml.EscapeText(&head, []byte(f.Alt))
	head.WriteString("\">\n")
	return l.write(w, &head, true)
}

func (l *layout) write(w io.Writer, head *bytes.Buffer, themed bool) error {
	s := svg{themed: themed, font: l.font}
	l.draw(&s)
	s.body.WriteString("</svg>\n")
	if _, err := head.WriteTo(w); err != nil {
		return err
	}
	_, err := s.body.WriteTo(w)
	return err
}
