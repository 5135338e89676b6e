package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/control"
)

// loopback is where doors listen unless another address is asked for.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Publish opens a port of this machine that leads to a virtual host.
func (n *Node) Publish(r control.Publish) (*Door, error) {
	on := r.On
	if !on.IsValid() {
		on = loopback
	}
	from := netip.AddrPortFrom(on, r.Port)
	what := "publish " + from.String()
	if !isHost(r.To.Addr()) || r.To.Port() == 0 {
		return nil, misuse("%s: to %v: want the address of a virtual host and a port from 1",
			what, r.To)
	}
	if on.IsMulticast() {
		return nil, misuse("%s: want an address of this machine", what)
	}
	if r.UDP {
		return n.publishUDP(from, r.To)
	}
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", from.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, machineError(err))
	}
	d := newDoor(n, control.DoorPublish, "tcp", l.Addr().String(), r.To.String())
	d.addr = l.Addr()
	run := func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if d.ends.Err() != nil {
					return
				}
				d.failed(d.state.From, err) // no file descriptor is left, say
				if !d.pause() {
					return
				}
				continue
			}
			conn, _ := c.(*net.TCPConn)
			f, ok := d.enter(conn.RemoteAddr().String(), machineEnd{conn}.Abort)
			if !ok {
				machineEnd{conn}.Abort()
				return
			}
			go func() { f.leave(f.publish(conn, r.To)) }()
		}
	}
	err = n.admit(d, func() { _ = l.Close() }, run)
	return d, err
}

// publish leads one connection of this machine into the virtual network.
func (f *doorFlow) publish(c *net.TCPConn, to netip.AddrPort) error {
	near := machineEnd{c}
	v, err := f.door.node.Dial(f.door.goesOn, to)
	if err != nil {
		near.Abort()
		return err
	}
	v.keepalive(senderSilence) // who waits for a host that is gone is told
	far := virtualEnd{v}
	f.onCut(func() { near.Abort(); far.Abort() })
	return f.door.relay(near, far)
}

// Expose opens a virtual port that leads to a service of this machine.
func (n *Node) Expose(r control.Expose) (*Door, error) {
	what := "expose " + strconv.Itoa(int(r.Port))
	host, port, err := net.SplitHostPort(r.To)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil ||
		number == 0 || host == "" {
		return nil, misuse("%s: to %q: want HOST:PORT", what, r.To)
	}
	if r.Port == 0 {
		return nil, misuse("%s: want a port from 1 to 65535", what)
	}
	if r.UDP {
		return n.exposeUDP(r.Port, r.To)
	}
	l, err := n.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port), 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, inner(err))
	}
	d := newDoor(n, control.DoorExpose, "tcp", strconv.Itoa(int(r.Port)), r.To)
	d.addr = l.Addr()
	run := func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return // it is closed, by us or with the node
			}
			f, ok := d.enter(c.RemoteAddr().String(), c.Abort)
			if !ok {
				c.Abort()
				return
			}
			go func() { f.leave(f.expose(c, r.To)) }()
		}
	}
	err = n.admit(d, func() { _ = l.Close() }, run)
	return d, err
}

// expose leads one virtual connection to a service.
func (f *doorFlow) expose(v *Conn, to string) error {
	c, err := f.door.dial("tcp", to)
	if err != nil {
		v.Abort()
		return err
	}
	return f.join(c, v)
}

// join copies between a service and a virtual connection.
func (f *doorFlow) join(c net.Conn, v *Conn) error {
	conn, _ := c.(*net.TCPConn)
	near, far := machineEnd{conn}, virtualEnd{v}
	v.keepalive(senderSilence)
	f.onCut(func() { near.Abort(); far.Abort() })
	return f.door.relay(near, far)
}

// dial connects to a service of this machine's network.
func (d *Door) dial(network, to string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: doorPatience}
	c, err := dialer.DialContext(d.goesOn, network, to)
	if err != nil {
		return nil, machineError(err)
	}
	return c, nil
}
