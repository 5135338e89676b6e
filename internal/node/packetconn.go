package node

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// PacketConn is a UDP socket as an application uses it. It implements net.PacketConn and, if it is
// connected, net.Conn. Received datagrams wait in a ring that the loop fills. To send a datagram, a
// goroutine makes the loop send it and waits for the result.
type PacketConn struct {
	packetSocket
	us    *udp.Socket // loop only
	local netip.AddrPort
	peer  netip.AddrPort // peer's address; invalid if not connected
	sid   int

	mu      sync.Mutex // serializes readers
	rx      *buffer.Ring
	failure atomic.Pointer[error] // ICMP error that the next call returns
}

var (
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*PacketConn)(nil)
)

// Listen opens a UDP socket on a port of one of the node's addresses, or of all addresses: 0.0.0.0
// stands for IPv4, and :: for both families. Port 0 means a free port.
func (p *Packets) Listen(on netip.AddrPort) (*PacketConn, error) {
	return p.listen(on, func() (*udp.Socket, error) { return p.node.stack.Datagrams().Bind(on) })
}

// ListenIPv6 is like Listen, but :: stands only for the IPv6 addresses.
func (p *Packets) ListenIPv6(on netip.AddrPort) (*PacketConn, error) {
	if on.Addr() != netip.IPv6Unspecified() {
		return p.Listen(on)
	}
	return p.listen(on, func() (*udp.Socket, error) {
		return p.node.stack.UDP().BindIPv6(on.Port())
	})
}

func (p *Packets) listen(on netip.AddrPort, bind func() (*udp.Socket, error)) (*PacketConn, error) {
	c, err := p.open(bind)
	if err != nil {
		return nil, listenError("udp", on, err)
	}
	return c, nil
}

// Dial is like DialFrom. The node chooses the local address and port.
func (p *Packets) Dial(to netip.AddrPort) (*PacketConn, error) {
	return p.DialFrom(netip.AddrPort{}, to)
}

// DialFrom opens a connected UDP socket. The node chooses the parts of from that are zero. ICMP
// errors about its datagrams are returned by the next call.
func (p *Packets) DialFrom(from, to netip.AddrPort) (*PacketConn, error) {
	c, err := p.open(func() (*udp.Socket, error) {
		return p.node.stack.Datagrams().Dial(from, to)
	})
	if err != nil {
		return nil, dialError("udp", from, to, err)
	}
	return c, nil
}

func (p *Packets) open(open func() (*udp.Socket, error)) (*PacketConn, error) {
	c := &PacketConn{}
	c.init(p.node, c.ownError, c.release)
	err := p.node.Call(func(s *stack.Stack, _ clock.Time) (err error) {
		if c.us, err = open(); err != nil {
			return err
		}
		c.us.Owner = c
		c.local, c.peer, c.rx = c.us.Local(), c.us.Remote(), c.us.Rx()
		c.sid = s.Sockets().AddUDP(c.us)
		p.conns[c] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, NetError(err)
	}
	return c, nil
}

// release removes the socket from the stack. Loop only.
func (c *PacketConn) release() {
	delete(c.node.Packets.conns, c)
	c.us.Close()
	c.node.stack.Sockets().Remove(c.sid)
}

// ReadFromAddrPort waits for a datagram and copies it to p. If p is too short, the rest is lost.
func (c *PacketConn) ReadFromAddrPort(p []byte) (int, netip.AddrPort, error) {
	r, err := c.Receive(p)
	return min(r.Len, len(p)), r.From, err
}

// Receive is like ReadFromAddrPort, and returns all that is known about the datagram.
func (c *PacketConn) Receive(p []byte) (udp.Received, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := c.over(&c.readBy); err != nil {
			return udp.Received{}, c.ownError("read", err)
		}
		if r, ok := udp.Dequeue(c.rx, p); ok {
			return r, nil
		}
		if err := c.takeFailure(); err != nil {
			return udp.Received{}, c.ownError("read", err)
		}
		c.awaitArrival()
	}
}

