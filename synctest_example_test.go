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

// TestInABubble is an example of a test with testing/synctest: an echo server and its client on a
// link that takes 40 ms and loses 2 % each way. Time is the bubble's: the test does not wait for it,
// and a program's own time.Sleep and deadlines run in it too.
func TestInABubble(t *testing.T) {
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
			_, _ = io.Copy(conn, conn) // the client checks what comes back
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
		assert.GreaterOrEqual(t, time.Since(began), 100*80*time.Millisecond, "a round trip each")
	})
}
