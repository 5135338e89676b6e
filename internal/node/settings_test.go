package node

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// TestSettingsOfTheWire turns each option off, sees a connection without it,
// and turns it on again.
func TestSettingsOfTheWire(t *testing.T) {
	a, b := twoNodes(t, Config{})
	set := func(key, value string) {
		t.Helper()
		s, err := a.Do(t.Context(), control.Set{Key: key, Value: value})
		require.NoError(t, err)
		require.Equal(t, value, s.(control.Setting).Value)
	}
	type wire struct{ timestamps, sack, scale bool }
	all := wire{true, true, true}
	port, ecn := 8000, false
	dial := func() wire {
		t.Helper()
		port++
		client, server := connect(t, a, b, fmt.Sprintf("10.0.0.2:%d", port))
		defer client.Close()
		defer server.Close()
		var i tcp.Info
		require.NoError(t, a.call(func(clock.Time) { i = client.tc.Info() }))
		ecn = i.ECN
		return wire{i.Timestamps, i.SACK, i.WindowScale}
	}
	require.Equal(t, all, dial())
	for key, want := range map[string]wire{
		"tcp.timestamps":  {sack: true, scale: true},
		"tcp.sack":        {timestamps: true, scale: true},
		"tcp.windowscale": {timestamps: true, sack: true},
		"tcp.options":     {},
	} {
		set(key, "off")
		assert.Equal(t, want, dial(), key)
		set(key, "on")
		_, err := a.Do(t.Context(), control.Set{Key: key, Value: "maybe"})
		require.ErrorIs(t, err, control.ErrUsage)
	}
	assert.Equal(t, all, dial())
	set("tcp.ecn", "off")
	set("tcp.ecn", "passive")
	assert.False(t, ecn)
	set("tcp.ecn", "on")
	dial()
	assert.True(t, ecn)
	for _, key := range []string{"tcp.ecn", "tcp.syncookies"} {
		_, err := a.Do(t.Context(), control.Set{Key: key, Value: "perhaps"})
		require.ErrorIs(t, err, control.ErrUsage)
	}
	for _, mode := range []string{"off", "auto", "always"} {
		_, err := b.Do(t.Context(), control.Set{Key: "tcp.syncookies", Value: mode})
		require.NoError(t, err)
		assert.Equal(t, all, dial(), mode)
	}
}
