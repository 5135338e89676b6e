package adapters

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// quicServer is the program of a server that echoes each stream. The server has a key for stateless
// resets, so after a restart it resets connections that it does not know (RFC 9000 §10.3).
func quicServer(config *tls.Config, key *quic.StatelessResetKey) func(*internet.Host) {
	return func(h *internet.Host) {
		pc, err := h.ListenPacket("udp", ":443")
		if err != nil {
			return
		}
		defer pc.Close()
		transport := &quic.Transport{Conn: pc, StatelessResetKey: key}
		ln, err := transport.Listen(config, nil)
		if err != nil {
			return
		}
		for {
			c, err := ln.Accept(context.Background())
			if err != nil {
				break
			}
			go quicEcho(c)
		}
		_ = transport.Close()
	}
}

func quicEcho(c *quic.Conn) {
	for {
		s, err := c.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(s, s) // the client compares
			_ = s.Close()
		}()
	}
}

// quicAsk sends a text on a new stream and compares the answer.
func quicAsk(ctx context.Context, t *testing.T, c *quic.Conn, text []byte) error {
	t.Helper()
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		require.NoError(t, s.SetDeadline(end))
	}
	go func() {
		_, _ = s.Write(text) // if this fails, the answer is missing
		_ = s.Close()
	}()
	answer, err := io.ReadAll(s)
	if err == nil {
		assert.True(t, bytes.Equal(text, answer))
	}
	return err
}

// QUIC transfers streams over a lossy network, resets a connection whose server was restarted, and
// gives up a connection whose packets are all lost.
func TestQUIC(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		server, client := certificate(t, "server", "echo")
		w.Host("server").Go(quicServer(server, &quic.StatelessResetKey{1}))
		pc, err := w.Host("client").ListenPacket("udp", ":0")
		require.NoError(t, err)
		defer pc.Close()
		transport := &quic.Transport{Conn: pc}
		defer transport.Close()
		to := &net.UDPAddr{IP: w.Host("server").Addrs()[0].AsSlice(), Port: 443}
		dial := func() *quic.Conn {
			c, err := transport.Dial(within(t, time.Minute), to, client, &quic.Config{
				MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 10 * time.Second,
			})
			require.NoError(t, err)
			return c
		}
		c := dial()
		require.NoError(t, quicAsk(within(t, time.Minute), t, c, page))

		w.Host("server").Crash()
		w.Host("server").Restart(nil)
		err = quicAsk(within(t, time.Minute), t, c, page)
		var reset *quic.StatelessResetError
		require.ErrorAs(t, err, &reset)

		c = dial()
		w.Link("client", "r").Impair("loss 100%")
		began := time.Now()
		err = quicAsk(within(t, time.Minute), t, c, page)
		var idle *quic.IdleTimeoutError
		require.ErrorAs(t, err, &idle)
		assert.InDelta(t, 30*time.Second, time.Since(began), 1e9)
	})
}
