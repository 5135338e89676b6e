//go:build linux

package interop_test

import (
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// send sends n bytes from one end to the other and returns how long it took.
func (b *bed) send(from, to net.Conn, n int64) time.Duration {
	t := b.t
	t.Helper()
	end := time.Now().Add(transferTime(n))
	require.NoError(t, from.SetDeadline(end))
	require.NoError(t, to.SetDeadline(end))
	text := noise(int(n))
	wrote := make(chan error, 1)
	start := time.Now()
	go func() {
		_, err := from.Write(text)
		if err == nil {
			err = from.Close()
		}
		wrote <- err
	}()
	got, err := io.ReadAll(to)
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	assert.Equal(t, sha256.Sum256(text), sha256.Sum256(got))
	return time.Since(start)
}

// The kernel sends with every congestion control that it has on this machine.
func TestKernelAlgorithms(t *testing.T) { both(t, testKernelAlgorithms) }

func testKernelAlgorithms(t *testing.T, f family) {
	need(t, "ss")
	known := newBed(t, f, 0, nil).sysctl("net/ipv4/tcp_available_congestion_control")
	for name := range strings.FieldsSeq(known) {
		t.Run(name, func(t *testing.T) {
			r := &row{peer: "Linux", scenario: "Linux sends with " + name, loss: 1}
			f.report(t, r)
			b := newBed(t, f, 1, nil)
			b.congestion(name)
			ours, kernels := b.mustPair(9000, false)
			assert.Contains(t, b.ss(), " "+name+" ")
			r.bytes = min(size(1), 10_000_000)
			r.took = b.send(kernels, ours, r.bytes)
		})
	}
}

// The kernel receives, and we send with every congestion control and loss recovery that we have.
func TestOurAlgorithms(t *testing.T) { both(t, testOurAlgorithms) }

func testOurAlgorithms(t *testing.T, f family) {
	try := func(key, value string) {
		t.Run(key+" "+value, func(t *testing.T) {
			t.Parallel()
			r := &row{peer: "Linux", scenario: "we send with " + key + " " + value, loss: 1}
			f.report(t, r)
			b := newBed(t, f, 1, nil)
			b.set(key, value)
			ours, kernels := b.mustPair(9000, true)
			r.bytes = min(size(1), 10_000_000)
			r.took = b.send(ours, kernels, r.bytes)
		})
	}
	for _, name := range tcp.Algorithms() {
		try("tcp.congestion", name)
	}
	for _, name := range []string{"gbn", "newreno", "sack", "rack"} {
		try("tcp.recovery", name)
	}
}

// A link in the middle loses, duplicates, reorders, corrupts and delays packets, at both ends.
func TestImpairedLink(t *testing.T) { both(t, testImpairedLink) }

func testImpairedLink(t *testing.T, f family) {
	const link = "loss 0.5% dup 1% reorder 1% corrupt 0.5% delay 1ms jitter 500us"
	for _, weSend := range []bool{true, false} {
		way := map[bool]string{true: "we send", false: "Linux sends"}[weSend]
		t.Run(way, func(t *testing.T) {
			r := &row{peer: "Linux", scenario: "dup, reorder, corrupt, jitter; " + way, loss: 1}
			f.report(t, r)
			b := newBed(t, f, 0, nil, "link if0 "+link+"\n")
			ours, kernels := b.mustPair(9000, weSend)
			r.bytes = min(size(1), 10_000_000)
			if weSend {
				r.took = b.send(ours, kernels, r.bytes)
			} else {
				r.took = b.send(kernels, ours, r.bytes)
			}
		})
	}
}