// Refuse sends an ICMP port unreachable for a datagram that Receive returned, as a closed port does
// (RFC 1122 §4.1.3.1). length is the length of the datagram.
func (c *PacketConn) Refuse(from netip.AddrPort, at netip.Addr, length int) {
	local := netip.AddrPortFrom(at, c.local.Port())
	c.node.Post(func(now clock.Time) { c.node.stack.Datagrams().Refuse(now, local, from, length) })
}

// ReadFrom is like ReadFromAddrPort. The address is a *net.UDPAddr of the virtual network.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(p)
	if err != nil {
		return n, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// Read is like ReadFrom, without the address.
func (c *PacketConn) Read(p []byte) (int, error) {
	n, _, err := c.ReadFromAddrPort(p)
	return n, err
}

// WriteToAddrPort sends p as one datagram. It blocks only while the node's queues are full. A
// return without an error does not mean that the datagram was delivered.
func (c *PacketConn) WriteToAddrPort(p []byte, to netip.AddrPort) (int, error) {
	if c.peer.IsValid() {
		return 0, c.opError("write", to, net.ErrWriteToConnected)
	}
	if !to.IsValid() {
		return 0, c.opError("write", to, errMissingAddress)
	}
	return c.send(p, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
}

// errMissingAddress is the error of WriteTo without an address. Package net has the same error.
var errMissingAddress = errors.New("missing address")

// WriteTo is like WriteToAddrPort, for a *net.UDPAddr or an address whose String can be parsed as
// one.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	var at netip.AddrPort
	switch a := to.(type) {
	case nil:
	case *net.UDPAddr:
		at = a.AddrPort()
	default:
		var err error
		if at, err = netip.ParseAddrPort(a.String()); err != nil {
			return 0, &net.OpError{
				Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: to, Err: err,
			}
		}
	}
	return c.WriteToAddrPort(p, at)
}

// Write sends p to the peer as one datagram.
func (c *PacketConn) Write(p []byte) (int, error) {
	if !c.peer.IsValid() {
		return 0, c.ownError("write", syscall.EDESTADDRREQ)
	}
	return c.send(p, netip.AddrPort{})
}

func (c *PacketConn) send(p []byte, to netip.AddrPort) (int, error) {
	if _, err := c.WriteBatch([][]byte{p}, to); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteBatch sends datagrams and returns how many it has sent. It blocks as WriteToAddrPort does.
func (c *PacketConn) WriteBatch(datagrams [][]byte, to netip.AddrPort) (n int, err error) {
	for n < len(datagrams) {
		if err := c.over(&c.writeBy); err != nil {
			return n, c.opError("write", to, err)
		}
		if err := c.takeFailure(); err != nil {
			return n, c.opError("write", to, err)
		}
		var room chan struct{}
		err := c.node.Call(func(s *stack.Stack, now clock.Time) (err error) {
			for n < len(datagrams) && err == nil {
				if c.closed.Load() {
					err = net.ErrClosed
				} else if err = s.Datagrams().Send(now, c.us, to, datagrams[n]); err == nil {
					n++
				}
			}
			if errors.Is(err, stack.ErrQueueFull) {
				room = c.node.Packets.awaitRoom()
			}
			return err
		})
		if room != nil {
			c.awaitRoom(room)
		} else if err != nil {
			return n, c.opError("write", to, NetError(err))
		}
	}
	return n, nil
}

// takeFailure returns and clears the pending ICMP error.
func (c *PacketConn) takeFailure() error {
	if err := c.failure.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// Peer returns the peer's address and port. They are invalid if the socket is not connected.
func (c *PacketConn) Peer() netip.AddrPort { return c.peer }

// SID returns the socket's number.
func (c *PacketConn) SID() int { return c.sid }

// LocalAddr returns a *net.UDPAddr of the virtual network.
func (c *PacketConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.local) }

// RemoteAddr returns the peer's *net.UDPAddr, or nil.
func (c *PacketConn) RemoteAddr() net.Addr {
	if !c.peer.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(c.peer)
}

// ownError is like opError, with the socket's own addresses only.
func (c *PacketConn) ownError(op string, err error) error {
	return c.opError(op, netip.AddrPort{}, err)
}

func (c *PacketConn) opError(op string, to netip.AddrPort, err error) error {
	e := &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	if to.IsValid() {
		e.Addr = net.UDPAddrFromAddrPort(to)
	}
	return e
}
