package tidepool

import (
	"net/netip"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
)

// ICMPError is a report that a packet did not arrive, by a router or by the host that it
// was for (RFC 792). For errors.Is it is the system's error of that meaning too:
// ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EMSGSIZE and so on.
type ICMPError struct {
	From       netip.Addr // who reports
	Type, Code uint8      // of the message
	MTU        int        // of the link that a packet was too large for; 0: not told
	words      string
}

// Error is what ping says of it.
func (e *ICMPError) Error() string { return e.words }

// The types of message that Is tells apart.
const (
	icmpUnreachable  = 3
	icmpTimeExceeded = 11
)

// unreachableErrors are the system's errors for the codes of a destination unreachable;
// what lies behind is EHOSTUNREACH.
var unreachableErrors = []syscall.Errno{
	0: syscall.ENETUNREACH, 1: syscall.EHOSTUNREACH, 2: syscall.ENOPROTOOPT,
	3: syscall.ECONNREFUSED, 4: syscall.EMSGSIZE, 5: syscall.EOPNOTSUPP,
	6: syscall.ENETUNREACH, 7: syscall.EHOSTUNREACH, 8: syscall.ENETUNREACH,
	9: syscall.ENETUNREACH, 10: syscall.EHOSTUNREACH, 11: syscall.ENETUNREACH,
}

// Is reports whether target is the system's error of this meaning.
func (e *ICMPError) Is(target error) bool {
	is := syscall.EHOSTUNREACH
	switch {
	case e.Type == icmpUnreachable && int(e.Code) < len(unreachableErrors):
		is = unreachableErrors[e.Code]
	case e.Type != icmpUnreachable && e.Type != icmpTimeExceeded:
		is = syscall.EPROTO
	}
	return target == error(is)
}

// icmpError is the error of a reply, nil if it is none.
func icmpError(r *control.Reply) error {
	switch {
	case r.Local:
		return r.Err
	case r.Problem == "":
		return nil
	}
	return &ICMPError{From: r.From, Type: r.Type, Code: r.Code, MTU: r.MTU, words: r.Problem}
}
