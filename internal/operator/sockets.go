package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func (h *Requests) handleSockets() {
	control.Handle(h.Handlers, h.sockets)
	look(h, windows)
	look(h, tcpCounters)
	look(h, func(_ *stack.Stack, _ clock.Time, _ control.RCPSockets) ([]control.RCPSocket, error) {
		return h.node.RCP.Sockets(), nil
	})
	order(h, func(_ *stack.Stack, _ clock.Time, r control.RCPClose) error {
		return h.node.RCP.Close(r.Port)
	})
	look(h, setCongestion)
	control.Handle(h.Handlers, h.listen)
	control.Handle(h.Handlers, h.connect)
	control.Handle(h.Handlers, h.write)
	control.Handle(h.Handlers, h.read)
	control.HandleOrder(h.Handlers, h.shutdown)
	control.HandleOrder(h.Handlers, h.close)
}

// sockets lists the node's sockets, and then the sockets of the programs that run as this host.
func (h *Requests) sockets(
	_ context.Context, r control.Sockets,
) (list []control.Socket, err error) {
	err = h.node.Ask(func(s *stack.Stack, now clock.Time) error {
		list = s.Sockets().Infos(r.Info, now)
		return nil
	})
	if err != nil {
		return nil, err
	}
	more, err := h.programs.sockets()
	list = append(list, more...)
	for i := range list {
		if !r.Timers {
			list[i].Timer = nil
		}
		if !r.Info {
			list[i].Info = nil
		}
	}
	return list, err
}

// listen opens a listener that accepts all connections.
func (h *Requests) listen(_ context.Context, r control.Listen) (control.Socket, error) {
	on := h.node.AllAddrs(r.Port)
	l, err := h.node.TCP.ListenWith(on, node.ListenOptions{Announce: true})
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
	return l.Socket()
}

func (h *Requests) connect(ctx context.Context, r control.Connect) (control.Socket, error) {
	c, err := node.ConnectBy(ctx, h.node.TCP.Dial, r.Addr, r.Port)
	if err != nil {
		return control.Socket{}, err
	}
	// The connection may have ended since the handshake.
	if err := c.AnnounceEnd(); err != nil {
		return control.Socket{}, err
	}
	return node.SocketInfo(h.node, c.SID())
}

