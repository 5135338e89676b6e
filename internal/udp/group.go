package udp

import (
	"errors"
	"net/netip"
	"slices"
)

// These are errors of memberships.
var (
	// ErrJoined means that the socket is already a member of the group on that interface.
	ErrJoined = errors.New("already a member of the group")
	// ErrNotMember means that the socket is not a member of the group on that interface.
	ErrNotMember = errors.New("not a member of the group")
	// ErrTooManyGroups means that the socket already has MaxGroups memberships.
	ErrTooManyGroups = errors.New("member of too many groups")
)

// MaxGroups is the maximum number of a socket's memberships.
const MaxGroups = 20

// membership is a group on the link of one interface (RFC 1112 §7.1).
type membership struct {
	iface int
	group netip.Addr
}

// Join makes the socket receive datagrams to a group that arrive on an interface. The caller checks
// that the group and the interface exist.
func (s *Socket) Join(iface int, group netip.Addr) error {
	m := membership{iface, group}
	switch {
	case s.closed:
		return ErrNotMember
	case slices.Contains(s.groups, m):
		return ErrJoined
	case len(s.groups) >= MaxGroups:
		return ErrTooManyGroups
	}
	s.groups = append(s.groups, m)
	s.host.groups[m]++
	s.host.changes++
	return nil
}

// Leave reverses Join. Closing a socket leaves all its groups.
func (s *Socket) Leave(iface int, group netip.Addr) error {
	m := membership{iface, group}
	i := slices.Index(s.groups, m)
	if i < 0 {
		return ErrNotMember
	}
	s.groups = slices.Delete(s.groups, i, i+1)
	s.host.leave(m)
	return nil
}

func (h *Host) leave(m membership) {
	h.changes++
	if h.groups[m]--; h.groups[m] == 0 {
		delete(h.groups, m)
	}
}

// Joined reports whether a socket is a member of the group on that interface's link.
func (h *Host) Joined(iface int, group netip.Addr) bool {
	return len(h.groups) > 0 && h.groups[membership{iface, group}] > 0
}

// Groups appends the groups on that interface's link that have a member, in no order, to list.
func (h *Host) Groups(list []netip.Addr, iface int) []netip.Addr {
	for m := range h.groups {
		if m.iface == iface {
			list = append(list, m.group)
		}
	}
	return list
}

// GroupChanges returns a number that changes with the memberships.
func (h *Host) GroupChanges() int { return h.changes }
