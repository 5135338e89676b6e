//go:build linux

package interop_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// until waits until done returns true.
func (b *bed) until(what string, done func() bool) {
	b.t.Helper()
	require.Eventually(b.t, done, patience, 10*time.Millisecond, what)
}

// One end does not read until the other has probed its closed window (RFC 9293 §3.8.6.1). Then
// everything arrives.
func TestClosedWindows(t *testing.T) { both(t, testClosedWindows) }

func testClosedWindows(t *testing.T, f family) {
	for _, weSend := range []bool{true, false} {
		way := map[bool]string{true: "we probe", false: "the kernel probes"}[weSend]
		t.Run(way, func(t *testing.T) {
			r := &row{peer: "Linux", scenario: "closed window, " + way}
			f.report(t, r)
			b := newBed(t, f, 0, nil)
			ours, kernels := b.mustPair(9000, weSend)
			var from, to net.Conn = ours, kernels
			probed := func() bool {
				list := testenv.Ask(t, b.c, control.Sockets{Info: true})
				for _, s := range list {
					if s.Info != nil && s.Info.WindowProbes > 0 {
						return true
					}
				}
				return false
			}
			if !weSend {
				from, to = kernels, ours
				probed = func() bool { return strings.Contains(b.ss(), "timer:(persist,") }
			}
			text := noise(32_000_000)
			wrote := make(chan error, 1)
			go func() {
				_, err := from.Write(text)
				if err == nil {
					err = from.Close()
				}
				wrote <- err
			}()
			b.until("no probe", probed)
			got, err := io.ReadAll(to)
			require.NoError(t, err)
			require.NoError(t, <-wrote)
			assert.Equal(t, sha256.Sum256(text), sha256.Sum256(got))
		})
	}
}

// RFC 1191 §3: the router in front of a link with a small MTU reports the MTU, and both TCPs send
// smaller segments.
func TestPathMTUDiscovery(t *testing.T) { both(t, testPathMTUDiscovery) }

func testPathMTUDiscovery(t *testing.T, f family) {
	need(t, "ss")
	mtu := pick(f, 600, 1280)
	r := &row{peer: "Linux", scenario: fmt.Sprintf("path MTU of %d, both ways", mtu)}
	f.report(t, r)
	b := newBed(t, f, 0, nil, linkMTU(mtu))
	for i, weSend := range []bool{true, false} {
		ours, kernels := b.mustPair(9000+i, true)
		var from, to net.Conn = ours, kernels
		if !weSend {
			from, to = kernels, ours
		}
		text := noise(2_000_000)
		wrote := make(chan error, 1)
		go func() {
			_, err := from.Write(text)
			wrote <- err
		}()
		got := make([]byte, len(text))
		_, err := io.ReadFull(to, got)
		require.NoError(t, err)
		require.NoError(t, <-wrote)
		assert.Equal(t, sha256.Sum256(text), sha256.Sum256(got))
		if weSend {
			list := testenv.Ask(t, b.c, control.Sockets{Info: true})
			require.NotEmpty(t, list)
			assert.Equal(t, mtu, list[0].Info.PMTU)
		} else {
			assert.Contains(t, b.ss(), fmt.Sprintf("pmtu:%d ", mtu))
		}
		require.NoError(t, ours.Close())
		require.NoError(t, kernels.Close())
		b.awaitNoConns()
	}
	faces := testenv.Ask(t, b.b, control.Interfaces{})
	assert.Contains(t, fmt.Sprint(faces), "too big", "the router dropped a packet that was too big")
}
