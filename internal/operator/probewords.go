package operator

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// unreachables are iputils' texts for the codes of a destination unreachable (RFC 792, RFC 1812
// §5.2.7.1), and traceroute's marks.
var unreachables = []struct{ words, mark string }{
	0:  {"Destination Net Unreachable", "!N"},
	1:  {"Destination Host Unreachable", "!H"},
	2:  {"Destination Protocol Unreachable", "!P"},
	3:  {"Destination Port Unreachable", ""},
	4:  {"Frag needed and DF set", "!F"},
	5:  {"Source Route Failed", "!S"},
	6:  {"Destination Net Unknown", "!N"},
	7:  {"Destination Host Unknown", "!H"},
	8:  {"Source Host Isolated", "!N"},
	9:  {"Destination Net Prohibited", "!X"},
	10: {"Destination Host Prohibited", "!X"},
	11: {"Destination Net Unreachable for Type of Service", "!N"},
	12: {"Destination Host Unreachable for Type of Service", "!H"},
	13: {"Packet filtered", "!X"},
	14: {"Precedence Violation", "!V"},
	15: {"Precedence Cutoff", "!C"},
}

// These are the texts of ping -6 for the codes of a destination unreachable, and traceroute's marks
// (RFC 4443 §3.1).
var (
	unreachables6 = []string{
		"No route", "Administratively prohibited", "Beyond scope of source address",
		"Address unreachable", "Port unreachable",
	}
	marks6 = []string{"!N", "!X", "!H", "!H", ""}
)

// redirects are the texts for the codes of a redirect.
var redirects = []string{
	"Redirect Network", "Redirect Host", "Redirect Type of Service and Network",
	"Redirect Type of Service and Host",
}

// problemOf returns a reply's error in iputils' words, or "".
func problemOf(r *icmp.Reply) string {
	switch {
	case r.Verdict == icmp.Replied:
		return ""
	case r.Verdict == icmp.Failed:
		return failureOf(r)
	}
	switch r.Type {
	case icmp.TypeUnreachable:
		switch {
		case int(r.Code) >= len(unreachables):
			return fmt.Sprintf("Dest Unreachable, Bad Code: %d", r.Code)
		case r.Code == icmp.CodeFragNeeded:
			return fmt.Sprintf("%s (mtu = %d)", unreachables[r.Code].words, r.MTU)
		}
		return unreachables[r.Code].words
	case icmp.TypeTimeExceeded:
		switch r.Code {
		case icmp.CodeTTL:
			return "Time to live exceeded"
		case icmp.CodeReassembly:
			return "Frag reassembly time exceeded"
		}
		return fmt.Sprintf("Time exceeded, Bad Code: %d", r.Code)
	case icmp.TypeSourceQuench:
		return "Source Quench"
	case icmp.TypeRedirect:
		if int(r.Code) < len(redirects) {
			return fmt.Sprintf("%s(New nexthop: %v)", redirects[r.Code], r.Gateway)
		}
		return fmt.Sprintf("Redirect, Bad Code: %d", r.Code)
	case icmp.TypeParameterProblem:
		return fmt.Sprintf("Parameter problem: pointer = %d", r.Pointer)
	case icmp.TypeUnreachable6:
		return "Destination unreachable: " + word(r.Code, "Unknown code %d", unreachables6...)
	case icmp.TypeTooBig:
		return fmt.Sprintf("Packet too big: mtu=%d", r.MTU)
	case icmp.TypeTimeExceeded6:
		return "Time exceeded: " + word(r.Code, "code %d", "Hop limit", "Defragmentation failure")
	case icmp.TypeParameterProblem6:
		return fmt.Sprintf("Parameter problem: %s at %d", word(r.Code, "code %d",
			"Wrong header field", "Unknown header", "Unknown option"), r.Pointer)
	}
	return fmt.Sprintf("Bad ICMP type: %d", r.Type.Number())
}

func word(code uint8, format string, texts ...string) string {
	if int(code) < len(texts) {
		return texts[code]
	}
	return fmt.Sprintf(format, code)
}

// failureOf returns why a probe was not sent, in the system's words.
func failureOf(r *icmp.Reply) string {
	switch {
	case errors.Is(r.Err, stack.ErrTooBig):
		return fmt.Sprintf("local error: message too long, mtu=%d", r.MTU)
	case errors.Is(r.Err, stack.ErrNoRoute):
		return "sendmsg: Network is unreachable"
	case errors.Is(r.Err, stack.ErrInterfaceDown):
		return "sendmsg: Network is down"
	case errors.Is(r.Err, stack.ErrQueueFull):
		return "sendmsg: No buffer space available"
	}
	return "sendmsg: " + r.Err.Error()
}

// markOf returns the mark that traceroute prints after the time of an error reply.
func markOf(r *icmp.Reply) string {
	if r.Verdict != icmp.Unreachable {
		return ""
	}
	switch {
	case r.Type == icmp.TypeUnreachable6:
		return word(r.Code, "!<%d>", marks6...)
	case r.Type == icmp.TypeTooBig,
		r.Type == icmp.TypeUnreachable && r.Code == icmp.CodeFragNeeded:
		return fmt.Sprintf("!F-%d", r.MTU)
	case r.Type == icmp.TypeParameterProblem6 && r.Code == icmp.CodeNextHeader:
		return "!P"
	case r.Type != icmp.TypeUnreachable:
		return fmt.Sprintf("!<%d-%d>", r.Type.Number(), r.Code)
	case int(r.Code) >= len(unreachables):
		return fmt.Sprintf("!<%d>", r.Code)
	}
	return unreachables[r.Code].mark
}
