package adapters

import (
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// docs/findings.md, quic-go: quic-go closes a connection if its host has no route for an instant.
// If this test fails because a new version no longer does that, remove the finding.
func TestFindingQUICSendError(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		server, client := certificate(t, "server", "echo")
		w.Host("server").Go(quicServer(server, nil))
		pc, err := w.Host("client").ListenPacket("udp", ":0")
		require.NoError(t, err)
		defer pc.Close()
		transport := &quic.Transport{Conn: pc}
		defer transport.Close()
		to := &net.UDPAddr{IP: w.Host("server").Addrs()[0].AsSlice(), Port: 443}
		c, err := transport.Dial(within(t, time.Minute), to, client, nil)
		require.NoError(t, err)
		require.NoError(t, quicAsk(within(t, time.Minute), t, c, page))

		w.Link("client", "r").Cut()
		err = quicAsk(within(t, time.Second), t, c, page)
		w.Link("client", "r").Restore()
		require.ErrorContains(t, err, "no route to host")
		require.Error(t, quicAsk(within(t, time.Minute), t, c, page), "the link is there again")
	})
}

// docs/findings.md, go-redis: with the default options, go-redis repeats a command whose answer is
// late. So a counter is incremented more often than its callers asked for.
func TestFindingRedisRepeats(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		w.Host("server").Go(redisServer(t))
		c := redisClient(t, w.Host("client"), 0) // three repetitions are the default
		require.NoError(t, c.Ping(t.Context()).Err())
		w.Link("client", "r").Impair("delay 10ms loss 1%")
		time.AfterFunc(time.Millisecond, func() { w.Link("server", "r").Impair("delay 3s") })
		time.AfterFunc(20*time.Second, func() { w.Link("server", "r").Impair("") })
		_ = c.Incr(t.Context(), "n").Err() // fails during the outage
		time.Sleep(time.Minute)
		n, err := c.Get(t.Context(), "n").Int64()
		require.NoError(t, err)
		assert.Greater(t, n, int64(1), "asked once")
		t.Logf("asked once, counted %d", n)
	})
}
