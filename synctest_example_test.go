package tidepool_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// TestInBubble shows a test with testing/synctest: an echo server and its client on a link with a
// delay of 40 ms that loses 2 % in each direction. All of it runs in the bubble's time, the
// program's own time.Sleep and deadlines too, so the test takes no real time.
func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, err := tidepool.OpenPair(tidepool.Impairments{
			Delay: 40 * time.Millisecond, Loss: 0.02, Seed: 7,
		})
		require.NoError(t, err)
		defer client.Close()
		defer server.Close()

		ln, err := server.Listen("tcp", ":7")
		require.NoError(t, err)
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn) // the client compares the data
			_ = conn.Close()
		}()

		began := time.Now()
		conn, err := client.Dial("tcp", "10.0.0.2:7")
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(began.Add(time.Minute)))
		for range 100 {
			_, err := conn.Write([]byte("tide"))
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, 4))
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		assert.GreaterOrEqual(t, time.Since(began), 100*80*time.Millisecond, "100 round trips")
	})
}
