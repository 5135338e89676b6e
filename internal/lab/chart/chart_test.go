package chart

import (
	"bytes"
	"image/png"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a figure that uses every feature.
func sample() *Figure {
	wave := make([]Point, 20_000)
	for i := range wave {
		x := float64(i) / 1000
		wave[i] = Point{X: x, Y: 5 + 4*math.Sin(x), Low: 2}
	}
	p := Panel{
		Title: "all", X: Axis{Label: "time, s", Max: 20}, Y: Axis{Label: "size, kB", Max: 10},
		Layers: []Layer{
			{Name: "line", Kind: Line, Paint: Blue, Points: wave},
			{Name: "steps", Kind: Steps, Paint: Green, Dash: true, Points: wave[:5000]},
			{Name: "fill", Kind: Fill, Paint: Sky, Opacity: 0.5, Points: wave},
			{Name: "blocks", Kind: Blocks, Paint: Faint, Points: wave[:3000]},
			{Name: "dots", Kind: Dots, Paint: Orange, Points: wave},
			{Name: "bars", Kind: Bars, Paint: Vermillion, Points: wave},
			{Name: "letters", Kind: Letters, Text: "R", Paint: Ink, Points: wave[:2]},
			{Name: "shape", Kind: Shape, Paint: Purple, Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 3}, {X: 3, Y: 1}}},
		},
		Rules: []Rule{
			{Value: 5, Text: "BDP", Paint: Soft},
			{Value: 5.01, Text: "BDP + Q", Paint: Soft},
			{Value: 99, Text: "out of range", Paint: Soft},
		},
		Moments: []Moment{{Value: 4, Text: "1 Mbit/s"}, {Value: 4.1, Text: "2 Mbit/s"}, {Value: 80, Text: "later"}},
		Strips:  []Strip{{Name: "lost", Paint: Vermillion, At: []float64{3, 1, 2, 99, math.NaN()}}},
	}
	return &Figure{Alt: "a <figure>", Title: "The title", Note: "a note", Rows: []Row{
		{Height: 100, Panels: []Panel{p, p}},
		{Panels: []Panel{{X: Axis{Min: 1, Max: 1000, Log: true}, Y: Axis{Names: []string{"a", "b"}}}}},
	}}
}

func svgOf(t *testing.T, f *Figure) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, "svg", Style{}))
	return b.Bytes()
}

func wordsOf(t *testing.T, f *Figure) []string {
	t.Helper()
	var words []string
	for _, e := range elements(t, svgOf(t, f)) {
		if e.name == "text" {
			words = append(words, e.text)
		}
	}
	return words
}

func TestFigureFitsItsPage(t *testing.T) {
	svg := svgOf(t, sample())
	requireWithin(t, svg)
	assert.Less(t, len(svg), 200_000, "120,000 points are thinned")
}

func TestFigureHasItsTexts(t *testing.T) {
	words := wordsOf(t, sample())
	for _, want := range []string{
		"The title", "a note", "all", "line", "steps", "fill", "blocks", "dots", "bars", "letters", "shape", "R",
		"time, s", "size, kB", "BDP", "BDP + Q", "1 Mbit/s", "lost", "a", "b", "1", "10", "100", "1000",
	} {
		assert.Contains(t, words, want)
	}
	for _, not := range []string{"out of range", "later", "2 Mbit/s"} {
		assert.NotContains(t, words, not)
	}
}

func TestNamesOfRulesDoNotOverlap(t *testing.T) {
	var at []float64
	for _, e := range elements(t, svgOf(t, sample())) {
		if strings.HasPrefix(e.text, "BDP") {
			at = append(at, number(t, e.attr["y"]))
		}
	}
	require.Len(t, at, 4, "two panels")
	assert.GreaterOrEqual(t, math.Abs(at[0]-at[1]), smallSize*perPoint)
}

