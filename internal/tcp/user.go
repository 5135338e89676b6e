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

// ConnectFrom is the active OPEN of RFC 9293 §3.10.1. A local address that is unspecified is the
// route's, and a port of 0 is chosen by RFC 6056. The caller has made sure that the address is the
// host's own. The connection is usable once it raises Established; the user may fill Tx at once.
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
	if last := h.waits.byTuple[t]; last != nil {
		h.waits.remove(last)
		c.snd.succeed(last)
	}
	c.hs.flags |= flagActive
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
		port, ok := h.ports.next(t, func(t Tuple) bool { return !h.Listens(t.Local()) })
		if !ok {
			return nil, fmt.Errorf("tcp: listen %v: %w", local, ErrNoPorts)
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	}
	if h.Listens(local) {
		return nil, fmt.Errorf("tcp: listen %v: %w", local, ErrPortInUse)
	}
	l := &Listener{host: h, local: local, backlog: max(backlog, 1)}
	h.listeners.add(l)
	return l, nil
}

// claim completes the tuple of an active OPEN, with the port that the user named or with one of RFC
// 6056. A port whose last connection is in TIME-WAIT is the last resort.
func (h *Host) claim(now clock.Time, t Tuple) (Tuple, error) {
	again := func(t Tuple) bool { return !h.has(t) && h.waits.reusable(now, t) }
	heard := func(t Tuple) bool { return h.listeners.find(t) != nil }
	if t.LocalPort != 0 {
		if !again(t) {
			return t, ErrExists
		}
		return t, nil
	}
	port, ok := h.ports.next(t, func(t Tuple) bool { return !h.Knows(t) && !heard(t) })
	if !ok {
		port, ok = h.ports.next(t, func(t Tuple) bool { return again(t) && !heard(t) })
	}
	if !ok {
		return t, ErrNoPorts
	}
	t.LocalPort = port
	return t, nil
}

// blank returns a connection in CLOSED without numbers: one that was folded, or a new one.
func (h *Host) blank(now clock.Time, t Tuple, p Path) *Conn {
	h.now = now
	c := h.half.take(&h.cfg)
	c.host, c.tuple = h, t
	c.rcv.shared, c.snd.cfg, c.snd.txMax = &h.receivers, &h.cfg, h.cfg.Buffers.SendMax
	c.rcv.tune.size, c.rcv.tune.max = h.cfg.Buffers.Recv, h.cfg.Buffers.RecvMax
	c.links.heap = -1
	c.snd.rec.Init(&h.recoveries, &c.snd.Space)
	c.snd.nagle.off = h.cfg.NoDelay
	c.setPath(p)
	c.snd.limitBy(now, LimitHandshake)
	return c
}

// newConn returns a connection in CLOSED with nothing agreed on.
func (h *Host) newConn(now clock.Time, t Tuple, p Path) *Conn {
	c := h.blank(now, t, p)
	iss := initialSequence(&h.cfg.Secret, now, t)
	if h.cfg.Sequence != nil {
		iss = h.cfg.Sequence(t)
	}
	c.snd.begin(iss)
	c.stamps.offset = stampOffset(&h.cfg.Secret, t)
	return c
}

// Wrote is SEND (§3.10.2): the user has written to Tx.
func (c *Conn) Wrote(clock.Time) { c.touch() }

// CloseWrite is Finish for a user who does not mind that it was closed before.
func (c *Conn) CloseWrite(now clock.Time) { _ = c.Finish(now) }

// Finish is CLOSE (§3.10.4): what is in Tx will be sent, then a FIN. The user may go on reading.
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

// Close lets go of the connection in both directions. If the user has not read everything, the peer
// is told so by a reset: RFC 2525 §2.17, RFC 1122 §4.2.2.13.
func (c *Conn) Close(now clock.Time) {
	if c.flags.has(flagOrphan) {
		return
	}
	unread := c.rcv.rx.Len() > 0 && !c.rcv.closed
	c.flags |= flagOrphan
	c.rcv.closed = true
	switch {
	case c.over():
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
	c.Forsake(now, ErrAborted)
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
	r := reply{c.tuple, Header{Seq: uint32(c.snd.Nxt), Ack: uint32(c.rcv.nxt), Flags: RST | ACK}}
	if c.hs.has(flagStamps) {
		c.stamps.put(c.host.now, &r.header.Options) // RFC 7323 §3.2: SHOULD
	}
	c.host.replies.push(r)
}

// Consumed is RECEIVE (§3.10.3): the user has read from Rx.
func (c *Conn) Consumed(now clock.Time) {
	if c.state.mayReceive() && c.rcv.consumed(now, c.snd.rec.RTT.SRTT) {
		c.touch()
	}
}

// The user calls of RFC 9293 §3.10 on one connection. A user that shares the rings with another
// goroutine writes and reads them himself, and calls Wrote and Consumed; the errors are the same.

// Send is SEND (§3.10.2): it takes what fits in the send buffer, perhaps
// nothing, and returns how much that was.
func (c *Conn) Send(now clock.Time, p []byte) (int, error) {
	if err := c.maySend(); err != nil {
		return 0, fmt.Errorf("tcp: send: %w", err)
	}
	n := c.snd.tx.Write(p)
	c.Wrote(now)
	return n, nil
}

// maySend returns why the user may not send, nil if he may. What he sends in
// SYN-SENT and SYN-RECEIVED waits for ESTABLISHED.
func (c *Conn) maySend() error {
	switch c.State() {
	case StateClosed:
		return c.ended()
	case StateListen:
		return ErrUnspecified
	case StateSynSent, StateSynReceived, StateEstablished, StateCloseWait:
		if c.snd.closed {
			return ErrClosing
		}
		return nil
	default:
		return ErrClosing
	}
}

// Receive is RECEIVE (§3.10.3): it takes what has arrived in order, perhaps nothing, and returns
// how much that was. When nothing can come any more it returns ErrClosing.
func (c *Conn) Receive(now clock.Time, p []byte) (int, error) {
	if c.rcv.closed {
		return 0, fmt.Errorf("tcp: receive: %w", ErrClosed)
	}
	if n := c.rcv.rx.Read(p); n > 0 {
		c.Consumed(now)
		return n, nil
	}
	switch c.State() {
	case StateClosed:
		return 0, fmt.Errorf("tcp: receive: %w", c.ended())
	case StateCloseWait, StateClosing, StateLastAck, StateTimeWait:
		return 0, fmt.Errorf("tcp: receive: %w", ErrClosing)
	default:
		return 0, nil
	}
}

// ended is the error of calls on a connection that is over: why it failed, or
// that it does not exist.
func (c *Conn) ended() error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return ErrNotExist
}

// Urgent returns how many bytes, from the next that is read on, belong to urgent data or come
// before it; they need not have arrived yet. Zero: nothing is urgent (RFC 9293 §3.8.5, MUST-33).
func (c *Conn) Urgent() int {
	if end, head := streamed(c.rcv.up, c.rcv.irs), c.rcv.rx.Head(); end > head {
		return int(end - head)
	}
	return 0
}
