package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// NeighborLost says that nobody is at the address of a neighbour on interface i any more:
// RIP withdraws what it has learned from it.
func (s *Stack) NeighborLost(now clock.Time, i int, addr netip.Addr) {
	if s.rip != nil {
		s.rip.Lost(now, addr, i)
		s.learn()
	}
}

// NeighborFound says that somebody is there again: RIP asks what it would hear in the end.
func (s *Stack) NeighborFound(i int, addr netip.Addr) {
	if s.rip != nil {
		s.rip.Found(addr, i)
	}
}
