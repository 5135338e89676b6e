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

// loopback is the default listening address.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Publish forwards a port of this machine to a virtual host.
func (s *Set) Publish(r control.Publish) (*Forward, error) {
	on := r.On
	if !on.IsValid() {
		on = loopback
	}
	from := netip.AddrPortFrom(on, r.Port)
	what := "publish " + from.String()
	if !control.IsHost(r.To.Addr()) || r.To.Port() == 0 {
		return nil, control.Misuse(
			"%s: to %v: must be the address of a virtual host and a port from 1", what, r.To)
	}
	if on.IsMulticast() {
		return nil, control.Misuse("%s: must be an address of this machine", what)
	}
	if r.UDP {
		return s.publishUDP(from, r.To)
	}
	return s.listen(control.DoorPublish, from, r.To.String(), func(f *flow, c *net.TCPConn) error {
		return f.publish(c, r.To)
	})
}

// listen opens a TCP port of this machine, and calls serve for each connection to it.
func (s *Set) listen(
	kind control.DoorKind, from netip.AddrPort, to string, serve func(*flow, *net.TCPConn) error,
) (*Forward, error) {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", from.String())
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", kind, from,
			s.holder(machineError(err), kind, "tcp", from))
	}
	fw := s.newForward(kind, "tcp", l.Addr().String(), to)
	fw.addr = l.Addr()
	run := func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if fw.listening.Err() != nil {
					return
				}
				fw.failed(fw.state.From, err) // for example, there are too many open files
				if !fw.pause() {
					return
				}
				continue
			}
			conn, _ := c.(*net.TCPConn)
			f, ok := fw.enter(conn.RemoteAddr().String(), machineEnd{conn}.Abort)
			if !ok {
				machineEnd{conn}.Abort()
				return
			}
			go func() { f.leave(serve(f, conn)) }()
		}
	}
	err = s.admit(fw, func() { _ = l.Close() }, run)
	return fw, err
}

// publish forwards one connection of this machine to a virtual host.
func (f *flow) publish(c *net.TCPConn, to netip.AddrPort) error {
	near := machineEnd{c}
	v, err := f.dial(near, to)
	if err != nil {
		near.Abort()
		return err
	}
	v.Guard() // keepalive probes detect that a virtual host is gone
	return f.join(near, v)
}

// errLeft means that the client closed its connection before the virtual host answered.
var errLeft = errors.New("the client disconnected before the virtual host answered")

// dial connects to a virtual host, and gives up when the client leaves. A client that has sent its
// FIN may still wait for an answer, or be gone, so the host must answer within halfCloseTimeout.
func (f *flow) dial(client machineEnd, to netip.AddrPort) (*node.Conn, error) {
	ctx, cancel := context.WithCancelCause(f.forward.flowing)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if !client.awaitFIN() {
			return
		}
		_ = client.SetReadDeadline(time.Now().Add(f.forward.set.halfCloseTimeout))
		if ctx.Err() == nil {
			_ = client.failed(true)
		}
		cancel(errLeft)
	}()
	v, err := f.forward.set.node.TCP.Dial(ctx, to)
	cancel(nil)
	_ = client.SetReadDeadline(time.Unix(0, 1)) // ends the goroutine's wait
	<-watched
	_ = client.SetReadDeadline(time.Time{})
	if err == nil && errors.Is(context.Cause(ctx), errLeft) {
		v.Abort()
		return nil, errLeft
	}
	return v, err
}

// Expose forwards a virtual port to a service of this machine.
func (s *Set) Expose(r control.Expose) (*Forward, error) {
	what := "expose " + strconv.Itoa(int(r.Port))
	host, port, err := net.SplitHostPort(r.To)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil ||
		number == 0 || host == "" {
		return nil, control.Misuse("%s: to %q: must be HOST:PORT", what, r.To)
	}
	if r.Port == 0 {
		return nil, control.Misuse("%s: must be a port from 1 to 65535", what)
	}
	if r.UDP {
		return s.exposeUDP(r.Port, r.To)
	}
	at := s.node.AllAddrs(r.Port)
	fw := s.newForward(control.DoorExpose, "tcp", strconv.Itoa(int(r.Port)), r.To)
	l, err := s.node.TCP.ListenWith(at, node.ListenOptions{
		Screen: func(c *node.Caught) { fw.connect(c, c.Remote().String(), r.To) },
	})
	if err != nil {
		fw.stopListening()
		return nil, fmt.Errorf("%s: %w", what,
			s.holder(control.Reason(err), control.DoorExpose, "tcp", at))
	}
	fw.addr = l.Addr()
	err = s.admit(fw, func() { _ = l.Close() }, func() { <-fw.listening.Done() })
	return fw, err
}

// connect connects to the service before the SYN of c is answered. If the service refuses, c is
// refused (RFC 9293 §3.10.7.1). If it does not answer, the SYN is not answered either.
func (fw *Forward) connect(c *node.Caught, name, to string) {
	f, ok := fw.enter(name, func() {})
	if !ok {
		return
	}
	near, err := fw.dial("tcp", to)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) ||
			fw.state.Kind == control.DoorGateway && unreachable(err) {
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
	v.Guard()
	conn, _ := near.(*net.TCPConn)
	f.leave(f.join(machineEnd{conn}, v))
}

// join relays between a connection of this machine and a virtual one.
func (f *flow) join(near machineEnd, v *node.Conn) error {
	far := virtualEnd{v}
	f.onCut(func() { near.Abort(); far.Abort() })
	return f.forward.relay(near, far)
}

// dial connects to a service in this machine's network.
func (fw *Forward) dial(network, to string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c, err := dialer.DialContext(fw.flowing, network, to)
	if err != nil {
		return nil, machineError(err)
	}
	return c, nil
}
