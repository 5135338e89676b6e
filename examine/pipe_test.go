package examine

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangs is a stack whose connections never close.
type hangs struct{ release chan struct{} }

func (h *hangs) Listen(uint16) (net.Listener, error) { return nil, net.ErrClosed }

func (h *hangs) Dial(context.Context, netip.AddrPort) (net.Conn, error) {
	own, _ := net.Pipe()
	return &stuck{own, h.release}, nil
}

func (h *hangs) Input([]byte) error { return nil }

func (h *hangs) Close() {}

type stuck struct {
	net.Conn

	release chan struct{}
}

func (s *stuck) Close() error {
	<-s.release
	return s.Conn.Close()
}

// A stack in this process cannot be killed, so the examiner does not wait for a stack that hangs.
func TestPipeHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stack := &hangs{make(chan struct{})}
		p := &Pipe{Open: func(*Link, func([]byte)) (PacketStack, error) { return stack, nil }}
		s := setup(false)
		r, err := p.Start(&s)
		require.NoError(t, err)
		to := Command{Kind: CommandConnect, Addr: s.Links[0].Peer, Port: peerPort}
		require.NoError(t, r.Do(to))
		require.NoError(t, r.Do(Command{Kind: CommandClose}))
		require.ErrorIs(t, r.Do(Command{Kind: CommandShutdown}), ErrUnsupported)
		began := time.Now()
		r.Close()
		assert.Equal(t, closeTime, time.Since(began))
		close(stack.release)
	})
}
