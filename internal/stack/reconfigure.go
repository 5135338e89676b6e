package stack

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Reconfigure replaces the interfaces of a running stack. Interfaces are identified by their index
// in the list. Additional interfaces are new, and an interface without an address is deleted. Its
// index is only used again if the interface comes back. If the list is invalid, Reconfigure returns
// an error and changes nothing.
//
// Packets queued for deleted interfaces are dropped. The caller first ends the connections of
// deleted addresses, and afterwards calls RIP.Restart.
func (s *Stack) Reconfigure(now clock.Time, list []Interface) error {
	list = slices.Clone(list)
	if err := s.ifs.checkInterfaces(list); err != nil {
		return err
	}
	s.discovery.configure(now, list)
	s.routing.reconfigure(now, list)
	s.discovery.begin(now)
	return nil
}

// reconfigure replaces the interfaces, whose list checkInterfaces has checked.
func (rt *Routing) reconfigure(now clock.Time, list []Interface) {
	for i := range rt.ifs.list { // removes before inserting: interfaces may exchange addresses
		if f := &rt.ifs.list[i]; f.up {
			rt.removeLocal(i)
		}
	}
	rt.ifs.set(list)
	for i := range rt.ifs.list {
		if f := &rt.ifs.list[i]; f.up {
			// Another interface with the same network may have lost its route above.
			rt.insertLocal(i)
		}
	}
	rt.reinstallAll(now)
	rt.changed()
}

// SetUp takes interface i up or down. An interface that is down drops packets in both directions,
// and its network is withdrawn at once.
func (s *Stack) SetUp(now clock.Time, i int, up bool) {
	in := &s.ifs.list[i]
	if in.up == up {
		return
	}
	if len(s.rips)+len(s.discovery.list) > 0 && !up {
		s.discovery.setUp(now, i, false)
		for _, rp := range s.rips {
			rp.speaker.Withdraw(i)
			rp.output(now)
		}
		for k := range s.out.packets {
			s.out.packets[k].last = true // the packet is sent although the interface will be down
		}
	}
	in.up = up
	if up {
		s.routing.insertLocal(i)
	} else {
		s.routing.removeLocal(i)
	}
	s.routing.reinstall(now, i)
	for _, rp := range s.rips {
		rp.setLocal(now, i, up)
		rp.applyChanges()
	}
	s.routing.changed()
	if up {
		s.discovery.setUp(now, i, true)
	}
}

// SetLoss drops the share p, from 0 to 1, of the packets that are forwarded over interface i in
// either direction.
func (s *Stack) SetLoss(i int, p float64) {
	s.ifs.list[i].loss = p
	s.routing.forget()
}