func TestPNGHasTheSizeOfTheSVG(t *testing.T) {
	f := sample()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, "png", Style{}))
	picture, err := png.Decode(&b)
	require.NoError(t, err)
	assert.Equal(t, 1400, picture.Bounds().Dx())
	assert.InDelta(t, f.layout(Style{}).height/72*dotsPerInch, picture.Bounds().Dy(), 1)
	drawn := 0
	for x := range picture.Bounds().Dx() {
		if !isWhite(picture.At(x, 250)) {
			drawn++
		}
	}
	assert.Greater(t, drawn, 100, "the picture is not empty")
}

func TestInlineFigureUsesTheThemesColors(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteInline(&b, Style{}))
	text := b.String()
	assert.Contains(t, text, "var(--ink)")
	assert.Contains(t, text, `aria-label="a &lt;figure&gt;"`)
	assert.Contains(t, text, Vermillion.String(), "colors of data do not depend on the background")
	assert.NotContains(t, text, Ink.String())
	assert.NotContains(t, text, "http", "no references to other resources")
	file := string(svgOf(t, sample()))
	assert.NotContains(t, file, "var(", "many programs do not support CSS variables")
}

func TestHostileNamesAreEscaped(t *testing.T) {
	evil := "</text></svg><script>alert(1)</script>\x00\x1b[31m\u202eabc\xff & \"'"
	f := &Figure{Alt: evil, Rows: []Row{{Panels: []Panel{{
		Title: evil, X: Axis{Label: evil, Max: 1}, Y: Axis{Names: []string{evil, evil}, Label: "y"},
		Layers: []Layer{{Name: evil, Points: []Point{{}, {X: 1, Y: 1}}}, {
			Name: evil, Kind: Letters, Text: evil, Points: []Point{{X: 0.5, Y: 0.5}},
		}},
		Rules:   []Rule{{Value: 1, Text: evil}},
		Moments: []Moment{{Value: 0.5, Text: evil}},
		Strips:  []Strip{{Name: evil, At: []float64{0.5}}},
	}}}}}
	for _, e := range elements(t, svgOf(t, f)) {
		assert.NotEqual(t, "script", e.name)
	}
	var b bytes.Buffer
	require.NoError(t, f.WriteInline(&b, Style{}))
	assert.NotContains(t, b.String(), "<script")
	require.NoError(t, f.Write(&b, "png", Style{}))
}

func TestClean(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"reno", 10, "reno"},
		{"", 10, ""},
		{"exactly ten", 11, "exactly ten"},
		{"exactly ten", 10, "exactly t…"},
		{"a\tb\nc", 10, "a b c"},
		{"right\u202eleft", 20, "right\uFFFDleft"},
		{"\xff\x00", 5, "\uFFFD\uFFFD"},
		{"Größe ≤ 3 µs", 20, "Größe ≤ 3 µs"},
	} {
		assert.Equal(t, c.want, Clean(c.text, c.most), "%q", c.text)
	}
}

func TestInvalidAxes(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, a := range []Axis{
		{},
		{Min: 5, Max: 5},
		{Min: 6, Max: 5},
		{Min: nan, Max: 1},
		{Max: nan},
		{Max: inf},
		{Min: -inf, Max: inf},
		{Min: 0, Max: 10, Log: true},
		{Min: -1, Max: 10, Log: true},
		{Min: 3, Max: 3, Log: true},
		{Min: 1e-300, Max: 1e300, Log: true},
		{Min: -math.MaxFloat64, Max: math.MaxFloat64},
		{Min: 1e18, Max: 1e18 + 1},
		{Names: make([]string, 1000)},
		{Max: 5e-324},
	} {
		points := []Point{{X: nan}, {Y: inf}, {X: 1, Y: 1}, {X: 2, Y: -inf}, {X: 0.5, Y: 0.2, Low: nan}, {
			X: -1e300, Y: 1e300,
		}, {X: 1e300, Y: -1e300}}
		var layers []Layer
		for kind := Line; kind <= Shape; kind++ {
			layers = append(layers, Layer{Name: "x", Kind: kind, Paint: Blue, Text: "x", Points: points})
		}
		f := &Figure{Rows: []Row{{Panels: []Panel{{X: a, Y: a, Layers: layers}}}}}
		requireWithin(t, svgOf(t, f))
		require.NoError(t, f.Write(&bytes.Buffer{}, "png", Style{}))
	}
}

