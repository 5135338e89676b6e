package udp

import (
	"errors"
	"slices"
)

// Errors of a socket's memberships.
var (
	// ErrJoined is a group that the socket has joined there already.
	ErrJoined = errors.New("already a member of the group")
	// ErrNotMember is a group that the socket has not joined there.
	ErrNotMember = errors.New("not a member of the group")
	// ErrTooManyGroups is a socket that is a member of MaxGroups already.
	ErrTooManyGroups = errors.New("member of too many groups")
)

// MaxGroups is how many memberships a socket may have.
const MaxGroups = 20

// membership is a group on the link of one interface (RFC 1112 §7.1).
type membership struct {
	iface int
	group Addr
}

// Join has the socket receive what interface iface brings for a group. The caller
// has made sure that both exist.
func (s *Socket) Join(iface int, group Addr) error {
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
	return nil
}

// Leave undoes Join. A socket that is closed leaves all of its groups.
func (s *Socket) Leave(iface int, group Addr) error {
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
	if h.groups[m]--; h.groups[m] == 0 {
		delete(h.groups, m)
	}
}

// Joined reports whether a socket is a member of the group on that interface's link.
func (h *Host) Joined(iface int, group Addr) bool {
	return len(h.groups) > 0 && h.groups[membership{iface, group}] > 0
}
