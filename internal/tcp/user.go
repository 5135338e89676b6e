package tcp

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Connect is like ConnectFrom, from the local address of the route.
func (h *Host) Connect(now clock.Time, remote netip.AddrPort, localPort uint16) (*Conn, error) {
	return h.ConnectFrom(now, netip.AddrPortFrom(netip.Addr{}, localPort), remote)
}

// ConnectFrom opens a connection (RFC 9293 §3.10.1, active OPEN). If the local address is
// unspecified, it uses the address of the route; if the port is 0, it chooses one as in RFC 6056.
// The caller must check that the address is one of the host's. The handshake is complete when the
// connection raises Established, but the user may write to Tx at once.
func (h *Host) ConnectFrom(now clock.Time, local, remote netip.AddrPort) (*Conn, error) {
	addr := remote.Addr().Unmap()
	if remote.Port() == 0 || addr.IsUnspecified() {
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrUnspecified)
	}
	from := local.Addr().Unmap()
	if !addr.IsValid() || from.IsValid() && !from.IsUnspecified() && from.Is4() != addr.Is4() {
		return nil, fmt.Errorf("tcp: connect %v from %v: %w", remote, local, ErrAddress)
	}
	if addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		// RFC 1122 §4.2.3.10: an OPEN to a broadcast or multicast address is an error.
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrNotHost)
	}
	if h.full() {
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrResources)
	}
	path := h.cfg.Route(addr)
	switch {
	case path.Outlet < 0 && path.NotHost:
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrNotHost)
	case path.Outlet < 0:
		return nil, fmt.Errorf("tcp: connect %v: %w", remote, ErrUnreachable)
	}
	t := Tuple{
		LocalAddr: path.Local, RemoteAddr: addr,
		LocalPort: local.Port(), RemotePort: remote.Port(),
	}
	if from.IsValid() && !from.IsUnspecified() {
		t.LocalAddr = from
	}
	t, err := h.chooseTuple(now, t)
	if err != nil {
		return nil, fmt.Errorf("tcp: connect %v from port %d: %w", remote, local.Port(), err)
	}
	c := h.newConn(now, t, path)
	if last := h.timeWaits.byTuple[t]; last != nil {
		h.timeWaits.remove(last)
		c.snd.beginAfter(last)
	}
	c.hs.flags |= hsActive
	c.setState(now, evOpen)
	h.insert(c)
	c.sendSYN(now)
	c.host.reschedule(c)
	return c, nil
}

// Listen starts a listener (RFC 9293 §3.10.1, passive OPEN). The address 0.0.0.0 means all IPv4
// addresses; :: and the zero Addr mean all addresses of both families. No other listener may use
// the port with the same addresses. backlog bounds the connections that wait for Accept; a value
// below 1 means 1.
func (h *Host) Listen(local netip.AddrPort, backlog int) (*Listener, error) {
	return h.listen(newListener(local), backlog)
}

// ListenIPv6 is like Listen, on all IPv6 addresses and no IPv4 addresses (RFC 3493 §5.3,
// IPV6_V6ONLY).
func (h *Host) ListenIPv6(port uint16, backlog int) (*Listener, error) {
	at := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
	return h.listen(&Listener{local: at}, backlog)
}

func (h *Host) listen(l *Listener, backlog int) (*Listener, error) {
	taken := func(t Tuple) bool {
		l.local = t.Local()
		return h.listeners.conflict(l)
	}
	t := Tuple{LocalAddr: l.local.Addr(), LocalPort: l.local.Port()}
	if t.LocalPort == 0 {
		if _, ok := h.ports.next(t, func(t Tuple) bool { return !taken(t) }); !ok {
			return nil, fmt.Errorf("tcp: listen %v: %w", t.Local(), ErrNoPorts)
		}
	} else if taken(t) {
		return nil, fmt.Errorf("tcp: listen %v: %w", l.local, ErrPortInUse)
	}
	l.host, l.backlog = h, max(backlog, 1)
	h.listeners.add(l)
	return l, nil
}

