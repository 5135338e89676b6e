package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// maxTalks limits the number of UDP sockets that operators have opened.
const maxTalks = 64

// udpSocket is a UDP socket that an operator has opened. Each datagram that arrives is an event for
// watchers. Sent datagrams go to the socket's peer, or else to the sender of the last datagram.
type udpSocket struct {
	conn *node.PacketConn
	last atomic.Pointer[netip.AddrPort] // source of the last datagram; nil: none has arrived
}

// udpSockets contains the UDP sockets that operators have opened.
type udpSockets struct {
	host *Requests
	list map[*node.PacketConn]*udpSocket // sockets of operators; loop only
}

// listen opens a UDP socket on a port at all addresses.
func (a *udpSockets) listen(_ context.Context, r control.ListenUDP) (control.Socket, error) {
	t, err := a.open(func() (*node.PacketConn, error) {
		return a.host.node.Packets.Listen(a.host.node.AllAddrs(r.Port))
	})
	if err != nil {
		return control.Socket{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	return node.SocketInfo(a.host.node, t.conn.SID())
}

// open opens a socket for an operator.
func (a *udpSockets) open(open func() (*node.PacketConn, error)) (*udpSocket, error) {
	c, err := open()
	if err != nil {
		return nil, err
	}
	t := &udpSocket{conn: c}
	// Operators may send to broadcast addresses.
	if err = c.SetOptions(func(o *udp.Options) { o.Broadcast = true }); err == nil {
		err = a.host.node.Call(func(*stack.Stack, clock.Time) error {
			if len(a.list) >= maxTalks {
				return fmt.Errorf("%d UDP sockets are open: %w; `close` one", maxTalks,
					control.ErrNoPorts)
			}
			a.list[c] = t
			return nil
		})
	}
	if err != nil {
		_ = c.Close() // report the first error
		return nil, err
	}
	go a.listenTo(t)
	return t, nil
}

// listenTo announces received datagrams until the socket is closed.
func (a *udpSockets) listenTo(t *udpSocket) {
	data := make([]byte, 1<<16)
	for {
		k, from, err := t.conn.ReadFromAddrPort(data)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			a.host.node.Watchers.Announce(control.Undelivered{
				SID: t.conn.SID(), To: t.conn.Peer(), Problem: control.Reason(err).Error(),
			})
		default:
			t.last.Store(&from)
			a.host.node.Watchers.Announce(control.Datagram{
				SID: t.conn.SID(), From: from, Data: append([]byte(nil), data[:k]...),
			})
		}
	}
}

// send sends a datagram from a connected socket. The first datagram to a destination opens the
// socket.
func (a *udpSockets) send(ctx context.Context, r control.SendUDP) (control.DatagramSent, error) {
	to := netip.AddrPortFrom(r.Addr, r.Port)
	if !r.Addr.IsValid() || r.Addr.Is4In6() || r.Addr.IsUnspecified() || r.Port == 0 {
		return control.DatagramSent{}, control.Misuse(
			"%v: must be an address and a port from 1", to)
	}
	var t *udpSocket
	err := a.host.node.Ask(func(*stack.Stack, clock.Time) error {
		for c, known := range a.list {
			if c.Peer() == to {
				t = known
			}
		}
		return nil
	})
	if err == nil && t == nil {
		t, err = a.open(func() (*node.PacketConn, error) { return a.host.node.Packets.Dial(to) })
	}
	if err != nil {
		return control.DatagramSent{}, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	k, err := t.write(ctx, r.Data)
	return control.DatagramSent{SID: t.conn.SID(), Bytes: k}, err
}

func (t *udpSocket) write(ctx context.Context, data []byte) (k int, err error) {
	defer untilDone(ctx, t.conn.SetWriteDeadline)()
	last := t.last.Load()
	switch {
	case t.conn.Peer().IsValid():
		if k, err = t.conn.Write(data); errors.Is(err, control.ErrRefused) ||
			errors.Is(err, control.ErrUnreachable) {
			k, err = t.conn.Write(data) // the error concerned an earlier datagram, so try again
		}
	case last != nil:
		k, err = t.conn.WriteToAddrPort(data, *last)
	default:
		return 0, fmt.Errorf("socket %d: %w: no datagram has arrived; `udp send` names a peer",
			t.conn.SID(), control.ErrNotConnected)
	}
	if err != nil {
		return k, fmt.Errorf("socket %d: %w", t.conn.SID(), ctxError(ctx, err))
	}
	return k, nil
}

// of returns the UDP socket with that number if an operator has opened it, or nil.
func (a *udpSockets) of(sid int) (t *udpSocket) {
	_ = a.host.node.Call(func(s *stack.Stack, _ clock.Time) error { // a closed node has no sockets
		if known, ok := s.Sockets().Get(sid); ok && known.UDP != nil {
			c, _ := known.UDP.Owner.(*node.PacketConn)
			t = a.list[c]
		}
		return nil
	})
	return t
}
