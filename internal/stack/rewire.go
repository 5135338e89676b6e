package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Rewire gives the running stack other interfaces, by number: those that are there are as the
// list has them from now on, those behind them are new, and one without an address is no more.
// Its number is nobody else's: the same interface may come back to it. What is wrong with the
// list is the error, and then nothing has changed.
//
// Routes follow. What is queued for an interface that is no more is dropped as for one that is
// down. Connections of addresses that are no more are the owner's to end before. RIP learns of it
// by RestartRIP.
func (s *Stack) Rewire(now clock.Time, list []Interface) error {
	list = slices.Clone(list)
	if err := s.checkWires(list); err != nil {
		return err
	}
	for i := range s.interfaces { // all of them first: addresses may change places
		if f := &s.interfaces[i]; f.Addr != list[i].Addr && f.Addr.IsValid() && f.up {
			s.routes.Remove(f.Addr.Masked(), ip.Local)
		}
	}
	s.own, s.addrs = map[ip.Addr]int{}, addresses{}
	for i, c := range list {
		if i == len(s.interfaces) {
			s.interfaces = append(s.interfaces, iface{})
		}
		f := &s.interfaces[i]
		appears := !f.Addr.IsValid() && c.Addr.IsValid()
		f.Interface = c
		if !c.Addr.IsValid() {
			f.addr, f.up = ip.Addr{}, false
			continue
		}
		f.addr, f.up = c.Addr.Addr().As4(), f.up || appears
		s.own[f.addr] = i
		s.addrs.add(f.addr, c.Addr.Bits())
	}
	for i := range s.interfaces {
		if f := &s.interfaces[i]; f.up {
			s.routes.Insert(s.localRoute(i)) // also where another's went that had the same network
		}
	}
	s.reinstallAll(now)
	s.rerouted()
	return nil
}

// checkWires reports what is wrong with interfaces that are to be, with defaults for zeros.
func (s *Stack) checkWires(list []Interface) error {
	if len(list) < len(s.interfaces) {
		return errors.New("stack: interfaces keep their numbers, and there are more")
	}
	own := map[netip.Addr]string{}
	for i := range list {
		c := &list[i]
		if !c.Addr.IsValid() {
			*c = Interface{}
			continue
		}
		if err := c.check(); err != nil {
			return err
		}
		if other, dup := own[c.Addr.Addr()]; dup {
			return fmt.Errorf("stack: interfaces %s and %s have the same address %v", other, c.Name,
				c.Addr.Addr())
		}
		own[c.Addr.Addr()] = c.Name
	}
	if len(own) == 0 {
		return errors.New("stack: no interfaces")
	}
	return nil
}

// check reports what is wrong with an interface, and gives it the default for a zero.
func (c *Interface) check() error {
	if !c.Addr.IsValid() || !c.Addr.Addr().Is4() {
		return fmt.Errorf("stack: interface %s: address %v is not IPv4", c.Name, c.Addr)
	}
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.MTU < ip.MinMTU || c.MTU > ip.MaxPacketLen {
		return fmt.Errorf("stack: interface %s: MTU %d: want %d to %d", c.Name, c.MTU,
			ip.MinMTU, ip.MaxPacketLen)
	}
	return nil
}
