package stack

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Socket is a number for a listener, a connection or a UDP socket, as operators
// name them.
type Socket struct {
	Conn     *tcp.Conn     // nil unless it is a connection
	Listener *tcp.Listener // nil unless it is a listener
	UDP      *udp.Socket   // nil unless it is of UDP
	tuple    tcp.Tuple     // of a connection
	// TimeWait is when a connection that has closed frees the number; zero: it
	// is open. Conn is nil then, so that nothing holds its memory.
	TimeWait clock.Time
}

// Local returns the socket's own end.
func (k *Socket) Local() netip.AddrPort {
	switch {
	case k.Listener != nil:
		return k.Listener.Local()
	case k.UDP != nil:
		return k.UDP.Local()
	}
	return k.tuple.Local()
}

// Remote returns the peer's end, invalid where there is none.
func (k *Socket) Remote() netip.AddrPort {
	switch {
	case k.Listener != nil:
		return netip.AddrPort{}
	case k.UDP != nil:
		return k.UDP.Remote()
	}
	return k.tuple.Remote()
}

// sockets numbers sockets: the smallest free number first, as the family does.
type sockets struct {
	byID    []*Socket // nil: free
	free    int       // no number below is free
	waiting []int     // of those in TIME-WAIT, the oldest first
}

// ListenTCP is tcp.Host.Listen for an address that the node has, or for any of them
// if it is unspecified or invalid.
func (s *Stack) ListenTCP(local netip.AddrPort, backlog int) (*tcp.Listener, error) {
	if err := s.ours(local.Addr()); err != nil {
		return nil, err
	}
	return s.tcp.Listen(local, backlog)
}

// DialTCP is tcp.Host.ConnectFrom for an address that the node has, or the route's
// if it is unspecified or invalid, and a port that no listener has there, or 0.
func (s *Stack) DialTCP(now clock.Time, local, remote netip.AddrPort) (*tcp.Conn, error) {
	if err := s.ours(local.Addr()); err != nil {
		return nil, err
	}
	if l := local.Addr().Unmap(); l.Is4() && remote.Addr().Is4() {
		if err := s.inside(l.As4(), remote.Addr().As4()); err != nil {
			return nil, err
		}
	}
	if local.Port() != 0 && s.tcp.Listens(local) {
		return nil, fmt.Errorf("%v: %w", local, tcp.ErrPortInUse)
	}
	return s.tcp.ConnectFrom(now, local, remote)
}

// ours reports an address that a socket cannot have: one that is neither the node's
// nor left open.
func (s *Stack) ours(a netip.Addr) error {
	a = a.Unmap()
	if !a.IsValid() || a.IsUnspecified() {
		return nil
	}
	if a.Is4() && s.isHost(a.As4()) {
		return nil
	}
	return fmt.Errorf("%v: %w", a, ErrNotOurs)
}

// AddListener gives a listener a number, which it returns.
func (s *Stack) AddListener(l *tcp.Listener) int {
	return s.sockets.add(&Socket{Listener: l})
}

// AddConn gives a connection a number.
func (s *Stack) AddConn(c *tcp.Conn) int {
	return s.sockets.add(&Socket{Conn: c, tuple: c.Tuple()})
}

// AddUDP gives a UDP socket a number.
func (s *Stack) AddUDP(u *udp.Socket) int {
	return s.sockets.add(&Socket{UDP: u})
}

// RemoveSocket frees a number; one that is free already is left alone.
func (s *Stack) RemoveSocket(id int) {
	if _, ok := s.Socket(id); ok {
		s.sockets.byID[id] = nil
		s.sockets.free = min(s.sockets.free, id)
	}
}

// RetireSocket keeps the number of a connection in TIME-WAIT until then, for
// operators to see.
func (s *Stack) RetireSocket(id int, until clock.Time) {
	if k, ok := s.Socket(id); ok {
		k.Conn, k.TimeWait = nil, until
		s.sockets.waiting = append(s.sockets.waiting, id)
	}
}

// expireSockets frees the numbers of connections whose TIME-WAIT is over.
func (s *Stack) expireSockets(now clock.Time) {
	w := s.sockets.waiting
	for len(w) > 0 && s.sockets.byID[w[0]].TimeWait.Due(now) {
		s.RemoveSocket(w[0])
		w = w[1:]
	}
	s.sockets.waiting = w
}

// Socket returns the socket with that number.
func (s *Stack) Socket(id int) (*Socket, bool) {
	if id < 0 || id >= len(s.sockets.byID) || s.sockets.byID[id] == nil {
		return nil, false
	}
	return s.sockets.byID[id], true
}

func (t *sockets) add(s *Socket) int {
	id := t.free
	for id < len(t.byID) && t.byID[id] != nil {
		id++
	}
	for len(t.byID) <= id {
		t.byID = append(t.byID, nil)
	}
	t.free = id + 1
	t.byID[id] = s
	return id
}
