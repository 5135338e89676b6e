package icmp

import "fmt"

// ReportError is an ICMP error message as a Go error. Its text describes the type and code (RFC
// 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1, RFC 4443 §3).
type ReportError struct {
	Type Type
	Code uint8
}

// Report returns the contents of an error message as an error.
func (m *Message) Report() ReportError { return ReportError{m.Type, m.Code} }

// errTooBig is the error about a packet that is too big for the next link.
var errTooBig = ReportError{TypeUnreachable, CodeFragNeeded}

// toGroup reports whether an error about a packet to a group may be sent (RFC 4443 §2.4).
func (r ReportError) toGroup() bool {
	return r == errTooBig || r.Type == TypeTooBig ||
		r == ReportError{TypeParameterProblem6, CodeOption}
}

// toICMPv6 returns the ICMPv6 error with the meaning of an ICMP error (RFC 7915 §4.2, RFC 4443 §3).
// Where toICMPv6 returns address unreachable, RFC 7915 has no route, because a translator is not on
// the link.
func (r ReportError) toICMPv6() ReportError {
	if r.Type.Is6() {
		return r
	}
	switch r.Type {
	case TypeTimeExceeded:
		return ReportError{TypeTimeExceeded6, r.Code}
	case TypeParameterProblem:
		return ReportError{TypeParameterProblem6, CodeHeaderField}
	}
	switch r.Code {
	case CodeHost:
		return ReportError{TypeUnreachable6, CodeAddress}
	case CodeProtocol:
		return ReportError{TypeParameterProblem6, CodeNextHeader}
	case CodePort:
		return ReportError{TypeUnreachable6, CodePort6}
	case CodeFragNeeded:
		return ReportError{TypeTooBig, 0}
	case CodeNetProhibited, CodeHostProhibited, CodeAdminProhibited:
		return ReportError{TypeUnreachable6, CodeProhibited6}
	}
	return ReportError{TypeUnreachable6, CodeNoRoute}
}

// unreachables describes the codes of a destination unreachable.
var unreachables = [...]struct {
	text string
	// permanent is false if a later packet may arrive: RFC 1122 §3.2.2.1 treats codes 0, 1 and 5 as
	// hints, and codes 11 and 12 concern only one type of service.
	permanent bool
}{
	CodeNet:             {"network unreachable", false},
	CodeHost:            {"host unreachable", false},
	CodeProtocol:        {"protocol unreachable", true},
	CodePort:            {"port unreachable", true},
	CodeFragNeeded:      {"packet too big", false},
	CodeSourceRoute:     {"source route failed", false},
	6:                   {"network unknown", true},
	7:                   {"host unknown", true},
	8:                   {"source host isolated", true},
	CodeNetProhibited:   {"network prohibited", true},
	CodeHostProhibited:  {"host prohibited", true},
	11:                  {"network unreachable for the type of service", false},
	12:                  {"host unreachable for the type of service", false},
	CodeAdminProhibited: {"communication prohibited", true},
	14:                  {"precedence violation", true},
	15:                  {"precedence cutoff", true},
}

// unreachables6 describes the codes of an ICMPv6 destination unreachable (RFC 4443 §3.1). RFC 9293
// §3.9.2.2 treats codes 1 and 4 as hard errors; Linux also treats 5 and 6 so.
var unreachables6 = [...]struct {
	text      string
	permanent bool
}{
	CodeNoRoute:      {"no route to destination", false},
	CodeProhibited6:  {"communication prohibited", true},
	CodeScope:        {"beyond scope of source address", false},
	CodeAddress:      {"address unreachable", false},
	CodePort6:        {"port unreachable", true},
	CodeSourcePolicy: {"source address failed policy", true},
	CodeRejectRoute:  {"reject route to destination", true},
}

// Error implements error.
func (r ReportError) Error() string {
	switch {
	case r.Type == TypeUnreachable && int(r.Code) < len(unreachables):
		return unreachables[r.Code].text
	case r.Type == TypeUnreachable6 && int(r.Code) < len(unreachables6):
		return unreachables6[r.Code].text
	case r.Type == TypeTooBig:
		return unreachables[CodeFragNeeded].text
	case r == ReportError{TypeTimeExceeded, CodeTTL}:
		return "time to live exceeded"
	case r == ReportError{TypeTimeExceeded6, CodeTTL}:
		return "hop limit exceeded"
	case r == ReportError{TypeTimeExceeded, CodeReassembly},
		r == ReportError{TypeTimeExceeded6, CodeReassembly}:
		return "fragment reassembly time exceeded"
	case r == ReportError{TypeParameterProblem6, CodeNextHeader}:
		return unreachables[CodeProtocol].text
	case r.isParameterProblem():
		return fmt.Sprintf("parameter problem, code %d", r.Code)
	case r.Type.Is6():
		return fmt.Sprintf("ICMPv6 error of type %d, code %d", r.Type.Number(), r.Code)
	}
	return fmt.Sprintf("ICMP error of type %d, code %d", r.Type, r.Code)
}

func (r ReportError) isParameterProblem() bool {
	return r.Type == TypeParameterProblem || r.Type == TypeParameterProblem6
}

// Refuses reports whether the destination refuses packets of that protocol or port. RFC 1122
// §4.2.3.9 and RFC 9293 §3.9.2.2 call these hard errors. Code 4, the third of them, is now used by
// path MTU discovery (RFC 1191 §6.2). A prohibition is not a refusal: RFC 9293 lets it abort a
// connection only if it is an ICMPv6 error.
func (r ReportError) Refuses() bool {
	switch r {
	case ReportError{TypeUnreachable, CodeProtocol}, ReportError{TypeUnreachable, CodePort},
		ReportError{TypeUnreachable6, CodePort6}:
		return true
	}
	return false
}

// Permanent reports whether resending the packet is useless according to the report. These are the
// reports that Linux passes to connected UDP sockets.
func (r ReportError) Permanent() bool {
	switch r.Type {
	case TypeUnreachable:
		return int(r.Code) < len(unreachables) && unreachables[r.Code].permanent
	case TypeUnreachable6:
		return int(r.Code) < len(unreachables6) && unreachables6[r.Code].permanent
	}
	return r.isParameterProblem()
}
