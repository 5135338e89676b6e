package node

import (
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
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Splice has every port of an address that nothing listens on lead to this machine's port of that
// number.
func (n *Node) Splice(r control.Splice) (*Door, error) {
	to := r.To
	if !to.IsValid() {
		to = loopback
	}
	if !isHost(r.Addr) || !isHost(to) {
		return nil, misuse("splice %v to %v: want the addresses of hosts", r.Addr, to)
	}
	d := newDoor(n, control.DoorSplice, "tcp+udp", r.Addr.String(), to.String())
	d.addr = &net.IPAddr{IP: r.Addr.AsSlice()}
	var err error
	callErr := n.call(func(clock.Time) {
		switch {
		case !n.hasAddr(r.Addr):
			err = misuse("splice %v: want an address of the node's", r.Addr)
		case n.forwarder != nil || n.udpForwarder != nil:
			err = fmt.Errorf("splice: %w: something takes every port already",
				control.ErrPortInUse)
		default:
			n.forwarder, n.udpForwarder = d.spliceTCP(r.Addr, to), d.spliceUDP(r.Addr, to)
			n.stack.Catch(maxCaught)
			n.stack.CatchUDP(maxCaught)
		}
	})
	if err = firstError(callErr, err); err != nil {
		d.end()
		return nil, err
	}
	err = n.admit(d, func() {
		_ = n.Forward(nil) // a closed node forwards nothing
		_ = n.ForwardUDP(nil)
	}, func() { <-d.ends.Done() })
	return d, err
}

// hasAddr reports whether an address is an interface's.
func (n *Node) hasAddr(a netip.Addr) bool {
	return slices.ContainsFunc(n.cfg.LNX.Interfaces, func(f lnx.Interface) bool {
		return f.Addr.Addr() == a
	})
}

// spliceTCP asks the machine before it answers, so that what the machine refuses is refused.
func (d *Door) spliceTCP(addr, to netip.Addr) func(*Caught) {
	return func(c *Caught) {
		if c.Local().Addr() != addr {
			return
		}
		there := netip.AddrPortFrom(to, c.Local().Port())
		f, ok := d.enter(fmt.Sprintf("%v to port %d", c.Remote(), there.Port()), func() {})
		if !ok {
			return
		}
		near, err := d.dial("tcp", there.String())
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
}

// spliceUDP leads on one flow of datagrams.
func (d *Door) spliceUDP(addr, to netip.Addr) func(*CaughtUDP) {
	return func(c *CaughtUDP) {
		if c.Local().Addr() != addr {
			return
		}
		there := netip.AddrPortFrom(to, c.Local().Port())
		near, err := d.dial("udp", there.String())
		if err != nil {
			d.failed(c.Remote().String(), err)
			return
		}
		v, err := c.Accept()
		if err != nil {
			_ = near.Close()
			d.failed(c.Remote().String(), err)
			return
		}
		f, ok := d.enter(fmt.Sprintf("%v to port %d", c.Remote(), there.Port()), func() {
			_ = near.Close()
			_ = v.Close()
		})
		if !ok {
			_ = near.Close()
			_ = v.Close()
			return
		}
		d.datagrams(near, v)
		f.leave(nil)
	}
}

// datagrams copies between two connected sockets until both have been silent.
func (d *Door) datagrams(near, far net.Conn) {
	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	outward := make(chan struct{})
	go func() {
		defer close(outward)
		d.datagramsOneWay(near, far, false, &last)
	}()
	d.datagramsOneWay(far, near, true, &last)
	_ = near.Close() // they may be cut
	_ = far.Close()
	<-outward
}

func (d *Door) datagramsOneWay(to, from net.Conn, in bool, last *atomic.Int64) {
	buf := make([]byte, maxDatagram)
	for {
		over := time.Unix(0, last.Load()).Add(flowSilence)
		if !time.Now().Before(over) || from.SetReadDeadline(over) != nil {
			return
		}
		k, err := from.Read(buf)
		if err == nil {
			last.Store(time.Now().UnixNano())
			d.count(in, k)
			_, err = to.Write(buf[:k])
		}
		var slow net.Error
		switch {
		case err == nil, errors.As(err, &slow) && slow.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		default: // ICMP's report about an earlier one
			d.failed(from.RemoteAddr().String(), machineError(err))
		}
	}
}
