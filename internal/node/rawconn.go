package node

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// RawConn is a socket for an IP protocol. It implements net.PacketConn. Packets are read and
// written without their IP headers.
type RawConn struct {
	packetSocket
	network string // network that the caller gave, such as "ip4:icmp"
	raw     *stack.Raw
	local   netip.Addr // local address; unspecified: all addresses

	mu     sync.Mutex
	queue  []rawPacket
	queued int           // number of queued bytes; a packet counts as at least rawCharge
	ttl    atomic.Uint32 // TTL of outgoing packets; 0: the default
}

type rawPacket struct {
	from netip.Addr
	data []byte
}

// These are limits of the receive queue. Further packets are dropped.
const (
	maxRawQueue = 256 << 10
	rawCharge   = 256
)

var _ net.PacketConn = (*RawConn)(nil)

// ListenRaw opens a socket for a protocol on one of the node's addresses, or on all of a family
// (0.0.0.0 or ::). Errors contain network.
func (p *Packets) ListenRaw(network string, protocol uint8, on netip.Addr) (*RawConn, error) {
	c := &RawConn{network: network, local: on}
	c.init(p.node, c.ownError, c.release)
	c.raw = &stack.Raw{Protocol: protocol, Local: on, Receive: c.receive}
	err := NetError(p.node.Call(func(s *stack.Stack, _ clock.Time) error {
		err := s.Raws().Open(c.raw)
		if err == nil {
			p.raws[c] = struct{}{}
		}
		return err
	}))
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: ipAddr(on), Err: err}
	}
	return c, nil
}

func ipAddr(a netip.Addr) *net.IPAddr { return &net.IPAddr{IP: a.AsSlice(), Zone: a.Zone()} }

// receive queues a packet. Loop only.
func (c *RawConn) receive(from netip.Addr, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	charge := max(rawCharge, len(payload))
	if c.queued+charge > maxRawQueue {
		return
	}
	c.queued += charge
	c.queue = append(c.queue, rawPacket{from, append([]byte(nil), payload...)})
	wake(c.arrived)
}

func (c *RawConn) take() (p rawPacket, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return p, false
	}
	p = c.queue[0]
	c.queue[0] = rawPacket{}
	c.queue = c.queue[1:]
	c.queued -= max(rawCharge, len(p.data))
	if len(c.queue) > 0 {
		wake(c.arrived)
	}
	return p, true
}

// ReadFrom waits for a packet and copies its payload to p. If p is too short, the rest is lost. The
// address is a *net.IPAddr.
func (c *RawConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		if err := c.over(&c.readBy); err != nil {
			return 0, nil, c.ownError("read", err)
		}
		if got, ok := c.take(); ok {
			return copy(p, got.data), ipAddr(got.from), nil
		}
		c.awaitArrival()
	}
}

// WriteTo sends p to a *net.IPAddr, or to an address whose String can be parsed as one. It does not
// compute checksums, except that of ICMPv6 (RFC 3542 §3.1).
func (c *RawConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if to == nil {
		return 0, c.ownError("write", errMissingAddress)
	}
	dst, err := netip.ParseAddr(to.String())
	if dst = dst.Unmap(); err != nil || dst.Is4() != c.local.Is4() {
		family := "IPv4"
		if c.local.Is6() {
			family = "IPv6"
		}
		return 0, &net.OpError{
			Op: "write", Net: c.network, Source: c.LocalAddr(), Addr: to,
			Err: &net.AddrError{Err: "not an " + family + " address", Addr: to.String()},
		}
	}
	for {
		room, err := c.send(p, dst)
		switch {
		case err == nil:
			return len(p), nil
		case room == nil:
			return 0, c.opError("write", dst, err)
		}
		c.awaitRoom(room)
	}
}

// send sends a packet in the loop. If the queues are full, it returns a channel that is closed when
// they have room.
func (c *RawConn) send(p []byte, dst netip.Addr) (room chan struct{}, err error) {
	if err := c.over(&c.writeBy); err != nil {
		return nil, err
	}
	packet := stack.RawPacket{
		Protocol: c.raw.Protocol, Src: c.raw.Local, Dst: dst, TTL: uint8(c.ttl.Load()), Payload: p,
	}
	err = c.node.Call(func(s *stack.Stack, now clock.Time) error {
		err := s.Raws().Send(now, &packet)
		if errors.Is(err, stack.ErrQueueFull) {
			room = c.node.Packets.awaitRoom()
		}
		return err
	})
	return room, NetError(err)
}

// SetTTL sets the TTL of outgoing packets. Zero means the node's default.
func (c *RawConn) SetTTL(ttl int) error {
	if ttl < 0 || ttl > 255 {
		return c.ownError("set", control.Misuse("TTL %d: must be 0 to 255", ttl))
	}
	c.ttl.Store(uint32(ttl))
	return nil
}

// release removes the socket from the stack. Loop only.
func (c *RawConn) release() {
	delete(c.node.Packets.raws, c)
	c.node.stack.Raws().Close(c.raw)
}

// LocalAddr returns a *net.IPAddr of the virtual network.
func (c *RawConn) LocalAddr() net.Addr { return ipAddr(c.local) }

// ownError is like opError, with the socket's own addresses only.
func (c *RawConn) ownError(op string, err error) error {
	return c.opError(op, netip.Addr{}, err)
}

func (c *RawConn) opError(op string, to netip.Addr, err error) error {
	e := &net.OpError{Op: op, Net: c.network, Source: c.LocalAddr(), Err: err}
	if to.IsValid() {
		e.Addr = ipAddr(to)
	}
	return e
}
