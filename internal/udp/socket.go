package udp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Socket is one end that datagrams are sent from and received at. Its host's
// owner owns it, but for the consumer's side of Rx.
type Socket struct {
	// Owner is whatever the host's owner keeps with it.
	Owner any
	// Hear, if it is set, is called with each datagram, which is lent for the call and not
	// queued: a transport over UDP has queues of its own.
	Hear func(from netip.AddrPort, payload []byte)

	host   *Host
	local  netip.AddrPort // the address is 0.0.0.0 where it takes all of the host's
	remote netip.AddrPort // invalid: not connected
	rx     *buffer.Ring
	err    error // what ICMP reported, until it is taken
	closed bool
	// The socket is one of Host.Admit, and its local address perhaps somebody else's.
	admitted bool
	opts     Options
	path     pathMTU
	groups   []membership // MaxGroups at most

	told bool // in the host's list of sockets with news
	info Info
}

// Options say how a socket's datagrams leave. The zero Options are a host's defaults.
type Options struct {
	// TTL is of datagrams to one host or to all on a link; 0: 64.
	TTL uint8
	// MulticastTTL is of datagrams to a group; 0: 1, which keeps them on the link
	// (RFC 1112 §6.1).
	MulticastTTL uint8
	// TOS is the IP header's type of service.
	TOS uint8
	// DontFragment has what does not fit the way refused, or reported by whoever cannot
	// pass it on, in place of cut into fragments (RFC 1191 §3).
	DontFragment bool
	// Broadcast permits datagrams to all on a link.
	Broadcast bool
	// NoLoop keeps what is sent to a group from the members on the node itself.
	NoLoop bool
	// Outlet is the interface that datagrams to groups, and to all on a link that no
	// address names, leave by, counted from 1; 0: the one of the socket's address, or of
	// the route there, or the first.
	Outlet int
}

// Options returns how the socket's datagrams leave.
func (s *Socket) Options() Options { return s.opts }

// SetOptions says how the socket's datagrams leave.
func (s *Socket) SetOptions(o Options) { s.opts = o }

// Info counts what a socket has seen.
type Info struct {
	Received, ReceivedBytes uint64
	// Dropped counts datagrams that the receive buffer had no room for.
	Dropped uint64
	// Errors counts what ICMP reported.
	Errors uint64
}

// Local returns the address and port that the socket is bound to.
func (s *Socket) Local() netip.AddrPort { return s.local }

// Remote returns the peer; invalid: the socket is not connected.
func (s *Socket) Remote() netip.AddrPort { return s.remote }

// Admitted reports whether Host.Admit opened the socket: its local address is whatever
// the peer wanted to reach, and it stays connected to that peer.
func (s *Socket) Admitted() bool { return s.admitted }

// Rx returns what was received and not yet read: records for Dequeue.
func (s *Socket) Rx() *buffer.Ring { return s.rx }

// Info returns the socket's counts.
func (s *Socket) Info() Info { return s.info }

// Connect has the socket send to remote and receive from there alone; an invalid
// remote undoes it. What was received before stays.
func (s *Socket) Connect(remote netip.AddrPort) error {
	if s.admitted || remote.IsValid() && (!remote.Addr().Is4() || remote.Addr().IsUnspecified() ||
		remote.Port() == 0) {
		return fmt.Errorf("%v: %w", remote, ErrAddress)
	}
	s.remote, s.err, s.path = remote, nil, pathMTU{}
	return nil
}

// TakeError returns what ICMP reported since the last call, once.
func (s *Socket) TakeError() error {
	err := s.err
	s.err = nil
	return err
}

// Close unbinds the socket. What was received can still be read.
func (s *Socket) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.admitted {
		delete(s.host.catch.admitted, Flow{s.local, s.remote})
		return
	}
	delete(s.host.sockets, s.local)
	s.host.release(s.local.Port())
	for _, m := range s.groups {
		s.host.leave(m)
	}
	s.groups = nil
}

// hears reports whether a datagram from there is for this socket.
func (s *Socket) hears(from netip.AddrPort) bool {
	return !s.remote.IsValid() || s.remote == from
}

// member reports whether the socket has joined a group on an interface's link.
func (s *Socket) member(iface int, group Addr) bool {
	return slices.Contains(s.groups, membership{iface, group})
}

// deliver queues a datagram; false: there was no room.
func (s *Socket) deliver(from netip.AddrPort, a *Arrival, payload []byte) bool {
	if s.Hear == nil && !enqueue(s.rx, from, a, payload) {
		s.info.Dropped++
		return false
	}
	s.info.Received++
	s.info.ReceivedBytes += uint64(len(payload))
	if s.Hear != nil {
		s.Hear(from, payload)
		return true
	}
	s.host.tell(s)
	return true
}

// fail notes what ICMP reported; nil is only counted.
func (s *Socket) fail(err error) {
	s.info.Errors++
	if err != nil {
		s.err = err
		s.host.tell(s)
	}
}
