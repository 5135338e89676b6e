package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
)

// socketRequest serves the requests about sockets by number.
func (n *Node) socketRequest(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.Listen:
		return n.listen(r)
	case control.Connect:
		return n.connect(ctx, r)
	case control.Write:
		return n.writeSocket(ctx, r)
	case control.Read:
		return n.readSocket(ctx, r)
	case control.Shutdown:
		return control.Nothing{}, n.shutdownSocket(r)
	case control.Close:
		return control.Nothing{}, n.closeSocket(r)
	case control.ListenUDP:
		return n.listenUDP(r)
	case control.SendUDP:
		return n.sendUDP(ctx, r)
	case control.Congestion:
		return n.setCongestion(r)
	}
	panic(fmt.Sprintf("BUG: node: %T is not about sockets", req))
}

// listen opens a listener that accepts all that come.
func (n *Node) listen(r control.Listen) (control.Socket, error) {
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port)
	l, err := n.listenOn(&Listener{addr: on, loud: true}, 0)
	if err != nil {
		return control.Socket{}, fmt.Errorf("port %d: %w", r.Port, control.Reason(err))
	}
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	return n.socketInfo(l.sid)
}

func (n *Node) connect(ctx context.Context, r control.Connect) (control.Socket, error) {
	c, err := n.ConnectTo(ctx, r.Addr, r.Port)
	if err != nil {
		return control.Socket{}, err
	}
	// From here on it is the operator's, who has not seen what happened meanwhile.
	err = n.call(func(clock.Time) {
		c.loud = true
		n.announceEnd(c)
	})
	if err != nil {
		return control.Socket{}, ControlError(err)
	}
	return n.socketInfo(c.sid)
}

// ConnectTo is Dial in an operator's terms.
func (n *Node) ConnectTo(ctx context.Context, addr netip.Addr, port uint16) (*Conn, error) {
	return connectBy(ctx, n.Dial, addr, port)
}

// ConnectForFile is DialForFile in an operator's terms.
func (n *Node) ConnectForFile(ctx context.Context, addr netip.Addr, port uint16) (*Conn, error) {
	return connectBy(ctx, n.DialForFile, addr, port)
}

func connectBy(
	ctx context.Context, dial func(context.Context, netip.AddrPort) (*Conn, error),
	addr netip.Addr, port uint16,
) (*Conn, error) {
	to := netip.AddrPortFrom(addr, port)
	if !control.IsHost(addr) || port == 0 {
		return nil, fmt.Errorf("%v: %w: want the address of a host and a port from 1",
			to, control.ErrUsage)
	}
	c, err := dial(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	return c, nil
}

func (n *Node) socketInfo(sid int) (s control.Socket, err error) {
	callErr := n.call(func(now clock.Time) { s = n.stack.SocketInfo(sid, now) })
	return s, ControlError(callErr)
}

// conn finds the connection with that number.
func (n *Node) conn(sid int) (c *Conn, err error) {
	callErr := n.call(func(clock.Time) {
		s, ok := n.stack.Socket(sid)
		if !ok {
			err = fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket)
			return
		}
		if s.TimeWait != clock.Never {
			err = fmt.Errorf("%d is in TIME_WAIT: %w", sid, control.ErrClosed)
			return
		}
		if s.Conn == nil {
			err = fmt.Errorf("%d: %w", sid, control.ErrNotConnected)
			return
		}
		c, ok = s.Conn.Owner.(*Conn)
		if !ok {
			err = fmt.Errorf("%d: %w", sid, control.ErrNotConnected)
		}
	})
	return c, ControlError(firstError(callErr, err))
}

// untilDone makes a blocking call on a connection end with ctx.
func untilDone(ctx context.Context, set func(time.Time) error) (release func()) {
	stop := context.AfterFunc(ctx, func() { _ = set(time.Unix(1, 0)) })
	return func() {
		if !stop() {
			_ = set(time.Time{})
		}
	}
}

func ctxError(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return control.Reason(err)
}

func (n *Node) writeSocket(ctx context.Context, r control.Write) (control.Written, error) {
	if t := n.talkOf(r.SID); t != nil {
		k, err := t.write(ctx, r.Data)
		return control.Written{Bytes: k}, err
	}
	c, err := n.conn(r.SID)
	if err != nil {
		return control.Written{}, err
	}
	defer untilDone(ctx, c.SetWriteDeadline)()
	k, err := c.Write(r.Data)
	if err != nil {
		return control.Written{Bytes: k}, fmt.Errorf("socket %d: %w", r.SID, ctxError(ctx, err))
	}
	return control.Written{Bytes: k}, nil
}

