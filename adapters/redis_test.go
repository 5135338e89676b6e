package adapters

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// redisServer is the program of a Redis server. Its data survive crashes.
func redisServer(t *testing.T) func(*internet.Host) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	first, err := m.Dial() // starts the server, but without a socket
	require.NoError(t, err)
	require.NoError(t, first.Close())
	t.Cleanup(m.Close)
	return func(h *internet.Host) { accept(h, 6379, m.Server().ServeConn) }
}

// redisClient connects a client to the server. With retries it repeats commands that fail.
func redisClient(t *testing.T, h *internet.Host, retries int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: "server:6379", MaxRetries: retries, PoolSize: 4,
		// Maintenance notifications would use the system's resolver, which is outside of the
		// bubble.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		ContextTimeoutEnabled: true, // otherwise a call could take longer than its context

		DialTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			return h.DialContext(ctx, network, address)
		},
	})
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// A counter counts while the server crashes. It has every acknowledged increment, and no increment
// that was not requested.
func TestRedis(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		w.Host("server").Go(redisServer(t))
		c := redisClient(t, w.Host("client"), -1)
		w.At(10*time.Second, w.Host("server").Crash)
		w.At(20*time.Second, func() { w.Host("server").Restart(nil) })
		began := time.Now()
		var asked, done, failed int64
		for time.Since(began) < time.Minute {
			asked++
			if err := c.Incr(t.Context(), "n").Err(); err != nil {
				failed++
			} else {
				done++
			}
			time.Sleep(100 * time.Millisecond)
		}
		n, err := c.Get(t.Context(), "n").Int64()
		require.NoError(t, err)
		assert.GreaterOrEqual(t, n, done)
		assert.LessOrEqual(t, n, asked)
		assert.Positive(t, failed)
		assert.Greater(t, done, int64(250))
		t.Logf("%d asked, %d acknowledged, %d counted", asked, done, n)
	})
}
