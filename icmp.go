package tidepool

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
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

// Is reports whether target is the system's error of this meaning.
func (e *ICMPError) Is(target error) bool {
	return target == error(node.ReportErrno(e.Type, e.Code))
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
