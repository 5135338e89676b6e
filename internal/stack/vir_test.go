package stack_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// virPair returns a connected client on A and the server's accepted socket on C.
func virPair(t *testing.T) (w *world, a, c *stack.Vir, client, server, accepted int) {
	t.Helper()
	w, sa, _, sc := line(t)
	a, c = stack.NewVir(sa), stack.NewVir(sc)
	server, err := c.VirSocket()
	require.NoError(t, err)
	require.NoError(t, c.VirBind(server, 5000))
	require.NoError(t, c.VirListen(server))
	_, err = c.VirAccept(server)
	require.ErrorIs(t, err, stack.ErrWouldBlock)
	client, err = a.VirSocket()
	require.NoError(t, err)
	to := addrPort(addr("10.1.0.2"), 5000)
	require.ErrorIs(t, a.VirConnect(w.now, client, to), stack.ErrWouldBlock)
	w.run(time.Second)
	require.NoError(t, a.VirConnect(w.now, client, to))
	accepted, err = c.VirAccept(server)
	require.NoError(t, err)
	return w, a, c, client, server, accepted
}

// TestVirEcho checks that handles count from 3 and that written data arrives.
func TestVirEcho(t *testing.T) {
	w, a, c, client, server, accepted := virPair(t)
	assert.Equal(t, []int{3, 3, 4}, []int{client, server, accepted})
	n, err := a.VirWrite(w.now, client, []byte("hello"))
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	buf := make([]byte, 10)
	_, err = c.VirRead(w.now, accepted, buf)
	require.ErrorIs(t, err, stack.ErrWouldBlock)
	w.run(time.Second)
	n, err = c.VirRead(w.now, accepted, buf)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(buf[:n]))
	require.NoError(t, a.VirClose(w.now, client))
	w.run(time.Second)
	_, err = c.VirRead(w.now, accepted, buf)
	require.Equal(t, io.EOF, err)
	again, err := a.VirSocket()
	require.NoError(t, err)
	assert.Equal(t, client, again, "the smallest free number")
}

