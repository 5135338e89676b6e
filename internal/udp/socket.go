package udp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Socket is one end that sends and receives datagrams. Only its host's owner may use it. As an
// exception, the program may consume from Rx.
type Socket struct {
	// Owner belongs to the host's owner. This package does not use it.
	Owner any
	// Receive, if set, is called with each datagram. The payload is valid during the call and is
	// not queued, because a transport over UDP has its own queues.
	Receive func(from netip.AddrPort, payload []byte)

	host   *Host
	local  netip.AddrPort // local address; 0.0.0.0 or :: stand for all of the host's addresses
	dual   bool           // :: stands for both families
	remote netip.AddrPort // peer; invalid: not connected
	rx     *buffer.Ring
	err    error // last ICMP error, for TakeError
	closed bool
	// admitted is set if Host.Admit opened the socket. Its local address may then belong to another
	// host.
	admitted bool
	opts     Options
	path     pathMTU
	groups   []membership // memberships, at most MaxGroups

	notified bool // the socket waits for Next
	info     Info
}

// Options are the options of sent datagrams. The zero Options are the defaults of a host.
type Options struct {
	// TTL is for unicast and broadcast datagrams; 0: 64.
	TTL uint8
	// MulticastTTL is for multicast datagrams; 0: 1, which keeps them on the link (RFC 1112 §6.1).
	MulticastTTL uint8
	// TOS is the IP header's type of service.
	TOS uint8
	// DontFragment forbids fragmentation: the node refuses datagrams above the path MTU, or a
	// router reports them (RFC 1191 §3).
	DontFragment bool
	// Broadcast permits broadcast datagrams.
	Broadcast bool
	// NoLoop excludes members on this node from multicast datagrams.
	NoLoop bool
	// Outlet is the outgoing interface of multicast and limited broadcast datagrams, counted from
	// 1; 0: the interface of the socket's address, or of the route, or the first.
	Outlet int
	// Source is one of the node's addresses; invalid: the socket's address, or the route's.
	Source netip.Addr
}

// Options returns the socket's options.
func (s *Socket) Options() Options { return s.opts }

// SetOptions sets the socket's options.
func (s *Socket) SetOptions(o Options) { s.opts = o }

// Info is a socket's counters.
type Info struct {
	Received, ReceivedBytes uint64
	// Dropped counts datagrams for which the receive buffer was full.
	Dropped uint64
	// Errors counts ICMP errors.
	Errors uint64
}

// Local returns the bound address and port.
func (s *Socket) Local() netip.AddrPort { return s.local }

// Remote returns the peer. It is invalid if the socket is not connected.
func (s *Socket) Remote() netip.AddrPort { return s.remote }

// Admitted reports whether Host.Admit opened the socket: its local address is the address that the
// peer sent to, and it stays connected to that peer.
func (s *Socket) Admitted() bool { return s.admitted }

// Rx returns the ring of received datagrams, for Dequeue.
func (s *Socket) Rx() *buffer.Ring { return s.rx }

// Info returns the socket's counters.
func (s *Socket) Info() Info { return s.info }

// Reaches reports whether the socket can send to an address of this IP version.
func (s *Socket) Reaches(a netip.Addr) bool { return s.dual || a.Is4() == s.local.Addr().Is4() }

// Connect limits the socket to one peer. An invalid remote undoes this. Datagrams that were
// received before can still be read.
func (s *Socket) Connect(remote netip.AddrPort) error {
	if s.admitted || remote.IsValid() && (remote.Addr().IsUnspecified() || remote.Port() == 0 ||
		!s.Reaches(remote.Addr())) {
		return fmt.Errorf("%v: %w", remote, ErrAddress)
	}
	s.remote, s.err, s.path = remote, nil, pathMTU{}
	return nil
}

// TakeError returns the last ICMP error and forgets it.
func (s *Socket) TakeError() error {
	err := s.err
	s.err = nil
	return err
}

// Close unbinds the socket. Received datagrams can still be read.
func (s *Socket) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.admitted {
		delete(s.host.catch.admitted, Flow{s.local, s.remote})
		return
	}
	for _, at := range s.places() {
		delete(s.host.sockets, at)
		if s.host.ports[anywhere(at)]--; s.host.ports[anywhere(at)] == 0 {
			delete(s.host.ports, anywhere(at))
		}
	}
	for _, m := range s.groups {
		s.host.leave(m)
	}
	s.groups = nil
}

// places returns the keys of the socket in Host.sockets.
func (s *Socket) places() []netip.AddrPort {
	if s.dual {
		any4 := netip.AddrPortFrom(netip.IPv4Unspecified(), s.local.Port())
		return []netip.AddrPort{any4, s.local}
	}
	return []netip.AddrPort{s.local}
}

// accepts reports whether the socket accepts datagrams from this address.
func (s *Socket) accepts(from netip.AddrPort) bool {
	return !s.remote.IsValid() || s.remote == from
}

// member reports whether the socket has joined a group on an interface's link.
func (s *Socket) member(iface int, group netip.Addr) bool {
	return slices.Contains(s.groups, membership{iface, group})
}

// deliver queues a datagram. It returns false if the queue is full.
func (s *Socket) deliver(from netip.AddrPort, a *Arrival, payload []byte) bool {
	if s.Receive == nil && !enqueue(s.rx, from, a, payload) {
		s.info.Dropped++
		return false
	}
	s.info.Received++
	s.info.ReceivedBytes += uint64(len(payload))
	if s.Receive != nil {
		s.Receive(from, payload)
		return true
	}
	s.host.notify(s)
	return true
}

// fail records an ICMP error. A nil error is only counted.
func (s *Socket) fail(err error) {
	s.info.Errors++
	if err != nil {
		s.err = err
		s.host.notify(s)
	}
}
