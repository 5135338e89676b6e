package udp

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Socket is one end that datagrams are sent from and received at. Its host's
// owner owns it, but for the consumer's side of Rx.
type Socket struct {
	// Owner is whatever the host's owner keeps with it.
	Owner any

	host   *Host
	local  netip.AddrPort // the address is 0.0.0.0 where it takes all of the host's
	remote netip.AddrPort // invalid: not connected
	rx     *buffer.Ring
	err    error // what ICMP reported, until it is taken
	closed bool

	told bool // in the host's list of sockets with news
	info Info
}

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

// Rx returns what was received and not yet read: records for Dequeue.
func (s *Socket) Rx() *buffer.Ring { return s.rx }

// Info returns the socket's counts.
func (s *Socket) Info() Info { return s.info }

// Connect has the socket send to remote and receive from there alone; an invalid
// remote undoes it. What was received before stays.
func (s *Socket) Connect(remote netip.AddrPort) error {
	if remote.IsValid() && (!remote.Addr().Is4() || remote.Addr().IsUnspecified() ||
		remote.Port() == 0) {
		return fmt.Errorf("%v: %w", remote, ErrAddress)
	}
	s.remote, s.err = remote, nil
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
	delete(s.host.sockets, s.local)
	s.host.release(s.local.Port())
}

// hears reports whether a datagram from there is for this socket.
func (s *Socket) hears(from netip.AddrPort) bool {
	return !s.remote.IsValid() || s.remote == from
}

// deliver queues a datagram; false: there was no room.
func (s *Socket) deliver(from netip.AddrPort, to Addr, payload []byte) bool {
	if !enqueue(s.rx, from, to, payload) {
		s.info.Dropped++
		return false
	}
	s.info.Received++
	s.info.ReceivedBytes += uint64(len(payload))
	s.host.tell(s)
	return true
}

// fail notes what ICMP reported.
func (s *Socket) fail(err error) {
	s.err = err
	s.info.Errors++
	s.host.tell(s)
}
