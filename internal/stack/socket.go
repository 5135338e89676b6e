package stack

import (
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Socket is a numbered listener, connection or UDP socket.
type Socket struct {
	Conn     *tcp.Conn     // the connection; nil if the socket is not one
	Listener *tcp.Listener // the listener; nil if the socket is not one
	UDP      *udp.Socket   // the UDP socket; nil if the socket is not one
	closed   *tcp.Tuple    // addresses and ports of a closed connection
	// TimeWait is when a closed connection frees the number. Zero means that it is not closed. In
	// TIME-WAIT Conn is nil, so that its memory can be freed.
	TimeWait clock.Time
}

// Local returns the local address and port.
func (k *Socket) Local() netip.AddrPort {
	switch {
	case k.Listener != nil:
		return k.Listener.Local()
	case k.UDP != nil:
		return k.UDP.Local()
	}
	return k.tuple().Local()
}

// Remote returns the peer's address and port, invalid if there is no peer.
func (k *Socket) Remote() netip.AddrPort {
	switch {
	case k.Listener != nil:
		return netip.AddrPort{}
	case k.UDP != nil:
		return k.UDP.Remote()
	}
	return k.tuple().Remote()
}

func (k *Socket) tuple() tcp.Tuple {
	if k.closed != nil {
		return *k.closed
	}
	return k.Conn.Tuple()
}

// Sockets assigns numbers to sockets: the smallest free one, as in the courses' nodes.
type Sockets struct {
	tcp     *tcp.Host
	byID    []*Socket // sockets by number; nil: the number is free
	free    int       // all numbers below this one are in use
	waiting []int     // numbers in TIME-WAIT, the oldest first
}

// AddListener gives a listener a number, and returns it.
func (ss *Sockets) AddListener(l *tcp.Listener) int {
	return ss.add(&Socket{Listener: l})
}

// AddConn gives a connection a number, and returns it.
func (ss *Sockets) AddConn(c *tcp.Conn) int {
	return ss.add(&Socket{Conn: c})
}

// AddUDP gives a UDP socket a number, and returns it.
func (ss *Sockets) AddUDP(u *udp.Socket) int {
	return ss.add(&Socket{UDP: u})
}

// Remove frees a number. It does nothing if the number is free.
func (ss *Sockets) Remove(id int) {
	if _, ok := ss.Get(id); ok {
		ss.byID[id] = nil
		ss.free = min(ss.free, id)
	}
}

// Retire keeps the number of a connection in TIME-WAIT until the given time, so that operators see
// it.
func (ss *Sockets) Retire(id int, until clock.Time) {
	if k, ok := ss.Get(id); ok {
		t := k.Conn.Tuple()
		k.Conn, k.closed, k.TimeWait = nil, &t, until
		ss.waiting = append(ss.waiting, id)
	}
}

// expire frees the numbers of connections whose TIME-WAIT has ended.
func (ss *Sockets) expire(now clock.Time) {
	w := ss.waiting
	for len(w) > 0 && ss.byID[w[0]].TimeWait.Due(now) {
		ss.Remove(w[0])
		w = w[1:]
	}
	ss.waiting = w
}

// Get returns the socket with that number.
func (ss *Sockets) Get(id int) (*Socket, bool) {
	if id < 0 || id >= len(ss.byID) || ss.byID[id] == nil {
		return nil, false
	}
	return ss.byID[id], true
}

func (ss *Sockets) add(s *Socket) int {
	id := ss.free
	for id < len(ss.byID) && ss.byID[id] != nil {
		id++
	}
	for len(ss.byID) <= id {
		ss.byID = append(ss.byID, nil)
	}
	ss.free = id + 1
	ss.byID[id] = s
	return id
}

// Infos returns all sockets in the order of their numbers, and after them the connections in
// SYN-RECEIVED, which have no number. If info is set, connections include their TCP state.
func (ss *Sockets) Infos(info bool, now clock.Time) []control.Socket {
	ss.expire(now)
	list := []control.Socket{}
	for id, k := range ss.byID {
		if k != nil {
			list = append(list, k.info(id, info, now))
		}
	}
	for c := range ss.tcp.HalfOpen() {
		t := c.Tuple()
		k := control.Socket{SID: -1, Local: t.Local(), Remote: t.Remote()}
		DescribeConn(&k, c, info, now)
		list = append(list, k)
	}
	return list
}

// Info returns one socket with its TCP state. If there is none, only the number is set.
func (ss *Sockets) Info(id int, now clock.Time) control.Socket {
	k, ok := ss.Get(id)
	if !ok {
		return control.Socket{SID: id}
	}
	return k.info(id, true, now)
}

// Find returns the number of the connection between these addresses and ports, or -1.
func (ss *Sockets) Find(local, remote netip.AddrPort) int {
	for id, k := range ss.byID {
		if k != nil && k.Local() == local && k.Remote() == remote {
			return id
		}
	}
	return -1
}

func (k *Socket) info(id int, info bool, now clock.Time) control.Socket {
	c := control.Socket{SID: id, Local: k.Local(), Remote: k.Remote()}
	if k.Listener != nil {
		c.Remote = unspecifiedPeer(c.Local)
		c.State = StateName(tcp.StateListen)
		c.RecvQ, c.SendQ = k.Listener.Queued(), k.Listener.Backlog()
		return c
	}
	if k.UDP != nil {
		return udpInfo(c, k.UDP)
	}
	if k.Conn == nil {
		c.State = StateName(tcp.StateTimeWait)
		c.Timer = &control.Timer{Name: "timewait", In: k.TimeWait.Sub(now)}
		return c
	}
	DescribeConn(&c, k.Conn, info, now)
	return c
}

// DescribeConn fills in s from a connection, with its TCP state if info is set.
func DescribeConn(s *control.Socket, c *tcp.Conn, info bool, now clock.Time) {
	s.State = StateName(c.State())
	s.RecvQ, s.SendQ = c.Rx().Len(), c.Tx().Len()
	if p, ok := c.Pending(); ok {
		s.Timer = &control.Timer{Name: p.Name, In: max(0, p.At.Sub(now)), Retries: p.Retries}
	}
	if info {
		s.Info = new(c.InfoAt(now).Info)
	}
}

// StateName returns the RFC's name of a state with underscores.
func StateName(s tcp.State) string { return strings.ReplaceAll(s.String(), "-", "_") }