// lookup returns the application's connection with that number. If the socket is of another kind,
// the error says so. Loop only.
func lookup(s *stack.Stack, sid int) (*node.Conn, error) {
	known, ok := s.Sockets().Get(sid)
	if !ok {
		return nil, notOurs(sid)
	}
	if known.TimeWait != clock.Never {
		return nil, fmt.Errorf("%d is in TIME_WAIT: %w", sid, control.ErrClosed)
	}
	if known.Conn != nil {
		if c, ok := known.Conn.Owner.(*node.Conn); ok {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%d: %w", sid, control.ErrNotConnected)
}

// conn is like lookup, for callers outside the loop.
func (h *Requests) conn(sid int) (c *node.Conn, err error) {
	err = h.node.Ask(func(s *stack.Stack, _ clock.Time) (err error) {
		c, err = lookup(s, sid)
		return err
	})
	return c, err
}

// untilDone ends a blocking call on a connection when ctx ends.
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

func (h *Requests) write(ctx context.Context, r control.Write) (control.Written, error) {
	if t := h.udpSockets.of(r.SID); t != nil {
		k, err := t.write(ctx, r.Data)
		return control.Written{Bytes: k}, err
	}
	c, err := h.conn(r.SID)
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

// maxRead limits a Read request, and so the memory of its answer.
const maxRead = 64 << 20

func (h *Requests) read(ctx context.Context, r control.Read) (control.Data, error) {
	if r.N < 0 || r.N > maxRead {
		return control.Data{}, fmt.Errorf("read of %d bytes: %w: must be 0 to %d",
			r.N, control.ErrUsage, maxRead)
	}
	c, err := h.conn(r.SID)
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

func (h *Requests) shutdown(_ context.Context, r control.Shutdown) error {
	c, err := h.conn(r.SID)
	if err != nil {
		return err
	}
	switch r.How {
	case control.ShutdownRead:
		err = c.CloseRead()
	case control.ShutdownWrite:
		err = c.CloseWrite()
	case control.ShutdownBoth:
		err = cmp.Or(c.CloseWrite(), c.CloseRead())
	default:
		return fmt.Errorf("shutdown %q: %w: must be read, write or both", r.How, control.ErrUsage)
	}
	if err != nil {
		return fmt.Errorf("socket %d: %w", r.SID, control.Reason(err))
	}
	return nil
}

func (h *Requests) close(_ context.Context, r control.Close) error {
	var socket interface{ Close() error }
	err := h.node.Ask(func(s *stack.Stack, _ clock.Time) (err error) {
		known, ok := s.Sockets().Get(r.SID)
		if !ok {
			return notOurs(r.SID)
		}
		if l := h.node.TCP.ListenerOf(known.Listener); l != nil {
			socket = l
			return nil
		}
		if known.UDP != nil {
			if u, ok := known.UDP.Owner.(*node.PacketConn); ok {
				socket = u
				delete(h.udpSockets.list, u)
				return nil
			}
		}
		socket, err = lookup(s, r.SID)
		return err
	})
	if err != nil {
		return err
	}
	if err := socket.Close(); err != nil {
		return fmt.Errorf("socket %d: %w", r.SID, control.Reason(err))
	}
	return nil
}

func setCongestion(s *stack.Stack, now clock.Time, r control.Congestion) (control.Socket, error) {
	if _, err := lookup(s, r.SID); err != nil {
		return control.Socket{}, err
	}
	known, _ := s.Sockets().Get(r.SID)
	o := known.Conn.Sockopts()
	o.Congestion = r.Name
	if err := known.Conn.SetSockopts(now, o); err != nil {
		return control.Socket{}, fmt.Errorf("socket %d: %w: %w", r.SID, control.ErrUsage, err)
	}
	return s.Sockets().Info(r.SID, now), nil
}

// windows returns both windows of a connection. Loop only.
func windows(s *stack.Stack, now clock.Time, r control.Window) (control.Windows, error) {
	known, ok := s.Sockets().Get(r.SID)
	if !ok {
		return control.Windows{}, notOurs(r.SID)
	}
	if known.Conn == nil {
		return control.Windows{}, fmt.Errorf("%d: %w", r.SID, control.ErrNotConnected)
	}
	info := s.Sockets().Info(r.SID, now)
	w := control.Windows{SID: r.SID}
	if info.Info != nil {
		w.Send, w.Receive = info.Info.SndWnd, info.Info.RcvWnd
	}
	return w, nil
}

func tcpCounters(s *stack.Stack, _ clock.Time, _ control.TCPCounters) (control.TCPCounted, error) {
	host := s.TCP()
	c, drops := host.Counters(), host.Drops()
	a := control.TCPCounted{
		SegmentsIn: c.SegmentsIn, SegmentsOut: c.SegmentsOut, Retransmits: c.Retransmits,
		Timeouts: c.Timeouts, Opened: c.Opened, Refused: c.Refused,
		ChallengeAcks: c.ChallengeAcks, CookiesSent: c.CookiesSent,
		CookiesAccepted: c.CookiesAccepted, CookiesFailed: c.CookiesFailed,
		Drops: []control.Drop{},
	}
	for conn := range host.Conns() {
		_, ours := conn.Owner.(*node.Conn)
		st := conn.State()
		if ours && (st == tcp.StateEstablished || st == tcp.StateCloseWait) {
			a.Established++
		}
	}
	for reason, count := range drops {
		if count > 0 {
			a.Drops = append(a.Drops, control.Drop{
				Reason: tcp.Drop(reason).String(), Packets: count,
			})
		}
	}
	return a, nil
}
