package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// element is an element of an SVG.
type element struct {
	name string
	attr map[string]string
	text string
}

// elements returns the elements of an SVG. It fails if the SVG is not well-formed.
func elements(t *testing.T, svg []byte) []element {
	t.Helper()
	var list []element
	in := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err, "%s", svg)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

var pathPart = regexp.MustCompile(`[mMlLhHvVzZ]|-?[0-9]+`)

var upright = regexp.MustCompile(`^translate[(][0-9]+ ([0-9]+)[)]rotate[(]-90[)]$`)

// pathPoints returns the points of a path, in units of the page.
func pathPoints(t *testing.T, d string) []Point {
	t.Helper()
	parts := pathPart.FindAllString(d, -1)
	var list []Point
	var x, y, fromX, fromY float64
	verb := ""
	next := func() float64 {
		require.NotEmpty(t, parts, d)
		v, err := strconv.ParseFloat(parts[0], 64)
		require.NoError(t, err, d)
		parts = parts[1:]
		return v / perPoint
	}
	for len(parts) > 0 {
		if c := parts[0][0]; c >= 'A' {
			verb, parts = parts[0], parts[1:]
		} else if verb == "m" {
			verb = "l"
		}
		switch verb {
		case "M":
			x, y = next(), next()
			fromX, fromY = x, y
		case "m":
			x, y = x+next(), y+next()
			fromX, fromY = x, y
		case "l":
			x, y = x+next(), y+next()
		case "h":
			x += next()
		case "v":
			y += next()
		case "H":
			x = next()
		case "z":
			x, y = fromX, fromY
		default:
			t.Fatalf("verb %q in %s", verb, d)
		}
		list = append(list, Point{X: x, Y: y})
	}
	return list
}

// requireWithin checks that all paths and texts of an SVG are within its page.
func requireWithin(t *testing.T, svg []byte) {
	t.Helper()
	list := elements(t, svg)
	var left, top, wide, high float64
	for i, v := range strings.Fields(list[0].attr["viewBox"]) {
		n, err := strconv.ParseFloat(v, 64)
		require.NoError(t, err)
		*[]*float64{&left, &top, &wide, &high}[i] = n / perPoint
	}
	page := box{-0.1, -0.1, wide + 0.1, high + 0.1}
	for _, e := range list {
		for _, p := range pathPoints(t, e.attr["d"]) {
			require.True(t, page.has(p), "%v is not in %v: %v", p, page, e.attr)
		}
		if e.name != "text" {
			continue
		}
		if at := upright.FindStringSubmatch(e.attr["transform"]); at != nil {
			half := number(t, e.attr["textLength"]) / 2
			require.GreaterOrEqual(t, number(t, at[1])-half, -1.0, e.text)
			require.LessOrEqual(t, number(t, at[1])+half, high*perPoint+1, e.text)
			continue
		}
		x, err := strconv.ParseFloat(e.attr["x"], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(e.attr["y"], 64)
		require.NoError(t, err)
		long := 0.0
		if s := e.attr["textLength"]; s != "" {
			long, err = strconv.ParseFloat(s, 64)
			require.NoError(t, err)
		}
		back := map[string]float64{"": 0, "middle": 0.5, "end": 1}[e.attr["text-anchor"]]
		require.GreaterOrEqual(t, x-back*long, -1.0, e.text)
		require.LessOrEqual(t, x+(1-back)*long, wide*perPoint+1, e.text)
		require.True(t, y > 0 && y < high*perPoint, e.text)
	}
}

func isWhite(c color.Color) bool {
	r, g, b, _ := c.RGBA()
	return r == 0xffff && g == 0xffff && b == 0xffff
}
