package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Counts and times can be set like all other settings. Zero means the default.
func TestNumericSettings(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	for _, x := range []struct{ key, value, want string }{
		{"tcp.initialwindow", "4", "4"},
		{"tcp.initialwindow", "0", "10"},
		{"tcp.fixedwindow", "65535", "65535"},
		{"tcp.rtomax", "2m", "2m0s"},
		{"tcp.rtomin", "200ms", "200ms"},
		{"tcp.rtoinitial", "3s", "3s"},
		{"tcp.delayedack", "40ms", "40ms"},
		{"icmp.rate", "100", "100"},
		{"icmp.rate", "off", "off"},
		{"icmp.rate", "0", "1000"},
		{"icmp.burst", "7", "7"},
		{"icmp.echo", "off", "off"},
		{"icmp.echobroadcast", "on", "on"},
		{"icmp.timestamp", "off", "off"},
		{"ip.reversepath", "strict", "strict"},
		{"ip.directedbroadcast", "on", "on"},
		{"ip.reassemblytimeout", "5s", "5s"},
		{"ip.reassemblytimeout", "0s", "20s"},
		{"ip.reassemblybytes", "1000000", "1000000"},
		{"ip.reassemblybytes", "0", "4194304"},
	} {
		got, err := control.Ask(t.Context(), a, control.Set{Key: x.key, Value: x.value})
		require.NoError(t, err, x.key)
		assert.Equal(t, x.want, got.Value, x.key)
	}
	assert.Equal(t, 65535, a.stack.TCP().Knobs().Recovery.FixedWindow)
	for key, value := range map[string]string{
		"tcp.initialwindow": "-1", "tcp.fixedwindow": "64k", "tcp.rtomin": "200", "tcp.rtomax": "-1s",
		"tcp.delayedack": "soon", "icmp.rate": "2000000", "icmp.burst": "-3",
		"icmp.echo": "maybe", "ip.reversepath": "tight", "ip.reassemblybytes": "65536", "ip.reassemblytimeout": "soon",
	} {
		_, err := control.Ask(t.Context(), a, control.Set{Key: key, Value: value})
		require.ErrorIs(t, err, control.ErrUsage, key)
		assert.ErrorContains(t, err, value, key)
	}
	_, err := control.Ask(t.Context(), a, control.Set{Key: "tcp.rtomax", Value: "1ms"})
	require.ErrorIs(t, err, control.ErrUsage, "below the minimum")
}
