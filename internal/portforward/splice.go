package portforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Splice forwards every port of an address that has no listener to the same port of this machine.
func (s *Set) Splice(r control.Splice) (*Forward, error) {
	to := r.To
	if !to.IsValid() {
		to = loopback
	}
	if !control.IsHost(r.Addr) || !control.IsHost(to) {
		return nil, control.Misuse("splice %v to %v: must be addresses of hosts", r.Addr, to)
	}
	fw := s.newForward(control.DoorSplice, "tcp+udp", r.Addr.String(), to.String())
	fw.addr = &net.IPAddr{IP: r.Addr.AsSlice()}
	if err := s.owns(r.Addr); err != nil {
		fw.stopListening()
		return nil, fmt.Errorf("splice %v: %w", r.Addr, err)
	}
	err := s.node.Forwarders.TakeAll(fw.takeTCP(spliceRoute(r.Addr, to)),
		fw.takeUDP(spliceRoute(r.Addr, to)))
	if err != nil {
		fw.stopListening()
		return nil, fmt.Errorf("splice: %w", err)
	}
	err = s.admit(fw, func() {
		_ = s.node.Forwarders.TakeTCP(nil) // the error means that the node is closed
		_ = s.node.Forwarders.TakeUDP(nil)
	}, func() { <-fw.listening.Done() })
	return fw, err
}

// owns returns an error if no interface has the address.
func (s *Set) owns(a netip.Addr) error {
	return s.node.Ask(func(*stack.Stack, clock.Time) error {
		if a.IsValid() && slices.ContainsFunc(s.node.Faces(), func(f stack.Interface) bool {
			return f.Addr.Addr() == a || slices.ContainsFunc(f.IPv6,
				func(p netip.Prefix) bool { return p.Addr() == a })
		}) {
			return nil
		}
		return control.Misuse("must be an address of this node")
	})
}

// route returns where a forward of every address connects a virtual destination; false: nowhere.
type route func(to netip.AddrPort) (machine netip.AddrPort, ok bool)

func spliceRoute(addr, to netip.Addr) route {
	return func(at netip.AddrPort) (netip.AddrPort, bool) {
		return netip.AddrPortFrom(to, at.Port()), at.Addr() == addr
	}
}

func (fw *Forward) takeTCP(way route) func(*node.Caught) {
	return func(c *node.Caught) {
		if there, ok := way(c.Local()); ok {
			fw.connect(c, fw.client(c.Remote(), there), there.String())
		}
	}
}

// client names a client of a forward of every address.
func (fw *Forward) client(from, there netip.AddrPort) string {
	if fw.state.Kind == control.DoorGateway {
		return fmt.Sprintf("%v to %v", from, there)
	}
	return fmt.Sprintf("%v to port %d", from, there.Port())
}

func (fw *Forward) takeUDP(way route) func(*node.CaughtUDP) {
	return func(c *node.CaughtUDP) {
		there, ok := way(c.Local())
		if !ok {
			return
		}
		f, ok := fw.enter(fw.client(c.Remote(), there), func() {})
		if !ok {
			return
		}
		near, err := fw.dial("udp", there.String())
		if err != nil {
			f.leave(err)
			return
		}
		v, err := c.Accept()
		if err != nil {
			_ = near.Close()
			f.leave(err)
			return
		}
		end := func() {
			_ = near.Close()
			_ = v.Close()
		}
		f.onCut(end)
		f.markEvictable()
		defer context.AfterFunc(fw.listening, end)() // UDP has no FIN
		e := &exchange{flow: f, forward: fw, name: f.name, near: near, far: v}
		e.run()
		f.leave(nil)
	}
}

// exchange is a UDP flow between a service of this machine and a virtual client.
type exchange struct {
	flow    *flow
	forward *Forward
	name    string
	near    net.Conn
	far     *node.PacketConn // connected to the client

	last  atomic.Int64 // time of the last datagram, Unix nanoseconds
	asked atomic.Int64 // length of the last datagram to the service

	answered atomic.Bool // the client's next datagram confirms the flow
}

// run copies until both directions are silent.
func (e *exchange) run() {
	e.last.Store(time.Now().UnixNano())
	outward := make(chan struct{})
	go func() {
		defer close(outward)
		e.copyDirection(e.near, e.far, false)
	}()
	e.copyDirection(e.far, e.near, true)
	_ = e.near.Close() // they may be cut already
	_ = e.far.Close()
	<-outward
}

func (e *exchange) copyDirection(to, from net.Conn, in bool) {
	buf := make([]byte, maxDatagram)
	for {
		over := time.Unix(0, e.last.Load()).Add(flowSilence)
		if !time.Now().Before(over) || from.SetReadDeadline(over) != nil {
			return
		}
		who := from
		k, err := from.Read(buf)
		if err == nil {
			e.last.Store(time.Now().UnixNano())
			e.forward.count(in, k)
			if in {
				e.answered.Store(true)
			} else {
				e.asked.Store(int64(k))
				if e.answered.CompareAndSwap(true, false) {
					e.flow.confirm()
				}
			}
			who, err = to, e.write(to, buf[:k])
		}
		var slow net.Error
		switch {
		case err == nil, errors.As(err, &slow) && slow.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		default:
			e.reportError(who, err)
		}
	}
}

// write sends a datagram. A refusal is about an earlier datagram and kept this one from being sent.
func (e *exchange) write(to net.Conn, p []byte) error {
	_, err := to.Write(p)
	if refused(err) {
		e.reportError(to, err)
		_, err = to.Write(p)
	}
	return err
}

// reportError reports an ICMP error about an earlier datagram, and passes a port unreachable on.
func (e *exchange) reportError(who net.Conn, err error) {
	if refused(err) && who == e.near { // only the virtual client gets an ICMP message
		from, _ := netip.ParseAddrPort(e.far.RemoteAddr().String())
		at, _ := netip.ParseAddrPort(e.far.LocalAddr().String())
		e.far.Refuse(from, at.Addr(), int(e.asked.Load()))
	}
	e.forward.failed(e.name, machineError(err))
}

// refused reports whether err is an ICMP port unreachable.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