// Pieces that are too short to see are drawn with a minimum length, even at the panel's edge.
func TestShortPiecesAreVisible(t *testing.T) {
	brief := []Point{
		{X: 5, Y: 1}, {X: 5.0001, Y: 1}, {X: math.NaN()}, {X: 9.9999, Y: 2}, {X: 10, Y: 2},
	}
	panel := Panel{X: Axis{Max: 10}, Y: Axis{Max: 3}, Layers: []Layer{
		{Kind: Line, Paint: Blue, Points: brief, MinLength: 2},
	}}
	f := Figure{Rows: []Row{{Panels: []Panel{panel}}}}
	svg := svgOf(t, &f)
	requireWithin(t, svg)
	for _, e := range elements(t, svg) {
		if strings.Contains(e.attr["stroke"], Blue.String()) {
			assert.Equal(t, 2, strings.Count(e.attr["d"], "h20"), e.attr["d"])
			return
		}
	}
	require.Fail(t, "no line found")
}

// Labels of points do not overlap and do not leave the panel.
func TestNamesDoNotOverlap(t *testing.T) {
	panel := Panel{X: Axis{Max: 10}, Y: Axis{Max: 10}}
	for _, at := range []float64{5, 5.05, 5.1, 9.9, 9.95} {
		panel.Names = append(panel.Names, Name{X: at, Y: 5, Text: "a name", Paint: Ink})
	}
	f := Figure{Rows: []Row{{Panels: []Panel{panel}}}}
	svg := svgOf(t, &f)
	requireWithin(t, svg)
	places := map[string]bool{}
	for _, e := range elements(t, svg) {
		if e.name == "text" && e.text == "a name" {
			places[e.attr["x"]+" "+e.attr["y"]] = true
		}
	}
	assert.Len(t, places, 5)
}

// A long name of a row is not truncated.
func TestNamesOfRowsAreComplete(t *testing.T) {
	const name = "flow-1, three senders, cubic"
	p := Panel{X: Axis{Max: 1}, Y: Axis{Names: []string{name}}}
	svg := svgOf(t, &Figure{Rows: []Row{{Panels: []Panel{p}}}})
	requireWithin(t, svg)
	assert.Contains(t, string(svg), name)
}

// Two labels of one point in a corner of the panel are placed one below the other.
func TestNamesInCorners(t *testing.T) {
	for _, x := range []float64{0.1, 9.9} {
		p := Panel{X: Axis{Max: 10}, Y: Axis{Max: 10}, Names: []Name{
			{X: x, Y: 9.5, Text: "a name", Paint: Ink}, {X: x, Y: 9.5, Text: "a name", Paint: Ink},
		}}
		var heights []float64
		for _, e := range elements(t, svgOf(t, &Figure{Rows: []Row{{Height: 200, Panels: []Panel{p}}}})) {
			if e.name == "text" && e.text == "a name" {
				y, err := strconv.ParseFloat(e.attr["y"], 64)
				require.NoError(t, err)
				heights = append(heights, y)
			}
		}
		require.Len(t, heights, 2)
		assert.GreaterOrEqual(t, heights[1]-heights[0], 10*(smallSize+1))
	}
}

func TestLongNoteIsWrapped(t *testing.T) {
	note := strings.TrimSpace(strings.Repeat("1,382 segments retransmitted, ", 12))
	var b bytes.Buffer
	f := Figure{Note: note, Rows: []Row{{Panels: []Panel{{X: Axis{Max: 1}, Y: Axis{Max: 1}}}}}}
	require.NoError(t, f.Write(&b, "svg", Style{}))
	assert.Equal(t, 12, strings.Count(b.String(), "1,382"))
	for _, line := range Sans.wrap(note, textSize, false, 200) {
		assert.LessOrEqual(t, Sans.width(line, textSize, false), 200.0)
	}
	assert.Empty(t, Sans.wrap("", textSize, false, 200))
}
