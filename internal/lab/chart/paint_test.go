package chart

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On a dark background, dark colors are lightened until their contrast suffices. Other colors do
// not change.
func TestColorsOnDarkBackground(t *testing.T) {
	for _, p := range []Paint{Sky, Orange, Purple, Green, Vermillion} {
		assert.Equal(t, p, p.OnDark())
		assert.Equal(t, p.String(), p.CSS())
	}
	contrast := func(p Paint) float64 {
		return (luminance(p.rgb) + 0.05) / (luminance(darkPaper) + 0.05)
	}
	for _, rgb := range []uint32{0x440154, 0x00446b, 0x000000} {
		assert.Less(t, contrast(RGB(rgb)), minContrast)
		assert.GreaterOrEqual(t, contrast(RGB(rgb).OnDark()), minContrast)
	}
	assert.InDelta(t, 21, (luminance(0xffffff)+0.05)/(luminance(0)+0.05), 1e-9)
}

// Themes defines the dark variants of the colors that figures use as CSS variables.
func TestThemes(t *testing.T) {
	f := Figure{Rows: []Row{{Panels: []Panel{{X: Axis{Max: 1}, Y: Axis{Max: 1}, Layers: []Layer{
		{Kind: Line, Paint: RGB(0x440154), Points: []Point{{}, {X: 1, Y: 1}}},
		{Kind: Line, Paint: Sky, Points: []Point{{}, {X: 1}}},
	}}}}}}
	var b bytes.Buffer
	require.NoError(t, f.WriteInline(&b, Style{}))
	assert.Contains(t, b.String(), `stroke="var(--p440154,#440154)"`)
	assert.Equal(t, "--p440154: "+RGB(0x440154).OnDark().String()+";", Themes(b.String(), b.String()))
	assert.NotContains(t, string(svgOf(t, &f)), "var(")
}
