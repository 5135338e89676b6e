package main

import (
	"bytes"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// TestOutlines checks that removing the outlines of a font does not change its widths.
func TestOutlines(t *testing.T) {
	t.Parallel()
	data := append([]byte("before"+fontMagic), liberationsansregular.TTF...)
	for end := range 600 { // a truncated font is not a font
		assert.Zero(t, dropFonts(bytes.Clone(data[:end])), "%d bytes", end)
	}
	data = append(data, fontMagic...)
	assert.Equal(t, 1, dropFonts(data))
	font := data[len("before"+fontMagic):]
	was, err := opentype.Parse(liberationsansregular.TTF)
	require.NoError(t, err)
	is, err := opentype.Parse(font)
	require.NoError(t, err)
	var buffer sfnt.Buffer
	var last sfnt.GlyphIndex
	em := fixed.Int26_6(was.UnitsPerEm())
	for _, r := range "AVWay 0µ²−" {
		glyph, err := is.GlyphIndex(&buffer, r)
		require.NoError(t, err)
		want, err := was.GlyphAdvance(&buffer, glyph, em, 0)
		require.NoError(t, err)
		got, err := is.GlyphAdvance(&buffer, glyph, em, 0)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%c", r)
		pair, none := was.Kern(&buffer, last, glyph, em, 0)
		kern, err := is.Kern(&buffer, last, glyph, em, 0)
		assert.Equal(t, none, err)
		assert.Equal(t, pair, kern, "%c", r)
		last = glyph
		segments, err := is.LoadGlyph(&buffer, glyph, em, nil)
		require.NoError(t, err)
		assert.Empty(t, segments)
	}
	assert.Zero(t, dropFonts(data), "they have no outlines any more")
}
