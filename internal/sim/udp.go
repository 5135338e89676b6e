package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// DatagramApp is an application: what a UDP socket belongs to.
type DatagramApp interface {
	// Turn lets it act on s: when it gets the socket, when datagrams or a report of ICMP's
	// have come, when it was to be woken, and when the host has room again after Roomy or
	// Send said that it had none. It reads all there is, or has itself woken: what it leaves
	// is not told again.
	Turn(now clock.Time, s *Socket)
}

// Socket is an application's UDP socket.
type Socket struct {
	actor  // the application's alarm
	host   *Host
	udp    *udp.Socket
	app    DatagramApp
	waits  bool // among the host's crowded
	closed bool
}

// BindUDP gives an application a UDP socket that hears everybody on a port; 0: one that is
// free.
func (h *Host) BindUDP(port uint16, app DatagramApp) (*Socket, error) {
	u, err := h.stack.Datagrams().Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), port))
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

// act is the alarm going off.
func (s *Socket) act(now clock.Time) {
	s.app.Turn(now, s)
	s.host.settle(now)
}

// UDP returns the socket itself.
func (s *Socket) UDP() *udp.Socket { return s.udp }

// Host returns the host that the socket is on.
func (s *Socket) Host() *Host { return s.host }

// Local returns the socket's address and port. The address is 0.0.0.0 after BindUDP.
func (s *Socket) Local() netip.AddrPort { return s.udp.Local() }

// Rand returns a random stream of its own for whatever name says.
func (s *Socket) Rand(name string) *rand.Rand {
	return s.host.world.Rand(s.host.name + " " + name)
}

// SetReceiveBuffer has the socket queue so many bytes for the application, as SO_RCVBUF
// does. A datagram takes at least 256 of them, and one that finds no room is dropped.
// Without it the host's Config has its say.
func (s *Socket) SetReceiveBuffer(bytes int) { s.udp.Rx().Resize(bytes) }

// Receive copies the oldest datagram to p; false if there is no datagram.
func (s *Socket) Receive(p []byte) (udp.Received, bool) { return udp.Dequeue(s.udp.Rx(), p) }

// Roomy reports whether the host takes more datagrams now. If not, the application gets a
// turn when it does.
func (s *Socket) Roomy() bool {
	if s.host.stack.Datagrams().Roomy() {
		return true
	}
	s.wait()
	return false
}

// Send sends a datagram; an invalid address means the peer of DialUDP. While the host
// holds too much that its wires have not taken, it fails with stack.ErrQueueFull, and the
// application gets a turn when there is room. Other errors are those of stack.SendUDP.
func (s *Socket) Send(to netip.AddrPort, b []byte) error {
	err := s.host.stack.Datagrams().Send(s.host.world.now, s.udp, to, b)
	if errors.Is(err, stack.ErrQueueFull) {
		s.wait()
	}
	return err
}

// Wake calls the application at a time, or cancels that if it is never. A socket has one alarm.
func (s *Socket) Wake(at clock.Time) {
	if s.closed {
		return
	}
	if at != clock.Never {
		at = max(at, s.host.world.now)
	}
	s.host.world.agenda.set(&s.actor, at)
}

// Close gives the port back. The application gets no turn any more.
func (s *Socket) Close() {
	s.Wake(clock.Never)
	s.closed = true
	s.udp.Close()
}

// wait calls the application when the host has room.
func (s *Socket) wait() {
	if !s.waits && !s.closed {
		s.waits = true
		s.host.crowded = append(s.host.crowded, s)
	}
}

// tellSockets passes on what UDP's sockets have received, and that there is room again,
// and reports whether there was anything to tell.
func (h *Host) tellSockets(now clock.Time) bool {
	told := false
	for u, ok := h.stack.UDP().Next(); ok; u, ok = h.stack.UDP().Next() {
		if s, ok := u.Owner.(*Socket); ok && !s.closed {
			told = true
			s.app.Turn(now, s)
		}
	}
	for len(h.crowded) > 0 && h.stack.Datagrams().Roomy() {
		s := h.crowded[0]
		h.crowded = h.crowded[:copy(h.crowded, h.crowded[1:])]
		s.waits = false
		if !s.closed {
			told = true
			s.app.Turn(now, s)
		}
	}
	return told
}
