package node

import (
	"context"
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/stack"
)

// The calls of document 004 between two nodes over UDP.
func TestVirCallsWait(t *testing.T) {
	a, b := twoNodes(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	va, vb := a.Vir(), b.Vir()
	server, err := vb.Socket()
	require.NoError(t, err)
	assert.Equal(t, 3, server)
	require.NoError(t, vb.Bind(server, 5000))
	require.NoError(t, vb.Listen(server))
	const size = 3 << 20
	got := make(chan int)
	go func() {
		total := 0
		defer func() { got <- total }()
		h, err := vb.Accept(ctx, server)
		if !assert.NoError(t, err) {
			return
		}
		buf := make([]byte, 64<<10)
		for {
			n, err := vb.Read(ctx, h, buf)
			total += n
			if err != nil {
				assert.Equal(t, io.EOF, err)
				assert.NoError(t, vb.Close(h))
				return
			}
		}
	}()
	client, err := va.Socket()
	require.NoError(t, err)
	require.NoError(t, va.Connect(ctx, client, netip.MustParseAddrPort("10.0.0.2:5000")))
	n, err := va.Write(ctx, client, make([]byte, size))
	require.NoError(t, err)
	assert.Equal(t, size, n)
	require.NoError(t, va.ShutDown(client, stack.ShutWrite))
	_, err = va.Write(ctx, client, []byte("x"))
	require.ErrorIs(t, err, stack.ErrWriteBlock)
	assert.Equal(t, size, <-got)
	require.NoError(t, va.Close(client))
	short, stop := context.WithCancel(ctx)
	stop()
	_, err = vb.Accept(short, server)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, vb.Close(server))
}

// A closed node resets its connections.
func TestVirConnectionsOfAClosedNodeAreReset(t *testing.T) {
	a, b := twoNodes(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := b.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:5000"), 0)
	require.NoError(t, err)
	h, err := a.Vir().Socket()
	require.NoError(t, err)
	require.NoError(t, a.Vir().Connect(ctx, h, netip.MustParseAddrPort("10.0.0.2:5000")))
	c, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
