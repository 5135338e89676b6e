package door

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
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
	if err := s.node.ForwardAll(d.spliceTCP(r.Addr, to), d.spliceUDP(r.Addr, to)); err != nil {
		d.end()
		return nil, fmt.Errorf("splice: %w", err)
	}
	err := s.admit(d, func() {
		_ = s.node.Forward(nil) // a closed node forwards nothing
		_ = s.node.ForwardUDP(nil)
	}, func() { <-d.ends.Done() })
	return d, err
}

// owns refuses an address that is no interface's.
func (s *Set) owns(a netip.Addr) error {
	faces, err := control.Ask(context.Background(), s.node.Operator(), control.Interfaces{})
	if err != nil || slices.ContainsFunc(faces, func(f control.Interface) bool {
		return f.Addr.Addr() == a
	}) {
		return err
	}
	return control.Misuse("want an address of the node's")
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
		f.onCut(func() {
			_ = near.Close()
			_ = v.Close()
		})
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