// chooseTuple returns the tuple of an active OPEN. If t has no local port, it chooses one as in RFC
// 6056. It chooses a port whose last connection is in TIME-WAIT only if no other port is free.
func (h *Host) chooseTuple(now clock.Time, t Tuple) (Tuple, error) {
	again := func(t Tuple) bool { return !h.has(t) && h.timeWaits.reusable(now, t) }
	listening := func(t Tuple) bool { return h.listeners.find(t.Local()) != nil }
	if t.LocalPort != 0 {
		if !again(t) {
			return t, ErrExists
		}
		return t, nil
	}
	port, ok := h.ports.next(t, func(t Tuple) bool { return !h.Knows(t) && !listening(t) })
	if !ok {
		port, ok = h.ports.next(t, func(t Tuple) bool { return again(t) && !listening(t) })
	}
	if !ok {
		return t, ErrNoPorts
	}
	t.LocalPort = port
	return t, nil
}

// blank returns a connection in CLOSED without sequence numbers.
func (h *Host) blank(now clock.Time, t Tuple, p Path) *Conn {
	h.now = now
	c := h.half.take(&h.cfg)
	c.host, c.tuple = h, t
	c.rcv.shared, c.snd.cfg, c.snd.txMax = &h.receivers, &h.cfg, h.cfg.Buffers.SendMax
	c.snd.port = t.LocalPort
	c.rcv.tune.size, c.rcv.tune.max = h.cfg.Buffers.Recv, h.cfg.Buffers.RecvMax
	c.links.heap = -1
	c.snd.rec.Init(&h.recoveries, &c.snd.Space)
	c.snd.nagle.off = h.cfg.NoDelay
	h.setPath(c, p)
	c.snd.limitBy(now, LimitHandshake)
	return c
}

func (h *Host) newConn(now clock.Time, t Tuple, p Path) *Conn {
	c := h.blank(now, t, p)
	iss := initialSequence(&h.cfg.Secret, now, &t)
	if h.cfg.Sequence != nil {
		iss = h.cfg.Sequence(t)
	}
	c.snd.begin(iss)
	c.stamps.offset = stampOffset(&h.cfg.Secret, &t)
	return c
}

// Wrote must be called after the user has written to Tx (RFC 9293 §3.10.2, SEND).
func (c *Conn) Wrote(clock.Time) { c.host.reschedule(c) }

// CloseWrite sends the data in Tx and then a FIN (RFC 9293 §3.10.4, CLOSE). The user may still
// read.
func (c *Conn) CloseWrite(now clock.Time) error {
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
	c.host.reschedule(c)
	return nil
}

// CloseRead says that the user will not read any more. The connection then acknowledges and
// discards data that arrives, so that the peer can send the rest.
func (c *Conn) CloseRead(now clock.Time) {
	if c.rcv.closed {
		return
	}
	c.rcv.closed = true
	c.Consumed(now)
}

// Close closes both directions. If the user has not read all data, Close resets the connection (RFC
// 2525 §2.17, RFC 1122 §4.2.2.13).
func (c *Conn) Close(now clock.Time) {
	if c.flags.has(connOrphan) {
		return
	}
	unread := c.rcv.rx.Len() > 0 && !c.rcv.closed
	c.flags |= connOrphan
	c.rcv.closed = true
	switch {
	case c.state.over():
	case c.state == StateSynSent:
		c.snd.closed = true
		c.setState(now, evDelete) // §3.10.4: delete the TCB
	case unread:
		c.Abort(now)
	default:
		_ = c.CloseWrite(now) // it fails only if the user has called it before
		if c.state == StateFinWait2 {
			c.finWait2 = now.Later(c.host.cfg.FinWait2)
		}
		c.host.reschedule(c)
	}
}

// Abort resets the connection (RFC 9293 §3.10.5, ABORT).
func (c *Conn) Abort(now clock.Time) {
	c.flags |= connOrphan
	c.snd.closed = true
	c.rcv.closed = true
	c.AbortWith(now, ErrAborted)
}

// AbortWith resets the connection. The user's calls then return the error why. The user must still
// close the connection.
func (c *Conn) AbortWith(now clock.Time, why error) {
	switch c.state {
	case StateClosed, StateTimeWait, StateListen:
		return
	case StateSynSent:
	default:
		if c.host.cfg.NoResets {
			break
		}
		h := Header{Seq: uint32(c.snd.Nxt), Ack: uint32(c.rcv.nxt), Flags: RST | ACK}
		if c.hs.has(hsStamps) {
			c.stamps.put(c.host.now, &h.Options) // RFC 7323 §3.2: SHOULD
		}
		c.host.replies.push(reply{c.tuple, h})
	}
	c.fail(now, why)
}