// TestVirErrors raises each of document 004's exceptions except PortUsedUp.
func TestVirErrors(t *testing.T) {
	w, a, c, client, server, accepted := virPair(t)
	fresh := func(v *stack.Vir) int {
		h, err := v.VirSocket()
		require.NoError(t, err)
		return h
	}
	buf := make([]byte, 1)
	raised := map[stack.VirError]bool{}
	raises := func(name stack.VirError, err error) {
		t.Helper()
		require.ErrorIs(t, err, name)
		raised[name] = true
	}
	bound := fresh(a)
	require.NoError(t, a.VirBind(bound, 2000))
	raises(stack.ErrBoundedSocket, a.VirBind(bound, 2001))
	raises(stack.ErrBoundedSocket, a.VirBind(client, 2001))
	raises(stack.ErrUsedPort, a.VirBind(fresh(a), 2000))
	for _, port := range []int{0, 1023, 65536} {
		raises(stack.ErrInvalidPort, a.VirBind(fresh(a), port))
	}
	for _, h := range []int{0, 2, 65536, -1} {
		raises(stack.ErrInvalidSocket, a.VirClose(w.now, h))
	}
	raises(stack.ErrUninitialSocket, a.VirListen(4000))
	raises(stack.ErrUnboundSocket, a.VirListen(fresh(a)))
	_, err := a.VirRead(w.now, fresh(a), buf)
	raises(stack.ErrUnboundSocket, err)
	_, err = a.VirWrite(w.now, bound, buf)
	raises(stack.ErrErrorTCPState, err)
	_, err = a.VirAccept(client)
	raises(stack.ErrErrorTCPState, err)
	raises(stack.ErrErrorTCPState, c.VirListen(accepted))
	raises(stack.ErrErrorTCPState, c.VirConnect(w.now, server, addrPort(addr("10.0.0.1"), 9)))
	raises(stack.ErrErrorTCPState, a.VirConnect(w.now, client, addrPort(addr("10.1.0.2"), 5000)))
	err = c.VirConnect(w.now, fresh(c), addrPort(addr("0.0.0.0"), 5000))
	raises(stack.ErrDestinationUnreadable, err)

	raises(stack.ErrServerCannotShutdown, c.VirShutDown(w.now, server, stack.ShutRead))
	raises(stack.ErrServerCannotShutdown, c.VirShutDown(w.now, server, stack.ShutWrite))
	require.NoError(t, c.VirShutDown(w.now, server, stack.ShutBoth))
	_, err = c.VirAccept(server)
	raises(stack.ErrServerHasClose, err)
	raises(stack.ErrServerHasClose, c.VirListen(server))

	require.NoError(t, a.VirShutDown(w.now, client, stack.ShutRead))
	_, err = a.VirRead(w.now, client, buf)
	raises(stack.ErrReadBlock, err)
	require.NoError(t, a.VirShutDown(w.now, client, stack.ShutWrite))
	_, err = a.VirWrite(w.now, client, buf)
	raises(stack.ErrWriteBlock, err)
	w.run(time.Second)
	require.NoError(t, c.VirShutDown(w.now, accepted, stack.ShutWrite))
	w.run(time.Second)

	refused := fresh(a)
	to := addrPort(addr("10.1.0.2"), 7777)
	require.ErrorIs(t, a.VirConnect(w.now, refused, to), stack.ErrWouldBlock)
	w.run(time.Second)
	err = a.VirConnect(w.now, refused, to)
	raises(stack.ErrServerClosed, err)
	require.ErrorIs(t, err, tcp.ErrRefused, "the error wraps its cause")

	var last int
	for err = nil; err == nil; {
		last, err = a.VirSocket()
	}
	raises(stack.ErrSocketUsedUp, err)
	assert.Zero(t, last)

	require.Len(t, raised, 14, "all except PortUsedUp, which has its own test")
	for name := range raised {
		assert.Contains(t, name.Error(), ": ")
	}
}

func TestVirPortsUsedUp(t *testing.T) {
	_, a, _, _ := line(t)
	for port := range 65536 - 1024 {
		_, err := a.TCP().Listen(addrPort(addr("0.0.0.0"), port+1024), 1)
		require.NoError(t, err)
	}
	v := stack.NewVir(a)
	h, err := v.VirSocket()
	require.NoError(t, err)
	err = v.VirConnect(1, h, addrPort(addr("10.1.0.2"), 80))
	require.ErrorIs(t, err, stack.ErrPortUsedUp)
}

// TestVirAcrossSequenceWrap runs document 004's transfer across the wrap of the sequence numbers.
// TestWrap of internal/tcp transfers the full 5 GB with -long.
func TestVirAcrossSequenceWrap(t *testing.T) {
	near := courseTCP
	near.Sequence = func(tcp.Tuple) uint32 { return ^uint32(1 << 20) }
	saved := courseTCP
	courseTCP = near
	defer func() { courseTCP = saved }()
	w, a, c, client, _, accepted := virPair(t)
	const size = 4 << 20
	want := bytes.Repeat([]byte("0123456789abcdefg"), size/17+1)[:size]
	var got []byte
	buf := make([]byte, 1<<16)
	for sent := 0; len(got) < size; {
		n, err := a.VirWrite(w.now, client, want[sent:])
		if !errors.Is(err, stack.ErrWouldBlock) {
			require.NoError(t, err)
		}
		sent += n
		w.run(time.Millisecond)
		for {
			n, err := c.VirRead(w.now, accepted, buf)
			if errors.Is(err, stack.ErrWouldBlock) {
				break
			}
			require.NoError(t, err)
			got = append(got, buf[:n]...)
		}
	}
	assert.True(t, bytes.Equal(want, got))
}
