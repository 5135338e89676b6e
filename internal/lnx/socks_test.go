package lnx_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

func TestSocksLines(t *testing.T) {
	c, err := lnx.Parse("A.lnx", []byte(natHead+"socks 1080\nsocks [::1]:1081\n"))
	require.NoError(t, err)
	require.Len(t, c.Forwards, 2)
	assert.Equal(t, "127.0.0.1", c.Forwards[0].On().String())
	assert.Contains(t, string(c.Format()), "socks 1080\nsocks [::1]:1081\n")
	for lines, want := range map[string]string{
		"socks 0":     "not a port",
		"socks x:80":  "not an address",
		"socks 80 81": "not expected here",
		"socks 1080\npublish 127.0.0.1:1080 10.0.0.2:80": "already used",
		"socks 1080\nsocks 0.0.0.0:1080":                 "already",
	} {
		_, err := lnx.Parse("A.lnx", []byte(natHead+lines+"\n"))
		require.ErrorContains(t, err, want, lines)
	}
}
