package tcp

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Connect is ConnectFrom with the local address left to the route.
func (h *Host) Connect(now clock.Time, remote netip.AddrPort, localPort uint16) (*Conn, error) {
	return h.ConnectFrom(now, netip.AddrPortFrom(netip.Addr{}, localPort), remote)
}

// ConnectFrom is the active OPEN of RFC 9293 §3.10.1. A local address that is
// unspecified is the route's, and a port of 0 is chosen by RFC 6056. The caller has
// made sure that the address is the host's own. The connection is usable once it
// raises Established; the user may fill Tx at once.
func (h *Host) ConnectFrom(now clock.Time, local, remote netip.AddrPort) (*Conn, error) {
	addr := remote.Addr().Unmap()
	if remote.Port() == 0 || addr.IsUnspecified() {
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrUnspecified)
	}
	if !addr.Is4() {
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrAddress)
	}
	if addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		// RFC 1122 §4.2.3.10: an OPEN to a broadcast or multicast address is an error.
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrNotHost)
	}
	if h.full() {
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrResources)
	}
	path := h.cfg.Route(addr.As4())
	switch {
	case path.Outlet < 0 && path.NotHost:
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrNotHost)
	case path.Outlet < 0:
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrUnreachable)
	}
	t := Tuple{
		LocalAddr: path.Local, RemoteAddr: addr.As4(),
		LocalPort: local.Port(), RemotePort: remote.Port(),
	}
	if from := local.Addr().Unmap(); from.Is4() && !from.IsUnspecified() {
		t.LocalAddr = from.As4()
	}
	t, err := h.claim(now, t)
	if err != nil {
		return nil, fmt.Errorf("tcp: connect %v from port %d: %w", remote, local.Port(), err)
	}
	c := h.newConn(now, t, path)
	if last := h.waits.find(t); last != nil {
		h.waits.remove(last)
		c.succeed(last)
	}
	c.flags |= flagActive
	c.setState(now, evOpen)
	h.insert(c)
	c.sendSYN(now)
	c.touch()
	return c, nil
}

// Listen is the passive OPEN. The address may be unspecified, which is every
// address, so that no other listener may have the port then. Backlog bounds
// the connections that wait for Accept; less than 1 means 1.
func (h *Host) Listen(local netip.AddrPort, backlog int) (*Listener, error) {
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	if !local.Addr().IsValid() {
		local = netip.AddrPortFrom(netip.IPv4Unspecified(), local.Port())
	}
	if !local.Addr().Is4() {
		return nil, fmt.Errorf("tcp: listen %v: %w", local, ErrAddress)
	}
	if local.Port() == 0 {
		t := Tuple{LocalAddr: local.Addr().As4()}
		port, ok := h.ports.next(t, func(t Tuple) bool { return !h.listens(t.Local()) })
		if !ok {
			return nil, fmt.Errorf("tcp: listen %v: %w", local, ErrNoPorts)
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	}
	if h.listens(local) {
		return nil, fmt.Errorf("tcp: listen %v: %w", local, ErrPortInUse)
	}
	l := &Listener{host: h, local: local, backlog: max(backlog, 1)}
	h.listeners[local] = l
	h.listening[local.Port()]++
	return l, nil
}

// newConn returns a connection in CLOSED with nothing agreed on.
func (h *Host) newConn(now clock.Time, t Tuple, p Path) *Conn {
	c := h.blank(now, t, p)
	c.snd.begin(h.sequence(now, t))
	c.stamps.offset = h.stampOffset(t)
	return c
}

// Wrote is SEND (§3.10.2): the user has written to Tx.
func (c *Conn) Wrote(clock.Time) { c.touch() }

// CloseWrite is Finish for a user who does not mind that it was closed before.
func (c *Conn) CloseWrite(now clock.Time) { _ = c.Finish(now) }

// Finish is CLOSE (§3.10.4): what is in Tx will be sent, then a FIN. The user
// may go on reading.
func (c *Conn) Finish(now clock.Time) error {
	switch {
	case c.snd.closed:
		return fmt.Errorf("tcp: close: %w", ErrClosing)
	case c.State() == StateClosed:
		return fmt.Errorf("tcp: close: %w", c.ended())
	}
	c.snd.closed = true
	if c.state.maySend() {
		c.setState(now, evClose)
	}
	// §3.10.4: in SYN-SENT and SYN-RECEIVED the CLOSE waits for ESTABLISHED.
	c.touch()
	return nil
}

// CloseRead says that the user will read no more. What still arrives is
// acknowledged and thrown away: the peer must not stall over it.
func (c *Conn) CloseRead(now clock.Time) {
	if c.rcv.closed {
		return
	}
	c.rcv.closed = true
	c.Consumed(now)
}

// Close lets go of the connection in both directions. If the user has not read
// everything, the peer is told so by a reset: RFC 2525 §2.17, RFC 1122
// §4.2.2.13.
func (c *Conn) Close(now clock.Time) {
	if c.has(flagOrphan) {
		return
	}
	unread := c.rcv.rx.Len() > 0 && !c.rcv.closed
	c.flags |= flagOrphan
	c.rcv.closed = true
	switch {
	case c.state == StateClosed || c.state == StateTimeWait:
	case c.state == StateSynSent:
		c.snd.closed = true
		c.setState(now, evDelete) // §3.10.4: delete the TCB
	case unread:
		c.Abort(now)
	default:
		c.CloseWrite(now)
		c.armFinWait2(now)
		c.touch()
	}
}

// Abort is ABORT (§3.10.5): the connection ends now, with a reset.
func (c *Conn) Abort(now clock.Time) {
	c.flags |= flagOrphan
	c.snd.closed = true
	c.rcv.closed = true
	switch c.state {
	case StateClosed, StateTimeWait, StateListen:
		return
	case StateSynSent:
	default:
		c.sendReset()
	}
	c.fail(now, ErrAborted)
}

// Forsake ends the connection with a reset and an error that the host gives, for a reason of its
// own. The user has not let go of it.
func (c *Conn) Forsake(now clock.Time, why error) {
	switch c.state {
	case StateClosed, StateTimeWait, StateListen:
		return
	case StateSynSent:
	default:
		c.sendReset()
	}
	c.fail(now, why)
}

// sendReset queues the reset of a connection in a synchronized state.
func (c *Conn) sendReset() {
	if c.host.cfg.NoResets {
		return
	}
	r := reply{c.tuple, Header{Seq: uint32(c.snd.nxt), Ack: uint32(c.rcv.nxt), Flags: RST | ACK}}
	if c.has(flagStamps) {
		c.stamps.put(c.host.now, &r.header.Options) // RFC 7323 §3.2: SHOULD
	}
	c.host.replies.push(c.host, r)
}
