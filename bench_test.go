package tidepool_test

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// BenchmarkPipe moves bytes over one connection between two nodes in a process.
func BenchmarkPipe(b *testing.B) {
	server, client := pair(b, tidepool.Config{})
	out, in := dial(b, client, server, "10.0.0.1:80")
	chunk := make([]byte, 64<<10)
	b.SetBytes(int64(len(chunk)))
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := io.Copy(io.Discard, in)
		assert.NoError(b, err)
	})
	for b.Loop() {
		_, err := out.Write(chunk)
		require.NoError(b, err)
	}
	require.NoError(b, out.CloseWrite())
	wg.Wait()
}

// BenchmarkRoundTrip is a byte there and a byte back.
func BenchmarkRoundTrip(b *testing.B) {
	server, client := pair(b, tidepool.Config{})
	one, two := dial(b, client, server, "10.0.0.1:80")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(two, two) })
	buf := make([]byte, 1)
	for b.Loop() {
		_, err := one.Write(buf)
		require.NoError(b, err)
		_, err = io.ReadFull(one, buf)
		require.NoError(b, err)
	}
	require.NoError(b, one.CloseWrite())
	wg.Wait()
}
