package stack

import (
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
// by RIP.Restart.
func (s *Stack) Rewire(now clock.Time, list []Interface) error {
	list = slices.Clone(list)
	if err := s.ifs.checkWires(list); err != nil {
		return err
	}
	for i := range s.ifs.list { // all of them first: addresses may change places
		if f := &s.ifs.list[i]; f.Addr != list[i].Addr && f.Addr.IsValid() && f.up {
			s.routing.table.Remove(f.Addr.Masked(), ip.Local)
		}
	}
	s.ifs.set(list)
	for i := range s.ifs.list {
		if f := &s.ifs.list[i]; f.up {
			// Also where another's went that had the same network.
			s.routing.table.Insert(s.routing.localRoute(i))
		}
	}
	s.routing.reinstallAll(now)
	s.routing.changed()
	return nil
}

// SetUp takes interface i up or down. Down, it drops what arrives, sends
// nothing, and its network is withdrawn at once.
func (s *Stack) SetUp(now clock.Time, i int, up bool) {
	in := &s.ifs.list[i]
	if in.up == up {
		return
	}
	if s.rip.speaker != nil && !up {
		s.rip.speaker.Farewell(i)
		s.rip.output(now)
		for k := range s.out.packets {
			s.out.packets[k].last = true // it leaves although its interface is down by then
		}
	}
	in.up = up
	if up {
		s.routing.table.Insert(s.routing.localRoute(i))
	} else {
		s.routing.table.Remove(in.Addr.Masked(), ip.Local)
	}
	s.routing.reinstall(now, i)
	if s.rip.speaker != nil {
		s.rip.speaker.SetLocal(now, in.Addr.Masked(), i, up)
		s.rip.learn()
	}
	s.routing.changed()
}

// SetLoss has the share p (0 to 1) of the packets that are forwarded over
// interface i, in either direction, dropped.
func (s *Stack) SetLoss(i int, p float64) {
	s.ifs.list[i].loss = p
	s.routing.forget()
}
