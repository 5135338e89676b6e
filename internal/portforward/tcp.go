package portforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// loopback is where doors listen unless another address is asked for.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Publish opens a port of this machine that leads to a virtual host.
func (s *Set) Publish(r control.Publish) (*Door, error) {
	on := r.On
	if !on.IsValid() {
		on = loopback
	}
	from := netip.AddrPortFrom(on, r.Port)
	what := "publish " + from.String()
	if !control.IsHost(r.To.Addr()) || r.To.Port() == 0 {
		return nil, control.Misuse(
			"%s: to %v: want the address of a virtual host and a port from 1", what, r.To)
	}
	if on.IsMulticast() {
		return nil, control.Misuse("%s: want an address of this machine", what)
	}
	if r.UDP {
		return s.publishUDP(from, r.To)
	}
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", from.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what,
			s.holder(machineError(err), control.DoorPublish, "tcp", from))
	}
	d := s.newDoor(control.DoorPublish, "tcp", l.Addr().String(), r.To.String())
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
	err = s.admit(d, func() { _ = l.Close() }, run)
	return d, err
}

// publish leads one connection of this machine into the virtual network.
func (f *flow) publish(c *net.TCPConn, to netip.AddrPort) error {
	near := machineEnd{c}
	v, err := f.dial(near, to)
	if err != nil {
		near.Abort()
		return err
	}
	v.Guard() // who waits for a host that is gone is told
	far := virtualEnd{v}
	f.onCut(func() { near.Abort(); far.Abort() })
	return f.door.relay(near, far)
}

// errLeft is why nobody is led through a door any more.
var errLeft = errors.New("the client left before there was an answer")

// dial connects to a virtual host for a client, and no longer than the client is there. A client
// that has sent its FIN may wait for an answer, or be gone: it has as long as halfHere.
func (f *flow) dial(client machineEnd, to netip.AddrPort) (*node.Conn, error) {
	ctx, cancel := context.WithCancelCause(f.door.goesOn)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if !client.leaves() {
			return
		}
		_ = client.SetReadDeadline(time.Now().Add(f.door.set.halfHere))
		if ctx.Err() == nil {
			_ = client.fails(true)
		}
		cancel(errLeft)
	}()
	v, err := f.door.set.node.TCP.Dial(ctx, to)
	cancel(nil)
	_ = client.SetReadDeadline(time.Unix(0, 1)) // who watches looks up
	<-watched
	_ = client.SetReadDeadline(time.Time{})
	if err == nil && errors.Is(context.Cause(ctx), errLeft) {
		v.Abort()
		return nil, errLeft
	}
	return v, err
}

// Expose opens a virtual port that leads to a service of this machine.
func (s *Set) Expose(r control.Expose) (*Door, error) {
	what := "expose " + strconv.Itoa(int(r.Port))
	host, port, err := net.SplitHostPort(r.To)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil ||
		number == 0 || host == "" {
		return nil, control.Misuse("%s: to %q: want HOST:PORT", what, r.To)
	}
	if r.Port == 0 {
		return nil, control.Misuse("%s: want a port from 1 to 65535", what)
	}
	if r.UDP {
		return s.exposeUDP(r.Port, r.To)
	}
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port)
	d := s.newDoor(control.DoorExpose, "tcp", strconv.Itoa(int(r.Port)), r.To)
	l, err := s.node.TCP.ListenWith(at, node.ListenOptions{
		Screen: func(c *node.Caught) { d.lead(c, c.Remote().String(), r.To) },
	})
	if err != nil {
		d.end()
		return nil, fmt.Errorf("%s: %w", what,
			s.holder(control.Reason(err), control.DoorExpose, "tcp", at))
	}
	d.addr = l.Addr()
	err = s.admit(d, func() { _ = l.Close() }, func() { <-d.ends.Done() })
	return d, err
}

// lead leads one virtual connection to a service, which is asked before the SYN is answered: what
// it refuses is refused (RFC 9293 §3.10.7.1), and where it is silent the door is too.
func (d *Door) lead(c *node.Caught, name, to string) {
	f, ok := d.enter(name, func() {})
	if !ok {
		return
	}
	near, err := d.dial("tcp", to)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			c.Reject()
		}
		f.leave(err)
		return
	}
	v, err := c.Accept()
	if err != nil {
		_ = near.Close()
		f.leave(err)
		return
	}
	f.leave(f.join(near, v))
}

// join copies between a service and a virtual connection.
func (f *flow) join(c net.Conn, v *node.Conn) error {
	conn, _ := c.(*net.TCPConn)
	near, far := machineEnd{conn}, virtualEnd{v}
	v.Guard()
	f.onCut(func() { near.Abort(); far.Abort() })
	return f.door.relay(near, far)
}

// dial connects to a service of this machine's network.
func (d *Door) dial(network, to string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	c, err := dialer.DialContext(d.goesOn, network, to)
	if err != nil {
		return nil, machineError(err)
	}
	return c, nil
}
