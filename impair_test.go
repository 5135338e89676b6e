package tidepool_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func TestImpairAtRunTime(t *testing.T) {
	var clock tidepool.Clock
	near, far := tidepool.Pipe(0)
	n, err := tidepool.Open(tidepool.Config{
		Clock: &clock,
		Interfaces: []tidepool.Interface{{
			Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: near,
			Impair: tidepool.Impairments{Loss: 0.5, Words: "seed 7"},
		}},
	})
	require.NoError(t, err)
	defer n.Close()
	infos, err := n.Impairments()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	assert.Equal(t, "loss 50% seed 7", infos[0].Words)
	assert.Equal(t, []tidepool.Way{tidepool.Out, tidepool.In},
		[]tidepool.Way{infos[0].Way, infos[1].Way})

	require.NoError(t, n.Impair("if0", tidepool.In, tidepool.Impairments{Words: "drop 2"}))
	require.NoError(t, n.Impair("if0", tidepool.Out, tidepool.Impairments{Delay: time.Second}))
	for range 3 {
		_, err := far.Write(echo())
		require.NoError(t, err)
	}
	infos, err = n.Impairments()
	require.NoError(t, err)
	assert.Equal(t, []uint64{3, 1, 2}, []uint64{infos[1].Seen, infos[1].Lost, infos[1].Passed})
	assert.Equal(t, 2, infos[0].Inside, "the replies are on their way")
	packet := make([]byte, 100)
	_, ok := far.TryRead(packet)
	assert.False(t, ok)
	clock.Advance(time.Second)
	for range 2 {
		_, ok := far.TryRead(packet)
		assert.True(t, ok)
	}
	require.NoError(t, n.Impair("if0", tidepool.Both, tidepool.Impairments{}))
	_, err = far.Write(echo())
	require.NoError(t, err)
	_, ok = far.TryRead(packet)
	assert.True(t, ok, "as before")

	err = n.Impair("if0", tidepool.Out, tidepool.Impairments{Words: "lss 2%"})
	assert.ErrorContains(t, err, `"lss" is no impairment (did you mean loss?)`)
	assert.ErrorContains(t, n.Impair("if0", "up", tidepool.Impairments{}), "want in, out or both")
	assert.Error(t, n.Impair("if9", tidepool.Out, tidepool.Impairments{}))
	assert.Error(t, n.Impair("if0", tidepool.Out, tidepool.Impairments{Loss: 2}))
	assert.Error(t, new(tidepool.Node).Impair("if0", tidepool.Out, tidepool.Impairments{}))
	_, err = new(tidepool.Node).Impairments()
	assert.Error(t, err)
}

// echo is a ping from 10.0.0.2 to 10.0.0.1, checksums and all.
func echo() []byte {
	return []byte{
		0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xdf, 10, 0, 0, 2, 10, 0, 0, 1,
		8, 0, 0xf7, 0xff, 0, 0, 0, 0,
	}
}

// The same seed loses the same packets.
func TestImpairmentsSeed(t *testing.T) {
	i := tidepool.Impairments{Loss: 0.5, Seed: 7}
	assert.Equal(t, "loss 50% seed 7", i.String())
	assert.Equal(t, "off", tidepool.Impairments{Seed: 7}.String())
	assert.Equal(t, "delay 1s 0s seed 7", tidepool.Impairments{Delay: time.Second, Seed: 7}.String())
	lost := func(seed uint64) (pattern string) {
		var clock tidepool.Clock
		near, far := tidepool.Pipe(0)
		n, err := tidepool.Open(tidepool.Config{
			Clock: &clock,
			Interfaces: []tidepool.Interface{{
				Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: near,
			}},
		})
		require.NoError(t, err)
		defer n.Close()
		require.NoError(t, n.Impair("if0", tidepool.In, tidepool.Impairments{Loss: 0.5, Seed: seed}))
		packet := make([]byte, 100)
		for range 64 {
			_, err := far.Write(echo())
			require.NoError(t, err)
			_, ok := far.TryRead(packet)
			pattern += map[bool]string{true: "+", false: "-"}[ok]
		}
		return pattern
	}
	first := lost(7)
	assert.Equal(t, first, lost(7))
	assert.NotEqual(t, first, lost(8))
}

func TestOpenPairRefusesWhatIsNoImpairment(t *testing.T) {
	_, _, err := tidepool.OpenPair(tidepool.Impairments{Loss: 2})
	assert.ErrorContains(t, err, "a share of 2: want 0 to 1")
}
