package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/web"
)

// most is how long the page may be, compressed.
const most = 62_000

func TestThePageIsSmall(t *testing.T) {
	total := 0
	err := fs.WalkDir(web.Files(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(web.Files(), path)
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
	assert.Less(t, total, most)
	assert.Greater(t, total, 1000, "it is not there")
}

// What the policy of its server forbids would not work, and what is fetched from elsewhere would
// not without a network.
func TestThePageIsWhole(t *testing.T) {
	text, err := fs.ReadFile(web.Files(), "index.html")
	require.NoError(t, err)
	html := string(text)
	assert.NotContains(t, html, "<style")
	assert.NotRegexp(t, `<script[^>]*>[^<]`, html)
	assert.NotContains(t, html, "://")
	for _, m := range regexp.MustCompile(`(?:src|href)="\./([^"]*)"`).FindAllStringSubmatch(html, -1) {
		_, err := fs.Stat(web.Files(), m[1])
		assert.NoError(t, err, m[0])
	}
	css, err := fs.ReadFile(web.Files(), "page.css")
	require.NoError(t, err)
	assert.NotContains(t, string(css), "http")
	js, err := fs.ReadFile(web.Files(), "page.js")
	require.NoError(t, err)
	for _, at := range regexp.MustCompile(`https?://[^"'`+"`"+` ]+`).FindAllString(string(js), -1) {
		assert.True(t, strings.HasPrefix(at, "http://www.w3.org/"), "%s is elsewhere", at)
	}
}
