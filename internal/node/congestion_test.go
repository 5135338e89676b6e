package node

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func TestCongestionSettings(t *testing.T) {
	a, _ := twoNodes(t, Config{})
	for _, x := range []struct{ key, value string }{
		{"tcp.pacing", "on"}, {"tcp.pacing", "off"}, {"tcp.nagle", "off"}, {"tcp.congestion", "tahoe"},
	} {
		got := testenv.Ask(t, a, control.Set{Key: x.key, Value: x.value})
		assert.Equal(t, x.value, got.Value)
		all := testenv.Ask(t, a, control.Show{Key: x.key})
		assert.Equal(t, []control.Setting{got}, all)
	}
	_, err := control.Ask(t.Context(), a, control.Set{Key: "tcp.pacing", Value: "maybe"})
	require.ErrorIs(t, err, control.ErrUsage)
	_, err = control.Ask(t.Context(), a, control.Set{Key: "tcp.congestion", Value: "vegas"})
	require.ErrorIs(t, err, control.ErrUsage)
	for _, name := range tcp.Algorithms() {
		assert.ErrorContains(t, err, name, "the error lists the algorithms")
	}
	_, err = control.Ask(t.Context(), a, control.Set{Key: "tcp.congestion", Value: "mine.star"})
	require.ErrorContains(t, err, "scripts run in `node lab run` and in the playground")
}

// A busy connection changes its congestion control to each algorithm in turn.
func TestCongestionControlChangesDuringATransfer(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, server := connect(t, a, b, "10.0.0.2:900")
	socks := testenv.Ask(t, a, control.Sockets{})
	require.Len(t, socks, 1)
	sid := socks[0].SID
	names := append(tcp.Algorithms(), tcp.Algorithms()...)
	piece, got := make([]byte, 1<<20), make([]byte, 1<<20)
	wrote := make(chan error, 1)
	go func() {
		for range names {
			if _, err := client.Write(piece); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- client.CloseWrite()
	}()
	for _, name := range names {
		_, err := io.ReadFull(server, got)
		require.NoError(t, err)
		s := testenv.Ask(t, a, control.Congestion{SID: sid, Name: name})
		require.NotNil(t, s.Info)
		assert.Equal(t, name, s.Info.CongestionControl)
	}
	require.NoError(t, <-wrote)
	_, err := control.Ask(t.Context(), a, control.Congestion{SID: sid, Name: "nope"})
	require.ErrorIs(t, err, control.ErrUsage)
	assert.EqualError(t, err, `socket 0: invalid request: unknown congestion control "nope": must be one of `+
		strings.Join(tcp.Algorithms(), ", "))
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
}

// BenchmarkCongestion transfers bytes with each algorithm, with and without pacing, for comparisons
// within one run: over a direct link, through a router, and with loss.
func BenchmarkCongestion(b *testing.B) {
	for _, percent := range []float64{-1, 0, 2} {
		for _, c := range []struct{ name, pacing string }{
			{"reno", "off"}, {"cubic", "off"}, {"cubic", "on"}, {"bbr", "off"},
		} {
			b.Run(fmt.Sprintf("loss=%v%%/%s/pacing=%s", percent, c.name, c.pacing), func(b *testing.B) {
				var from, to *Node
				at := "10.0.0.1:80"
				if percent < 0 {
					from, to = twoNodes(b, Config{})
					at = "10.0.0.2:80"
				} else {
					var router *Node
					to, router, from = line3(b, Config{Seed: 1})
					_, err := router.Do(b.Context(), control.SetLoss{Percent: percent})
					require.NoError(b, err)
				}
				for key, value := range map[string]string{
					"tcp.congestion": c.name, "tcp.pacing": c.pacing,
				} {
					_, err := from.Do(b.Context(), control.Set{Key: key, Value: value})
					require.NoError(b, err)
				}
				stream(b, from, to, at)
			})
		}
	}
}