// maxRead bounds one Read request, and so the answer's memory.
const maxRead = 64 << 20

func (n *Node) readSocket(ctx context.Context, r control.Read) (control.Data, error) {
	if r.N < 0 || r.N > maxRead {
		return control.Data{}, fmt.Errorf("read of %d bytes: %w: want 0 to %d",
			r.N, control.ErrUsage, maxRead)
	}
	c, err := n.conn(r.SID)
	if err != nil {
		return control.Data{}, err
	}
	defer untilDone(ctx, c.SetReadDeadline)()
	var got []byte
	chunk := make([]byte, min(r.N, 64<<10))
	for len(got) < r.N {
		k, err := c.Read(chunk[:min(len(chunk), r.N-len(got))])
		got = append(got, chunk[:k]...)
		if errors.Is(err, io.EOF) {
			return control.Data{Bytes: got, EOF: true}, nil
		}
		if err != nil {
			return control.Data{Bytes: got}, fmt.Errorf("socket %d: %w", r.SID, ctxError(ctx, err))
		}
		if !r.Full {
			break
		}
	}
	return control.Data{Bytes: got}, nil
}

func (n *Node) shutdownSocket(r control.Shutdown) error {
	c, err := n.conn(r.SID)
	if err != nil {
		return err
	}
	switch r.How {
	case control.ShutdownRead:
		err = c.CloseRead()
	case control.ShutdownWrite:
		err = c.CloseWrite()
	case control.ShutdownBoth:
		err = firstError(c.CloseWrite(), c.CloseRead())
	default:
		return fmt.Errorf("shutdown %q: %w: want read, write or both", r.How, control.ErrUsage)
	}
	if err != nil {
		return fmt.Errorf("socket %d: %w", r.SID, control.Reason(err))
	}
	return nil
}

func (n *Node) closeSocket(r control.Close) error {
	var l *Listener
	var u *PacketConn
	var known bool
	callErr := n.call(func(clock.Time) {
		s, ok := n.stack.Socket(r.SID)
		if known = ok; !ok {
			return
		}
		if s.Listener != nil {
			l = n.listeners[s.Listener]
		}
		if s.UDP != nil {
			u, _ = s.UDP.Owner.(*PacketConn)
		}
	})
	if callErr != nil {
		return ControlError(callErr)
	}
	if !known {
		return fmt.Errorf("%d: %w", r.SID, control.ErrNoSuchSocket)
	}
	if l != nil {
		return l.Close()
	}
	if u != nil {
		if err := u.Close(); err != nil {
			return fmt.Errorf("socket %d: %w", r.SID, control.Reason(err))
		}
		return nil
	}
	c, err := n.conn(r.SID)
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("socket %d: %w", r.SID, control.Reason(err))
	}
	return nil
}

func (n *Node) setCongestion(r control.Congestion) (control.Socket, error) {
	c, err := n.conn(r.SID)
	if err != nil {
		return control.Socket{}, err
	}
	callErr := n.call(func(clock.Time) { err = c.tc.SetCongestion(r.Name) })
	if callErr != nil {
		return control.Socket{}, ControlError(callErr)
	}
	if err != nil {
		return control.Socket{}, fmt.Errorf("socket %d: %w: %w", r.SID, control.ErrUsage, err)
	}
	return n.socketInfo(r.SID)
}

// windows answers how much each end may still send. The loop's.
func (n *Node) windows(r control.Window) (control.Windows, error) {
	s, ok := n.stack.Socket(r.SID)
	if !ok {
		return control.Windows{}, fmt.Errorf("%d: %w", r.SID, control.ErrNoSuchSocket)
	}
	if s.Conn == nil {
		return control.Windows{}, fmt.Errorf("%d: %w", r.SID, control.ErrNotConnected)
	}
	info := n.stack.SocketInfo(r.SID, n.now())
	w := control.Windows{SID: r.SID}
	if info.Info != nil {
		w.Send, w.Receive = info.Info.SendWindow, info.Info.RecvWindow
	}
	return w, nil
}
