package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
)

// maxTalks bounds the UDP sockets that operators have open.
const maxTalks = 64

// talk is a UDP socket that an operator opened: what comes to it is told, and what is
// written to it by number goes to its peer, or else to whoever was heard last.
type talk struct {
	conn *PacketConn
	last atomic.Pointer[netip.AddrPort] // nil: nobody yet
}

// listenUDP opens a UDP socket on a port of all addresses.
func (n *Node) listenUDP(r control.ListenUDP) (control.Socket, error) {
	t, err := n.openTalk(func() (*PacketConn, error) {
		return n.ListenPacket(netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port))
	})
	if err != nil {
		return control.Socket{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	return n.socketInfo(t.conn.sid)
}

// openTalk opens a socket that speaks with the operator.
func (n *Node) openTalk(open func() (*PacketConn, error)) (*talk, error) {
	c, err := open()
	if err != nil {
		return nil, err
	}
	t := &talk{conn: c}
	callErr := n.call(func(clock.Time) {
		if len(n.talks) >= maxTalks {
			err = fmt.Errorf("%d UDP sockets are open: %w: `close` some", maxTalks,
				control.ErrNoPorts)
			return
		}
		n.talks[c] = t
		o := c.us.Options()
		o.Broadcast = true // an operator who writes to all means it
		c.us.SetOptions(o)
	})
	if err = firstError(callErr, err); err != nil {
		_ = c.Close() // the first error is the one to tell
		return nil, err
	}
	go n.listenTo(t)
	return t, nil
}

// listenTo tells watchers what comes to a socket, until it is closed.
func (n *Node) listenTo(t *talk) {
	data := make([]byte, 1<<16)
	for {
		k, from, err := t.conn.ReadFromAddrPort(data)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			n.watchers.publish(control.Undelivered{
				SID: t.conn.sid, To: t.conn.peer, Problem: control.Reason(err).Error(),
			})
		default:
			t.last.Store(&from)
			n.watchers.publish(control.Datagram{
				SID: t.conn.sid, From: from, Data: append([]byte(nil), data[:k]...),
			})
		}
	}
}

// sendUDP sends a datagram from the socket that is connected to its destination, which
// is opened for the first.
func (n *Node) sendUDP(ctx context.Context, r control.SendUDP) (control.DatagramSent, error) {
	to := netip.AddrPortFrom(r.Addr, r.Port)
	if !r.Addr.Is4() || r.Addr.IsUnspecified() || r.Port == 0 {
		return control.DatagramSent{}, control.Misuse("%v: want an address and a port from 1", to)
	}
	var t *talk
	callErr := n.call(func(clock.Time) {
		for c, known := range n.talks {
			if c.peer == to {
				t = known
			}
		}
	})
	err := ControlError(callErr)
	if err == nil && t == nil {
		t, err = n.openTalk(func() (*PacketConn, error) { return n.DialUDP(to) })
	}
	if err != nil {
		return control.DatagramSent{}, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	k, err := t.write(ctx, r.Data)
	return control.DatagramSent{SID: t.conn.sid, Bytes: k}, err
}

// write sends one datagram.
func (t *talk) write(ctx context.Context, data []byte) (k int, err error) {
	defer untilDone(ctx, t.conn.SetWriteDeadline)()
	last := t.last.Load()
	switch {
	case t.conn.peer.IsValid():
		if k, err = t.conn.Write(data); errors.Is(err, control.ErrRefused) ||
			errors.Is(err, control.ErrUnreachable) {
			k, err = t.conn.Write(data) // that was about another datagram
		}
	case last != nil:
		k, err = t.conn.WriteToAddrPort(data, *last)
	default:
		return 0, fmt.Errorf("socket %d: %w: nobody has written to it, `udp send` names a peer",
			t.conn.sid, control.ErrNotConnected)
	}
	if err != nil {
		return k, fmt.Errorf("socket %d: %w", t.conn.sid, ctxError(ctx, err))
	}
	return k, nil
}

// talkOf finds the UDP socket with that number that an operator opened; nil: it is none.
func (n *Node) talkOf(sid int) (t *talk) {
	_ = n.call(func(clock.Time) { // a closed node has none
		if s, ok := n.stack.Socket(sid); ok && s.UDP != nil {
			c, _ := s.UDP.Owner.(*PacketConn)
			t = n.talks[c]
		}
	})
	return t
}
