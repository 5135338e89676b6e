package operator

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Writing the shown value of a setting succeeds and changes nothing.
func TestShownSettingsCanBeWritten(t *testing.T) {
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{{Name: "if0", Addr: netip.MustParsePrefix("10.0.0.1/24")}},
		Rand:       rand.New(rand.NewPCG(1, 1)),
	})
	require.NoError(t, err)
	knobs := node.Knobs{
		Knobs: s.TCP().Knobs(), Stack: s.Knobs(), Recorded: 64,
		RIP: rip.Timers{Periodic: 5 * time.Second, HoldDown: -1},
	}
	list, err := showSettings(&knobs, "")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, shown := range list {
		assert.False(t, seen[shown.Key], shown.Key)
		seen[shown.Key] = true
		assert.NotEmpty(t, shown.Doc, shown.Key)
		found, err := findSetting(shown.Key)
		require.NoError(t, err)
		k := knobs
		require.NoError(t, found.write(&k, shown.Value), shown.Key)
		assert.Equal(t, shown, found.show(&k))
		err = found.write(&k, "no such value")
		if !free[shown.Key] {
			require.ErrorIs(t, err, control.ErrUsage, shown.Key)
		}
	}
	for key := range free {
		assert.True(t, seen[key], key)
	}
}

// free lists the settings whose keywords TCP checks.
var free = map[string]bool{"tcp.congestion": true, "tcp.recovery": true, "tcp.mtuprobing": true}

// A prefix of a key shows all settings that have it, in their order. An unknown prefix is an error
// that lists all keys.
func TestShowAcceptsAPrefix(t *testing.T) {
	list, err := showSettings(&node.Knobs{Knobs: tcp.Knobs{NoDelay: true}}, "tcp.n")
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "off", list[0].Value)
	_, err = showSettings(&node.Knobs{}, "tcp.x")
	require.ErrorIs(t, err, control.ErrUsage)
	_, err = findSetting("tcp.n")
	require.ErrorIs(t, err, control.ErrUsage)
	assert.ErrorContains(t, err, "icmp.echo, ")
}
