package icmp

import "fmt"

// ReportError is an error message as an error: what its type and code say (RFC 792, RFC 1122
// §3.2.2.1, RFC 1812 §5.2.7.1).
type ReportError struct{ Type, Code uint8 }

// Report returns the contents of an error message as an error.
func (m *Message) Report() ReportError { return ReportError{m.Type, m.Code} }

// unreachables describes the codes of a destination unreachable.
var unreachables = [...]struct {
	text string
	// lasting is false if a later packet may arrive: RFC 1122 §3.2.2.1 treats codes 0, 1 and 5 as
	// hints, and 11 and 12 concern one type of service.
	lasting bool
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

// Error implements error.
func (r ReportError) Error() string {
	switch {
	case r.Type == TypeUnreachable && int(r.Code) < len(unreachables):
		return unreachables[r.Code].text
	case r.Type == TypeTimeExceeded && r.Code == CodeTTL:
		return "time to live exceeded"
	case r.Type == TypeTimeExceeded && r.Code == CodeReassembly:
		return "fragment reassembly time exceeded"
	case r.Type == TypeParameterProblem:
		return fmt.Sprintf("parameter problem, code %d", r.Code)
	}
	return fmt.Sprintf("ICMP error of type %d, code %d", r.Type, r.Code)
}

// Refuses reports whether the destination refuses packets of that protocol or port. RFC 1122
// §4.2.3.9 and RFC 9293 §3.9.2.2: hard errors. Code 4, the third of them, is now used by path MTU
// discovery (RFC 1191 §6.2).
func (r ReportError) Refuses() bool {
	return r.Type == TypeUnreachable && (r.Code == CodeProtocol || r.Code == CodePort)
}

// Lasting reports whether resending the packet is useless according to the report. These are the
// reports that Linux passes to connected UDP sockets.
func (r ReportError) Lasting() bool {
	switch r.Type {
	case TypeUnreachable:
		return int(r.Code) < len(unreachables) && unreachables[r.Code].lasting
	case TypeParameterProblem:
		return true
	}
	return false
}
