package chart

import (
	"bytes"
	"compress/zlib"
	"image/png"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sampleFigure is a figure with lines, dashes, areas, dots and texts.
func sampleFigure() *Figure {
	points := []Point{{X: 0, Y: 1}, {X: 1, Y: 3, Low: 1}, {X: 2, Y: 2, Low: 1}}
	return &Figure{
		Title: "A title (of 20 µs)", Note: "1.31/√p · MSS ≤ 3", Alt: "what it shows",
		Rows: []Row{{Panels: []Panel{{
			X: Axis{Label: "time, s", Max: 2}, Y: Axis{Label: "window, kB", Max: 4},
			Layers: []Layer{
				{Name: "fill", Kind: Fill, Paint: Sky, Opacity: 0.25, Points: points},
				{Name: "line", Paint: Blue, Dash: true, Points: points},
				{Name: "dots", Kind: Dots, Paint: Green, Points: points},
			},
		}}}},
	}
}

// content returns the content of a PDF's page. Each object must have the offset and the length
// given in the file.
func content(t *testing.T, pdf string) string {
	t.Helper()
	require.True(t, strings.HasPrefix(pdf, "%PDF-1.4\n"))
	at := regexp.MustCompile(`startxref\n(\d+)\n%%EOF\n$`).FindStringSubmatch(pdf)
	require.NotNil(t, at)
	table, err := strconv.Atoi(at[1])
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(pdf[table:], "xref\n0 8\n"))
	for i, m := range regexp.MustCompile(`(\d{10}) 00000 n \n`).FindAllStringSubmatch(pdf[table:], -1) {
		offset, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(pdf[offset:], strconv.Itoa(i+1)+" 0 obj\n"), "object %d", i+1)
	}
	m := regexp.MustCompile(`/Length (\d+) /Filter /FlateDecode>>\nstream\n`).FindStringSubmatchIndex(pdf)
	require.NotNil(t, m)
	n, err := strconv.Atoi(pdf[m[2]:m[3]])
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(pdf[m[1]+n:], "\nendstream\n"))
	z, err := zlib.NewReader(strings.NewReader(pdf[m[1] : m[1]+n]))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

func TestPDFIsComplete(t *testing.T) {
	var b, again bytes.Buffer
	require.NoError(t, sampleFigure().Write(&b, "pdf", Style{}))
	require.NoError(t, sampleFigure().Write(&again, "pdf", Style{}))
	assert.Equal(t, b.Bytes(), again.Bytes(), "the output is deterministic")
	page := content(t, b.String())
	for _, want := range []string{
		`(A title \(of 20 \265s\)) Tj`, `(1.31/sqrt p \267 MSS <= 3) Tj`, "0 1 -1 0", "/O25 gs", "[3.5 2 ] 0 d",
		"w 1 J", "/F2 11 Tf",
	} {
		assert.Contains(t, page, want)
	}
	assert.Contains(t, b.String(), "/MediaBox [0 0 504.00 ")
	assert.Contains(t, b.String(), "/BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding")
	assert.Contains(t, b.String(), "/O25 <</ca 0.25>>")
	assert.NotContains(t, page, "NaN")
}

func TestEPSDefinesItsOperators(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sampleFigure().Write(&b, "eps", Style{Width: 252, Font: Serif}))
	text := b.String()
	assert.Regexp(t, `^%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 252 \d+\n`, text)
	assert.True(t, strings.HasSuffix(text, "showpage\n%%EOF\n"))
	head, body, ok := strings.Cut(text, "show grestore}bind def\n")
	require.True(t, ok)
	assert.Contains(t, head, "/Times-Roman1 /Times-Roman L1")
	assert.Contains(t, body, `(A title \(of 20 \265s\)) T`)
	used := regexp.MustCompile(`\([^\n]*\) |\[[^\]]*\]|(^|\s)-?[\d.]+`).ReplaceAllString(body, " ")
	for operator := range strings.FieldsSeq(used) {
		if operator != "showpage" && operator != "%%EOF" {
			assert.Contains(t, head+"show grestore", "/"+operator, operator)
		}
	}
}

func TestSizeAndFont(t *testing.T) {
	var s Style
	require.NoError(t, s.SetSize("3.5x2in"))
	require.NoError(t, s.SetFont("Serif"))
	assert.Equal(t, Style{Width: 252, Height: 144, Font: Serif}, s)
	for _, format := range Formats {
		var b bytes.Buffer
		require.NoError(t, sampleFigure().Write(&b, format, s), format)
		switch format {
		case "svg":
			assert.Contains(t, b.String(), `width="252pt" height="144.0pt"`)
			assert.Contains(t, b.String(), "Liberation Serif")
		case "png":
			picture, err := png.Decode(&b)
			require.NoError(t, err)
			assert.Equal(t, 700, picture.Bounds().Dx())
			assert.Equal(t, 400, picture.Bounds().Dy())
		case "pdf":
			assert.Contains(t, b.String(), "/MediaBox [0 0 252.00 144.00]")
		case "eps":
			assert.Contains(t, b.String(), "%%BoundingBox: 0 0 252 144\n")
		}
	}
	require.NoError(t, s.SetSize("88mm"))
	assert.InDelta(t, 249.4, s.Width, 0.1)
	assert.Zero(t, s.Height, "the rows determine the height")
	require.NoError(t, s.SetSize("300pt x 200pt"))
	assert.Equal(t, [2]float64{300, 200}, [2]float64{s.Width, s.Height})
	for _, wrong := range []string{"", "3.5", "in", "1x2x3in", "ax2in", "0in", "-5cm", "9999in", "NaNin", "infin"} {
		require.Error(t, s.SetSize(wrong), wrong)
	}
	require.ErrorContains(t, s.SetFont("comic"), `must be sans, serif or mono`)
	err := sampleFigure().Write(io.Discard, "gif", Style{})
	assert.ErrorContains(t, err, "must be one of svg, png, pdf, eps")
}

func TestNarrowFigureStacksItsPanels(t *testing.T) {
	axis := Axis{Label: "time, s", Max: 1}
	f := Figure{Rows: []Row{
		{Panels: []Panel{{X: Axis{Max: 1, Bare: true}, Y: axis}, {X: Axis{Max: 1, Bare: true}, Y: axis}}},
		{Panels: []Panel{{X: axis, Y: axis}, {X: axis, Y: Axis{Max: 1, Bare: true}}}},
	}}
	l := f.layout(Style{Width: 200})
	require.Len(t, l.panels, 4)
	bottom := 0.0
	for i, p := range l.panels {
		assert.Greater(t, p.inside.top, bottom, "panel %d", i)
		assert.False(t, p.X.Bare || p.Y.Bare, "panel %d has its own numbers", i)
		assert.Greater(t, p.inside.width(), 130.0)
		bottom = p.inside.bottom
	}
	assert.Len(t, f.Rows, 2, "the figure itself does not change")
	wide := f.layout(Style{})
	assert.InDelta(t, wide.panels[0].inside.top, wide.panels[1].inside.top, 0)
}
