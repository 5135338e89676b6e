package api

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxPageBytes is the maximum size of the compressed page.
const maxPageBytes = 63_000

func TestThePageIsSmall(t *testing.T) {
	total := 0
	err := fs.WalkDir(Page(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(Page(), path)
		require.NoError(t, err)
		var small bytes.Buffer
		z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
		require.NoError(t, err)
		_, err = z.Write(text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		t.Logf("%s: %d bytes, %d compressed", path, len(text), small.Len())
		total += small.Len()
		return nil
	})
	require.NoError(t, err)
	assert.Less(t, total, maxPageBytes)
	assert.Greater(t, total, 1000, "it is not there")
}

// The page loads nothing that the server's content security policy forbids, and nothing from
// another host.
func TestPageIsComplete(t *testing.T) {
	text, err := fs.ReadFile(Page(), "index.html")
	require.NoError(t, err)
	html := string(text)
	assert.NotContains(t, html, "<style")
	assert.NotRegexp(t, `<script[^>]*>[^<]`, html)
	assert.NotContains(t, html, "://")
	for _, m := range regexp.MustCompile(`(?:src|href)="\./([^"]*)"`).FindAllStringSubmatch(html, -1) {
		_, err := fs.Stat(Page(), m[1])
		assert.NoError(t, err, m[0])
	}
	css, err := fs.ReadFile(Page(), "page.css")
	require.NoError(t, err)
	assert.NotContains(t, string(css), "http")
	js, err := fs.ReadFile(Page(), "page.js")
	require.NoError(t, err)
	for _, at := range regexp.MustCompile(`https?://[^"'`+"`"+` ]+`).FindAllString(string(js), -1) {
		assert.True(t, strings.HasPrefix(at, "http://www.w3.org/"), "%s is elsewhere", at)
	}
}
