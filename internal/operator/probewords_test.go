package operator

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// The texts are those of iputils and traceroute, for the messages of RFC 792, RFC 1812 §5.2.7.1 and
// RFC 4443 §3.1.
func TestTextsOfICMPErrors(t *testing.T) {
	for _, tt := range []struct {
		a           icmp.Answer
		words, mark string
	}{
		{icmp.Answer{}, "", ""},
		{icmp.Answer{Verdict: icmp.Expired, Type: 11}, "Time to live exceeded", ""},
		{icmp.Answer{Verdict: icmp.Expired, Type: 11, Code: 1}, "Frag reassembly time exceeded", ""},
		{icmp.Answer{Verdict: icmp.Expired, Type: 11, Code: 2}, "Time exceeded, Bad Code: 2", ""},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3}, "Destination Net Unreachable", "!N"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 1}, "Destination Host Unreachable", "!H"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 2}, "Destination Protocol Unreachable", "!P"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 3}, "Destination Port Unreachable", ""},
		{
			icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 4, MTU: 576},
			"Frag needed and DF set (mtu = 576)", "!F-576",
		},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 5}, "Source Route Failed", "!S"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 9}, "Destination Net Prohibited", "!X"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 13}, "Packet filtered", "!X"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 15}, "Precedence Cutoff", "!C"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: 3, Code: 16}, "Dest Unreachable, Bad Code: 16", "!<16>"},
		{
			icmp.Answer{Verdict: icmp.Unreachable, Type: 12, Pointer: 20},
			"Parameter problem: pointer = 20", "!<12-0>",
		},
		{
			icmp.Answer{Verdict: icmp.Noted, Type: 5, Code: 1, Gateway: netip.MustParseAddr("10.0.0.3")},
			"Redirect Host(New nexthop: 10.0.0.3)", "",
		},
		{icmp.Answer{Verdict: icmp.Noted, Type: 5, Code: 9}, "Redirect, Bad Code: 9", ""},
		{icmp.Answer{Verdict: icmp.Noted, Type: 4}, "Source Quench", ""},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable6}, "Destination unreachable: No route", "!N"},
		{
			icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable6, Code: 1},
			"Destination unreachable: Administratively prohibited", "!X",
		},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable6, Code: 4}, "Destination unreachable: Port unreachable", ""},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable6, Code: 5}, "Destination unreachable: Unknown code 5", "!<5>"},
		{icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeTooBig, MTU: 1280}, "Packet too big: mtu=1280", "!F-1280"},
		{icmp.Answer{Verdict: icmp.Expired, Type: icmp.TypeTimeExceeded6}, "Time exceeded: Hop limit", ""},
		{icmp.Answer{Verdict: icmp.Expired, Type: icmp.TypeTimeExceeded6, Code: 1}, "Time exceeded: Defragmentation failure", ""},
		{
			icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeParameterProblem6, Code: 1, Pointer: 6},
			"Parameter problem: Unknown header at 6", "!P",
		},
		{
			icmp.Answer{Verdict: icmp.Unreachable, Type: icmp.TypeParameterProblem6, Pointer: 40},
			"Parameter problem: Wrong header field at 40", "!<4-0>",
		},
		{
			icmp.Answer{Verdict: icmp.Failed, Err: stack.ErrTooBig, MTU: 1400},
			"local error: message too long, mtu=1400", "",
		},
		{icmp.Answer{Verdict: icmp.Failed, Err: stack.ErrNoRoute}, "sendmsg: Network is unreachable", ""},
		{icmp.Answer{Verdict: icmp.Failed, Err: stack.ErrInterfaceDown}, "sendmsg: Network is down", ""},
		{icmp.Answer{Verdict: icmp.Failed, Err: stack.ErrQueueFull}, "sendmsg: No buffer space available", ""},
	} {
		r := icmp.Reply{Answer: tt.a}
		assert.Equal(t, tt.words, problemOf(&r))
		assert.Equal(t, tt.mark, markOf(&r))
	}
}
