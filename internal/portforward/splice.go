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

// Splice has every port of an address that nothing listens on lead to this machine's port of that
// number.
func (s *Set) Splice(r control.Splice) (*Door, error) {
	to := r.To
	if !to.IsValid() {
		to = loopback
	}
	if !control.IsHost(r.Addr) || !control.IsHost(to) {
		return nil, control.Misuse("splice %v to %v: want the addresses of hosts", r.Addr, to)
	}
	d := s.newDoor(control.DoorSplice, "tcp+udp", r.Addr.String(), to.String())
	d.addr = &net.IPAddr{IP: r.Addr.AsSlice()}
	if err := s.owns(r.Addr); err != nil {
		d.end()
		return nil, fmt.Errorf("splice %v: %w", r.Addr, err)
	}
	err := s.node.Forwarders.TakeAll(d.spliceTCP(r.Addr, to), d.spliceUDP(r.Addr, to))
	if err != nil {
		d.end()
		return nil, fmt.Errorf("splice: %w", err)
	}
	err = s.admit(d, func() {
		_ = s.node.Forwarders.TakeTCP(nil) // a closed node forwards nothing
		_ = s.node.Forwarders.TakeUDP(nil)
	}, func() { <-d.ends.Done() })
	return d, err
}

// owns refuses an address that is no interface's.
func (s *Set) owns(a netip.Addr) error {
	return s.node.Ask(func(*stack.Stack, clock.Time) error {
		if a.IsValid() && slices.ContainsFunc(s.node.Faces(), func(f stack.Interface) bool {
			return f.Addr.Addr() == a
		}) {
			return nil
		}
		return control.Misuse("want an address of the node's")
	})
}

// spliceTCP leads on one connection.
func (d *Door) spliceTCP(addr, to netip.Addr) func(*node.Caught) {
	return func(c *node.Caught) {
		if c.Local().Addr() == addr {
			there := netip.AddrPortFrom(to, c.Local().Port())
			d.lead(c, fmt.Sprintf("%v to port %d", c.Remote(), there.Port()), there.String())
		}
	}
}

// spliceUDP leads on one flow of datagrams.
func (d *Door) spliceUDP(addr, to netip.Addr) func(*node.CaughtUDP) {
	return func(c *node.CaughtUDP) {
		if c.Local().Addr() != addr {
			return
		}
		there := netip.AddrPortFrom(to, c.Local().Port())
		f, ok := d.enter(fmt.Sprintf("%v to port %d", c.Remote(), there.Port()), func() {})
		if !ok {
			return
		}
		near, err := d.dial("udp", there.String())
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
		f.mayGo()
		defer context.AfterFunc(d.ends, end)() // it has no end of its own
		e := &exchange{flow: f, door: d, name: f.name, near: near, far: v}
		e.run()
		f.leave(nil)
	}
}

// exchange is a flow of datagrams between a service of this machine and a virtual sender.
type exchange struct {
	flow *flow
	door *Door
	name string
	near net.Conn
	far  *node.PacketConn // connected

	last  atomic.Int64 // when a datagram passed, Unix nanoseconds
	asked atomic.Int64 // how long the last was that went to the service

	answered atomic.Bool // as a datagramFlow's
}

// run copies until both have been silent.
func (e *exchange) run() {
	e.last.Store(time.Now().UnixNano())
	outward := make(chan struct{})
	go func() {
		defer close(outward)
		e.way(e.near, e.far, false)
	}()
	e.way(e.far, e.near, true)
	_ = e.near.Close() // they may be cut
	_ = e.far.Close()
	<-outward
}

func (e *exchange) way(to, from net.Conn, in bool) {
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
			e.door.count(in, k)
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
			e.wrong(who, err)
		}
	}
}

// write writes a datagram. The socket's error is of an earlier one, and kept this one back.
func (e *exchange) write(to net.Conn, p []byte) error {
	_, err := to.Write(p)
	if refused(err) {
		e.wrong(to, err)
		_, err = to.Write(p)
	}
	return err
}

// wrong tells what ICMP has reported about an earlier datagram, and passes on that nobody has the
// port.
func (e *exchange) wrong(who net.Conn, err error) {
	if refused(err) && who == e.near { // that nobody has the sender's is not for him to hear
		from, _ := netip.ParseAddrPort(e.far.RemoteAddr().String())
		at, _ := netip.ParseAddrPort(e.far.LocalAddr().String())
		e.far.Refuse(from, at.Addr(), int(e.asked.Load()))
	}
	e.door.failed(e.name, machineError(err))
}

// refused reports whether ICMP has said that nobody has a port.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