// Consumed must be called after the user has read from Rx (RFC 9293 §3.10.3, RECEIVE).
func (c *Conn) Consumed(now clock.Time) {
	if c.state.mayReceive() && c.rcv.consumed(now, c.snd.rec.RTT.SRTT) {
		c.host.reschedule(c)
	}
}

// These are the user calls of RFC 9293 §3.10 on one connection. A user in another goroutine writes
// and reads the rings directly, and then makes the owner call Wrote and Consumed.

// Send writes as much of p as fits in the send buffer, and returns the number of bytes (RFC 9293
// §3.10.2, SEND).
func (c *Conn) Send(now clock.Time, p []byte) (int, error) {
	err := ErrClosing
	switch state := c.State(); {
	case state == StateClosed:
		err = c.ended()
	case state == StateListen:
		err = ErrUnspecified
	case (state <= StateSynReceived || state.maySend()) && !c.snd.closed:
		err = nil // data written before ESTABLISHED is sent then
	}
	if err != nil {
		return 0, fmt.Errorf("tcp: send: %w", err)
	}
	n := c.snd.tx.Write(p)
	c.Wrote(now)
	return n, nil
}

// Receive reads data that has arrived in order, and returns the number of bytes (RFC 9293 §3.10.3,
// RECEIVE). It returns ErrClosing if no more data can arrive.
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

// ended returns the error of calls on a closed connection: ErrNotExist, with the reason if the
// connection failed.
func (c *Conn) ended() error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return ErrNotExist
}

// Urgent returns how far the end of urgent data is ahead of the data that the user has read, in
// bytes, or zero if there is no urgent data (RFC 9293 §3.8.5, MUST-33). Some of these bytes may not
// have arrived yet.
func (c *Conn) Urgent() int {
	if end, head := streamed(c.rcv.up, c.rcv.irs), c.rcv.rx.Head(); end > head {
		return int(end - head)
	}
	return 0
}

// Tuple returns the connection's addresses and ports.
func (c *Conn) Tuple() Tuple { return c.tuple }

// State returns the connection's state.
func (c *Conn) State() State {
	if c.timeWait != nil && c.timeWait.gone {
		return StateClosed
	}
	return c.state
}

// Err returns why the connection closed: nil while it is open and after an orderly close.
func (c *Conn) Err() error {
	if c.flags.has(connSoft) {
		return nil
	}
	return c.err
}

// Tx returns the ring that the user writes to.
func (c *Conn) Tx() *buffer.Ring { return c.snd.tx }

// Rx returns the ring that the user reads from.
func (c *Conn) Rx() *buffer.Ring { return c.rcv.rx }

// ReadDone reports whether the peer has closed its side and all of its data is in Rx.
func (c *Conn) ReadDone() bool { return c.rcv.done() }

// Sockopts returns the options. RecvBuffer, SendBuffer and Congestion are zero, so that passing the
// options to SetSockopts does not change these.
func (c *Conn) Sockopts() Sockopts {
	d := &c.snd
	o := Sockopts{
		NoDelay: d.nagle.off, Cork: d.nagle.cork, MaxSeg: int(d.path.maxSeg),
		AdvertiseTimeout: d.wait.advertise, TOS: c.tos, TTL: c.ttl,
		FileDigest: c.hs.has(hsFileDigest),
	}
	if d.wait.chosen {
		o.UserTimeout = d.wait.limit
	}
	if c.keep != nil {
		o.Keepalive = c.keep.Keepalive
	}
	return o
}

// SetSockopts sets all options, or none if one is invalid. A smaller RecvBuffer does not take back
// the advertised window (RFC 9293 §3.8.6): the window shrinks as data arrives.
func (c *Conn) SetSockopts(now clock.Time, o Sockopts) error {
	if err := o.validate(c.host); err != nil {
		return err
	}
	o.apply(now, c)
	if o.RecvBuffer != 0 {
		c.Consumed(now)
	}
	c.host.reschedule(c)
	return nil
}
