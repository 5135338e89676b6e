package operator_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// A link-local address without a zone gets the only link as its zone. A wrong zone causes an error
// instead of an unanswered packet.
func TestRequestsCheckTheZoneOfAnAddress(t *testing.T) {
	a, b := operatortest.TwoIPv6(t, node.Config{})
	var link netip.Addr
	for _, p := range testenv.Ask(t, b, control.Interfaces{})[0].IPv6 {
		if p.Addr().IsLinkLocalUnicast() {
			link = p.Addr()
		}
	}
	testenv.Ask(t, b, control.Listen{Port: 80})
	s := testenv.Ask(t, a, control.Connect{Addr: link, Port: 80})
	assert.Equal(t, netip.AddrPortFrom(link.WithZone("if0"), 80), s.Remote)
	ping := testenv.Ask(t, a, control.Ping{Addr: link, Count: 1, Timeout: time.Minute})
	assert.Equal(t, 1, ping.Received)
	hops := testenv.Ask(t, a, control.Traceroute{
		Addr: link, Queries: 1, MaxHops: 1, Wait: time.Minute,
	})
	assert.Equal(t, link.WithZone("if0"), hops[0].Replies[0].From)
	testenv.Ask(t, a, control.SendTest{Addr: link, Proto: 253, Text: "x"})
	_, err := control.Ask(t.Context(), a, control.SendTest{Addr: link, Text: "x"})
	require.ErrorContains(t, err, "fe80::2%if0: must be an IPv4 address: protocol 0 of test packets")

	for addr, problem := range map[string]string{
		"fe80::2%if9":     `zone "if9" is not an interface with IPv6: must be fe80::2%if0`,
		"2001:db8::2%if0": "only link-local addresses have a zone: must be 2001:db8::2",
	} {
		to := netip.MustParseAddr(addr)
		_, connect := control.Ask(t.Context(), a, control.Connect{Addr: to, Port: 80})
		_, send := control.Ask(t.Context(), a, control.SendUDP{Addr: to, Port: 80, Data: []byte("x")})
		_, ping := control.Ask(t.Context(), a, control.Ping{Addr: to, Count: 1})
		_, trace := control.Ask(t.Context(), a, control.Traceroute{Addr: to})
		_, text := control.Ask(t.Context(), a, control.SendTest{Addr: to, Text: "x"})
		for _, err := range []error{connect, send, ping, trace, text} {
			require.ErrorIs(t, err, control.ErrUsage)
			assert.ErrorContains(t, err, problem)
		}
	}
	_, err = control.Ask(t.Context(), a, control.Ping{
		Addr: netip.MustParseAddr("2001:db8::2"), Source: "10.0.0.1",
	})
	require.ErrorContains(t, err, "source 10.0.0.1 and destination 2001:db8::2: must be of the same family")
}

// The size of a traceroute's probes is that of the whole packet, as in traceroute -6: 80 bytes,
// unless the request sets another size.
func TestTheLengthOfATraceroute(t *testing.T) {
	var sent []int
	a, _ := operatortest.TwoIPv6(t, node.Config{
		Tap: func(_ clock.Time, _ int, dir stack.Direction, _ ip.DropReason, pieces [][]byte) {
			if b := slices.Concat(pieces...); dir == stack.Outbound && len(b) > 40 && b[6] == ip.ProtoUDP {
				sent = append(sent, len(b))
			}
		},
	})
	for _, size := range []int{0, 100} {
		testenv.Ask(t, a, control.Traceroute{
			Addr: netip.MustParseAddr("2001:db8::2"), Queries: 1, MaxHops: 1, Size: size, Wait: time.Minute,
		})
	}
	// the loop must have installed the tap before it answers
	testenv.Ask(t, a, control.Interfaces{})
	assert.Equal(t, []int{80, 100}, sent)
}
