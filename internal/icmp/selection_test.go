package icmp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/icmp"
)

// candidates parses addresses. A "-" before an address means deprecated, a "+" means that it
// belongs to the outgoing interface.
func candidates(text string) (list []icmp.Candidate) {
	for f := range strings.FieldsSeq(text) {
		a := netip.MustParseAddr(strings.TrimLeft(f, "-+"))
		bits := 64
		if a.Is4() {
			bits = 24
		}
		list = append(list, icmp.Candidate{
			Addr: a, Bits: bits, Deprecated: f[0] == '-', Outgoing: f[0] == '+',
		})
	}
	return list
}

// RFC 6724 §3.1, §3.2, §5 and §10.1 define these examples and rules. If a rule decides, the order
// of the candidates does not matter.
func TestRFC6724_5_Source(t *testing.T) {
	for _, row := range []struct{ dst, sources, want string }{
		{"2001:db8:1::1", "2001:db8:3::1 fe80::1", "2001:db8:3::1"},
		{"ff05::1", "2001:db8:3::1 fe80::1", "2001:db8:3::1"},
		{"2001:db8:1::1", "-2001:db8:1::1 2001:db8:2::1", "2001:db8:1::1"},
		{"fe80::1", "-fe80::2 2001:db8:1::1", "fe80::2"},
		{"2001:db8:1::1", "2001:db8:1::2 2001:db8:3::2", "2001:db8:1::2"},
		{"2002:c633:6401::1", "2002:c633:6401::d5e3:7953:13eb:22e8 2001:db8:1::2", "2002:c633:6401:0:d5e3:7953:13eb:22e8"},
		{"2001:db8:1::1", "-2001:db8:1::2 2001:db8:3::2", "2001:db8:3::2"},
		{"2001:db8:1::1", "2001:db8:1::2 +2001:db8:3::2", "2001:db8:3::2"},
		{"2001:db8:1::1", "fd00::1 2001:db8:3::2", "2001:db8:3::2"},
		{"fec0::1", "fe80::1 fec0::2 2001:db8::1", "fec0::2"},
		{"ff02::1", "fe80::1 2001:db8::1", "fe80::1"},
		{"10.0.0.1", "2001:db8::1 10.0.0.2 169.254.0.1", "10.0.0.2"},
		{"169.254.0.9", "10.0.0.2 169.254.0.1", "169.254.0.1"},
		{"::1", "2001:db8::1 ::1", "::1"},
	} {
		list := candidates(row.sources)
		for range 2 {
			got, ok := icmp.SelectSource(netip.MustParseAddr(row.dst), list)
			assert.True(t, ok)
			assert.Equal(t, row.want, got.Addr.String(), row)
			list[0], list[len(list)-1] = list[len(list)-1], list[0]
		}
	}
	_, ok := icmp.SelectSource(hostOne, candidates("10.0.0.1"))
	assert.False(t, ok)
	first, _ := icmp.SelectSource(hostTwo, candidates("2001:db8:0:1::1 2001:db8:0:1::2"))
	assert.Equal(t, "2001:db8:0:1::1", first.Addr.String(), "RFC 6724 §2.2: bits beyond the prefix do not count")
}

// RFC 6724 §2.1, §6 and §10.2 define these examples and rules.
func TestRFC6724_6_Destinations(t *testing.T) {
	for _, row := range []struct{ dsts, sources, want string }{
		{"2001:db8:1::1 198.51.100.121", "2001:db8:1::2 fe80::1 169.254.13.78", "2001:db8:1::1 198.51.100.121"},
		{"2001:db8:1::1 198.51.100.121", "fe80::1 198.51.100.117", "198.51.100.121 2001:db8:1::1"},
		{"2001:db8:1::1 10.1.2.3", "2001:db8:1::2 fe80::1 10.1.2.4", "2001:db8:1::1 10.1.2.3"},
		{"2001:db8:1::1 fe80::1", "2001:db8:1::2 fe80::2", "fe80::1 2001:db8:1::1"},
		{"2001:db8:1::1 fe80::1", "2001:db8:1::2 -fe80::2", "2001:db8:1::1 fe80::1"},
		{"2001:db8:1::1 2001:db8:3ffe::1", "2001:db8:1::2 2001:db8:3f44::2 fe80::2", "2001:db8:1::1 2001:db8:3ffe::1"},
		{"2002:c633:6401::1 2001:db8:1::1", "2002:c633:6401::2 fe80::2", "2002:c633:6401::1 2001:db8:1::1"},
		{"2002:c633:6401::1 2001:db8:1::1", "2002:c633:6401::2 2001:db8:1::2 fe80::2", "2001:db8:1::1 2002:c633:6401::1"},
		{"2001:db8:1::1 198.51.100.121", "198.51.100.117", "198.51.100.121 2001:db8:1::1"},
		{"fd00::1 2001:db8::1 2001::1 ::1", "fd00::2 2001:db8::2 2001::2 ::1", "::1 2001:db8::1 2001::1 fd00::1"},
	} {
		var list []netip.Addr
		for f := range strings.FieldsSeq(row.dsts) {
			list = append(list, netip.MustParseAddr(f))
		}
		for range 2 {
			icmp.SortDestinations(list, func(dst netip.Addr) (icmp.Candidate, bool) {
				return icmp.SelectSource(dst, candidates(row.sources))
			})
			var got []string
			for _, a := range list {
				got = append(got, a.String())
			}
			assert.Equal(t, row.want, strings.Join(got, " "), row)
			list[0], list[len(list)-1] = list[len(list)-1], list[0]
		}
	}
	v4 := []netip.Addr{netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.0.0.1")}
	icmp.SortDestinations(v4, func(netip.Addr) (icmp.Candidate, bool) { return candidates("10.0.0.2")[0], true })
	assert.Equal(t, "10.9.0.1", v4[0].String(), "the order of IPv4 addresses is kept")
}
