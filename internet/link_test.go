package internet

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// take returns how long a server needs to send n bytes to a client.
func take(t *testing.T, server, client *Host, n int) time.Duration {
	t.Helper()
	ln, err := server.Listen("tcp", ":9")
	require.NoError(t, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write(make([]byte, n)) // the client counts
		_ = c.Close()
	}()
	began := time.Now()
	c, err := client.Dial("tcp", server.Name()+":9")
	require.NoError(t, err)
	defer c.Close()
	got, err := io.Copy(io.Discard, c)
	require.NoError(t, err)
	assert.EqualValues(t, n, got)
	return time.Since(began)
}

// A trace with an opportunity every 12 ms results in a link of 1 Mbit/s, both in a network's text
// and in Impair.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a b trace testdata/1mbit.trace")
		assert.InDelta(t, 8.2, take(t, w.Host("a"), w.Host("b"), 1e6).Seconds(), 0.4)
		w.Link("a", "b").Impair("")
		assert.Less(t, take(t, w.Host("a"), w.Host("b"), 1e6), time.Millisecond)
		w.Link("a", "b").Impair("trace testdata/1mbit.trace")
		assert.InDelta(t, 8.2, take(t, w.Host("a"), w.Host("b"), 1e6).Seconds(), 0.4)
	})
}

// The links of a paused host can change. The host notices that when it resumes.
func TestCutWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t, "link a r\nlink r b")
		serve(w.Host("a"))
		for range 2 {
			w.Host("a").Pause()
			w.Link("a", "r").Cut()
			w.Link("a", "r").Impair("delay 1s")
			time.Sleep(time.Second)
			w.Host("a").Resume()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := w.Host("b").DialContext(ctx, "tcp", "a:7")
			cancel()
			require.Error(t, err, "the link is cut")
			w.Link("a", "r").Restore()
			time.Sleep(time.Minute)
			began := time.Now()
			c, err := w.Host("b").Dial("tcp", "a:7")
			require.NoError(t, err)
			assert.InDelta(t, 2, time.Since(began).Seconds(), 0.1, "a round trip")
			require.NoError(t, c.Close())
			w.Host("a").Pause()
			w.Host("a").Crash()
			w.Host("a").Restart(nil)
			time.Sleep(time.Minute)
			c, err = w.Host("b").Dial("tcp", "a:7")
			require.NoError(t, err, "it runs again, and is not paused")
			require.NoError(t, c.Close())
		}
	})
}
