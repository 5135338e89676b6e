package stack

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Rewire replaces the interfaces of a running stack. An interface keeps its number; additional ones
// are new, and one without an address is deleted. A deleted interface's number is only used again
// if the interface comes back. If the list is wrong, Rewire returns an error and changes nothing.
//
// Rewire updates the routes. Packets queued for a deleted interface are dropped, as for one that is
// down. The caller first ends the connections of deleted addresses, and then calls RIP.Restart.
func (s *Stack) Rewire(now clock.Time, list []Interface) error {
	list = slices.Clone(list)
	if err := s.ifs.checkWires(list); err != nil {
		return err
	}
	for i := range s.ifs.list { // before any is inserted: two interfaces may exchange addresses
		if f := &s.ifs.list[i]; f.Addr != list[i].Addr && f.Addr.IsValid() && f.up {
			s.routing.table.Remove(f.Addr.Masked(), ip.Local)
		}
	}
	s.ifs.set(list)
	for i := range s.ifs.list {
		if f := &s.ifs.list[i]; f.up {
			// Another interface with the same network may have lost its route above.
			s.routing.table.Insert(s.routing.localRoute(i))
		}
	}
	s.routing.reinstallAll(now)
	s.routing.changed()
	return nil
}

// SetUp takes interface i up or down. An interface that is down drops packets in both directions,
// and its network is withdrawn at once.
func (s *Stack) SetUp(now clock.Time, i int, up bool) {
	in := &s.ifs.list[i]
	if in.up == up {
		return
	}
	if s.rip.speaker != nil && !up {
		s.rip.speaker.Farewell(i)
		s.rip.output(now)
		for k := range s.out.packets {
			s.out.packets[k].last = true // it is sent although the interface is down by then
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

// SetLoss drops the share p, from 0 to 1, of the packets that are forwarded over interface i in
// either direction.
func (s *Stack) SetLoss(i int, p float64) {
	s.ifs.list[i].loss = p
	s.routing.forget()
}
