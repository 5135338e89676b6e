package operator

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// two starts two nodes on one link: 10.0.0.1 and 10.0.0.2.
func two(t *testing.T) (a, b *Requests) {
	t.Helper()
	start := func(file *lnx.Config) *Requests {
		n, err := OpenNode(node.Config{}, file)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return NewRequests(n)
	}
	fa, fb := testenv.TwoNodes(t)
	return start(fa), start(fb)
}

// watch returns the events of a node.
func watch(t *testing.T, n *Requests) <-chan control.Event {
	t.Helper()
	events := make(chan control.Event, 64)
	t.Cleanup(n.Watch(func(e control.Event) { events <- e }))
	return events
}

func next(t *testing.T, events <-chan control.Event) control.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(10 * time.Second):
		require.Fail(t, "no event arrived")
		return nil
	}
}

func TestUDPBetweenOperators(t *testing.T) {
	a, b := two(t)
	hear := watch(t, a)
	answer := watch(t, b)
	ctx := t.Context()
	sock, err := control.Ask(ctx, a, control.ListenUDP{Port: 53})
	require.NoError(t, err)
	assert.Equal(t, "UDP", sock.State)
	_, err = control.Ask(ctx, a, control.Write{SID: sock.SID, Data: []byte("to whom?")})
	require.ErrorIs(t, err, control.ErrNotConnected)
	_, err = control.Ask(ctx, a, control.ListenUDP{Port: 53})
	require.ErrorIs(t, err, control.ErrPortInUse)

	send := control.SendUDP{Addr: netip.MustParseAddr("10.0.0.1"), Port: 53, Data: []byte("question")}
	sent, err := control.Ask(ctx, b, send)
	require.NoError(t, err)
	assert.Equal(t, 8, sent.Bytes)
	got := next(t, hear).(control.Datagram)
	assert.Equal(t, "question", string(got.Data))
	assert.Equal(t, netip.MustParseAddr("10.0.0.2"), got.From.Addr())

	_, err = control.Ask(ctx, a, control.Write{SID: sock.SID, Data: []byte("answer")})
	require.NoError(t, err)
	got = next(t, answer).(control.Datagram)
	assert.Equal(t, sent.SID, got.SID)
	assert.Equal(t, "answer", string(got.Data))

	again, err := control.Ask(ctx, b, send)
	require.NoError(t, err)
	assert.Equal(t, sent.SID, again.SID, "one socket for one destination")
	_, err = control.Ask(ctx, b, control.Write{SID: sent.SID, Data: []byte("by number")})
	require.NoError(t, err)
	next(t, hear)
	assert.Equal(t, "by number", string(next(t, hear).(control.Datagram).Data))

	require.NoError(t, control.Order(ctx, a, control.Close{SID: sock.SID}))
	_, err = control.Ask(ctx, b, send)
	require.NoError(t, err)
	lost := next(t, answer).(control.Undelivered)
	assert.Equal(t, "connection refused", lost.Problem)
	assert.Equal(t, sent.SID, lost.SID)
	_, err = control.Ask(ctx, b, send)
	require.NoError(t, err, "an error is reported once")
}

// Operators may send broadcasts.
func TestUDPBroadcastByOperators(t *testing.T) {
	a, b := two(t)
	hear := watch(t, a)
	testenv.Ask(t, a, control.ListenUDP{Port: 53})
	for _, all := range []string{"10.0.0.255", "255.255.255.255"} {
		send := control.SendUDP{Addr: netip.MustParseAddr(all), Port: 53, Data: []byte(all)}
		testenv.Ask(t, b, send)
		assert.Equal(t, all, string(next(t, hear).(control.Datagram).Data))
	}
}

func TestUDPSocketsOfOperatorsAreBounded(t *testing.T) {
	a, _ := two(t)
	for i := range maxTalks {
		testenv.Ask(t, a, control.ListenUDP{Port: uint16(1000 + i)})
	}
	_, err := control.Ask(t.Context(), a, control.ListenUDP{Port: 2000})
	require.ErrorIs(t, err, control.ErrNoPorts)
	list := testenv.Ask(t, a, control.Sockets{})
	assert.Len(t, list, maxTalks, "the one too many is gone")
	_, err = control.Ask(t.Context(), a, control.SendUDP{Addr: netip.MustParseAddr("10.0.0.2")})
	assert.ErrorIs(t, err, control.ErrUsage)
}

func TestASocketThatFailsToOpenIsNotListed(t *testing.T) {
	a, _ := two(t)
	_, err := a.udpSockets.open(func() (*node.PacketConn, error) {
		c, err := a.node.Packets.Listen(netip.MustParseAddrPort("0.0.0.0:53"))
		require.NoError(t, err)
		return c, c.Close() // its options cannot be set after Close
	})
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, a.node.Call(func(*stack.Stack, clock.Time) error {
		assert.Empty(t, a.udpSockets.list)
		return nil
	}))
}
