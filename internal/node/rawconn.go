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

// RawConn is a socket for the packets of one IP protocol. It implements net.PacketConn:
// what is read and written is what is behind the IP header.
type RawConn struct {
	ends
	network string // as it was asked for: "ip4:icmp"
	raw     *stack.Raw
	local   netip.Addr // unspecified: any of the node's

	mu     sync.Mutex
	queue  []rawPacket
	queued int           // bytes, where none counts less than rawCharge
	ttl    atomic.Uint32 // of what is sent; 0: the node's own
}

type rawPacket struct {
	from netip.Addr
	data []byte
}

// What waits to be read is bounded: packets behind that are lost.
const (
	maxRawQueue = 256 << 10
	rawCharge   = 256
)

var _ net.PacketConn = (*RawConn)(nil)

// ListenRaw opens a socket for a protocol on one of the node's addresses, or with
// 0.0.0.0 on all. Network is what errors call it.
func (p *Packets) ListenRaw(network string, protocol uint8, on netip.Addr) (*RawConn, error) {
	c := &RawConn{network: network, local: on}
	c.init(p.node, c.refuse, c.release)
	c.raw = &stack.Raw{Protocol: protocol, Hear: c.hear}
	if !on.IsUnspecified() {
		c.raw.Local = on
	}
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

func ipAddr(a netip.Addr) *net.IPAddr { return &net.IPAddr{IP: a.AsSlice()} }

// hear queues a packet. The loop's.
func (c *RawConn) hear(from netip.Addr, payload []byte) {
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

// ReadFrom waits for a packet and copies as much of its payload as fits to p; the rest
// of it is lost. The address is a *net.IPAddr.
func (c *RawConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		if err := c.over(&c.readBy); err != nil {
			return 0, nil, c.refuse("read", err)
		}
		if got, ok := c.take(); ok {
			return copy(p, got.data), ipAddr(got.from), nil
		}
		c.awaitArrival()
	}
}

// WriteTo sends p to a *net.IPAddr, or another whose String is an address. No checksum is
// filled in.
func (c *RawConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if to == nil {
		return 0, c.refuse("write", errMissingAddress)
	}
	dst, err := netip.ParseAddr(to.String())
	if dst = dst.Unmap(); err != nil || !dst.Is4() {
		return 0, &net.OpError{
			Op: "write", Net: c.network, Source: c.LocalAddr(), Addr: to,
			Err: &net.AddrError{Err: "not an IPv4 address", Addr: to.String()},
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

// send hands a packet to the loop. With room there was none for it, and room is closed
// when it is worth another try.
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

// SetTTL sets the TTL of what is sent from now on; 0: the node's own.
func (c *RawConn) SetTTL(ttl int) error {
	if ttl < 0 || ttl > 255 {
		return c.refuse("set", control.Misuse("TTL %d: want 0 to 255", ttl))
	}
	c.ttl.Store(uint32(ttl))
	return nil
}

// release strikes the socket from the books. The loop's.
func (c *RawConn) release() {
	delete(c.node.Packets.raws, c)
	c.node.stack.Raws().Close(c.raw)
}

// LocalAddr returns a *net.IPAddr of the virtual network.
func (c *RawConn) LocalAddr() net.Addr { return ipAddr(c.local) }

// refuse is opError without an address.
func (c *RawConn) refuse(op string, err error) error {
	return c.opError(op, netip.Addr{}, err)
}

func (c *RawConn) opError(op string, to netip.Addr, err error) error {
	e := &net.OpError{Op: op, Net: c.network, Source: c.LocalAddr(), Err: err}
	if to.IsValid() {
		e.Addr = ipAddr(to)
	}
	return e
}
