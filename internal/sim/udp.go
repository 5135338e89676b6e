package sim

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// DatagramApp is the application that uses a UDP socket.
type DatagramApp interface {
	// The host calls Turn when the application gets the socket, when datagrams or an ICMP error
	// have arrived, at the time of Wake, and when the host has room again after Roomy or Send
	// reported that it had none. Turn must read all datagrams or call Wake, because the host does
	// not call it again for unread datagrams.
	Turn(now clock.Time, s *Socket)
}

// Socket is an application's UDP socket.
type Socket struct {
	actor // alarm of the application
	host  *Host
	udp   *udp.Socket
	app   DatagramApp
	waits bool // the socket is in the host's list of waiting sockets
}

// BindUDP gives an application a UDP socket that receives from all senders on a port. Port 0 stands
// for a free port.
func (h *Host) BindUDP(port uint16, app DatagramApp) (*Socket, error) {
	u, err := h.stack.Datagrams().Bind(netip.AddrPortFrom(netip.IPv6Unspecified(), port))
	return h.newSocket(u, app, err)
}

// DialUDP gives an application a UDP socket that is connected to a peer: it receives only from the
// peer, and ICMP errors about its datagrams.
func (h *Host) DialUDP(to netip.AddrPort, app DatagramApp) (*Socket, error) {
	u, err := h.stack.Datagrams().Dial(netip.AddrPort{}, to)
	return h.newSocket(u, app, err)
}

func (h *Host) newSocket(u *udp.Socket, app DatagramApp, err error) (*Socket, error) {
	if err != nil {
		return nil, fmt.Errorf("sim: host %s: %w", h.name, err)
	}
	s := &Socket{host: h, udp: u, app: app}
	s.acts = s
	u.Owner = s
	app.Turn(h.world.now, s)
	h.settle(h.world.now)
	return s, nil
}

func (s *Socket) act(now clock.Time) {
	s.app.Turn(now, s)
	s.host.settle(now)
}

// UDP returns the protocol engine's socket.
func (s *Socket) UDP() *udp.Socket { return s.udp }

// Host returns the host of the socket.
func (s *Socket) Host() *Host { return s.host }

// SetReceiveBuffer sets the size of the socket's receive queue, as SO_RCVBUF does. A datagram
// counts as at least 256 bytes, and is dropped if it does not fit. The default is in the host's
// Config.
func (s *Socket) SetReceiveBuffer(bytes int) { s.udp.Rx().Resize(bytes) }

// Receive copies the oldest datagram to p. It returns false if there is no datagram.
func (s *Socket) Receive(p []byte) (udp.Received, bool) { return udp.Dequeue(s.udp.Rx(), p) }

// Roomy reports whether the host accepts more datagrams now. If not, it calls Turn later.
func (s *Socket) Roomy() bool {
	if s.host.stack.Datagrams().HasRoom() {
		return true
	}
	s.wait()
	return false
}

// Send sends a datagram; an invalid address means the peer of DialUDP. If too many packets of the
// host still wait for its links, Send returns stack.ErrQueueFull, and the host calls Turn when
// there is room. Other errors are those of stack.Datagrams.Send.
func (s *Socket) Send(to netip.AddrPort, b []byte) error {
	err := s.host.stack.Datagrams().Send(s.host.world.now, s.udp, to, b)
	if errors.Is(err, stack.ErrQueueFull) {
		s.wait()
	}
	return err
}

// Wake sets the socket's only alarm, which calls the application's Turn. clock.Never cancels it.
func (s *Socket) Wake(at clock.Time) {
	if at != clock.Never {
		at = max(at, s.host.world.now)
	}
	s.host.world.eventQueue.set(&s.actor, at)
}

// wait makes the host call the application when it has room.
func (s *Socket) wait() {
	if !s.waits {
		s.waits = true
		s.host.waiting = append(s.host.waiting, s)
	}
}

// notifySockets notifies the applications of UDP sockets that have received datagrams or have room
// again, and reports whether there were any.
func (h *Host) notifySockets(now clock.Time) bool {
	notified := false
	for u, ok := h.stack.UDP().Next(); ok; u, ok = h.stack.UDP().Next() {
		if s, ok := u.Owner.(*Socket); ok {
			notified = true
			s.app.Turn(now, s)
		}
	}
	for len(h.waiting) > 0 && h.stack.Datagrams().HasRoom() {
		s := h.waiting[0]
		h.waiting = h.waiting[:copy(h.waiting, h.waiting[1:])]
		s.waits = false
		notified = true
		s.app.Turn(now, s)
	}
	return notified
}
