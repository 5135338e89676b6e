package adapters

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// natsServer is the program of a server. The server cannot take a listener from outside, so the
// program forwards each connection at the host to a connection inside the process.
func natsServer(h *internet.Host) {
	s, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true, PingInterval: 10 * time.Second, MaxPingsOut: 2,
	})
	if err != nil {
		return
	}
	s.Start()
	accept(h, 4222, func(c net.Conn) {
		inside, err := s.InProcessConn()
		if err != nil {
			return
		}
		var all sync.WaitGroup
		for _, way := range [][2]net.Conn{{c, inside}, {inside, c}} {
			all.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // until one end closes
				_ = c.Close()
				_ = inside.Close()
			})
		}
		all.Wait()
	})
	s.Shutdown()
	s.WaitForShutdown()
}

// natsDialer dials from a host.
type natsDialer struct{ *internet.Host }

func (d natsDialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// A subscriber gets messages in order, and none twice. When the server crashes without a FIN, both
// clients notice that by their pings. They connect to the restarted server, and the subscription is
// renewed.
func TestNATS(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		w.Host("server").Go(natsServer)
		var reconnects atomic.Int32
		connect := func() *nats.Conn {
			c, err := nats.Connect("nats://server:4222", nats.SetCustomDialer(natsDialer{w.Host("client")}),
				nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2), nats.MaxReconnects(-1),
				nats.RetryOnFailedConnect(true), nats.SkipHostLookup(),
				nats.ReconnectHandler(func(*nats.Conn) { reconnects.Add(1) }))
			require.NoError(t, err)
			t.Cleanup(c.Close)
			return c
		}
		publisher, subscriber := connect(), connect()
		var mu sync.Mutex
		var got []byte
		_, err := subscriber.Subscribe("tide", func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.Data...)
		})
		require.NoError(t, err)
		require.NoError(t, subscriber.FlushWithContext(within(t, time.Minute)))
		send := func(from, to byte) {
			for i := from; i < to; i++ {
				require.NoError(t, publisher.Publish("tide", []byte{i}))
				time.Sleep(10 * time.Millisecond)
			}
			// Flush would take its timer from a pool of the process, which two bubbles cannot
			// share.
			require.NoError(t, publisher.FlushWithContext(within(t, time.Minute)))
			require.NoError(t, subscriber.FlushWithContext(within(t, time.Minute)))
			time.Sleep(time.Second) // the handler runs in another goroutine
		}
		send(0, 100)
		w.Host("server").Crash()
		time.Sleep(30 * time.Second)
		assert.Equal(t, nats.RECONNECTING, publisher.Status())
		w.Host("server").Restart(nil)
		time.Sleep(10 * time.Second)
		assert.Equal(t, int32(2), reconnects.Load())
		send(100, 200)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, got, 200)
		for i, b := range got {
			assert.Equal(t, byte(i), b)
		}
	})
}
