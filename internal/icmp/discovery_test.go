package icmp_test

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
)

// These IPv6 packets contain messages of neighbor discovery that a Linux kernel sent.
const (
	dadPacket      = "6000000000203aff" + "00000000000000000000000000000000" + "ff0200000000000000000001ff000001" + "8700d21f0000000020010db80000000000000000000000010e019b4b2be1a597"
	rsPacket       = "6000000000103aff" + "fe80000000000000706379fffe751860" + "ff020000000000000000000000000002" + "850076bc000000000101726379751860"
	nsPacket       = "6000000000203aff" + "20010db8000000000000000000000001" + "ff0200000000000000000001ff000002" + "8700fd150000000020010db8000000000000000000000002010186c7a342f707"
	naPacket       = "6000000000203aff" + "20010db8000000000000000000000002" + "20010db8000000000000000000000001" + "8800883a6000000020010db80000000000000000000000020201726379751860"
	unicastNA      = "6000000000183aff" + "20010db8000000000000000000000001" + "fe80000000000000706379fffe751860" + "8800dc7e4000000020010db8000000000000000000000001"
	macOne, macTwo = "86c7a342f707", "726379751860"
)

// packetOf splits a packet of neighbor discovery.
func packetOf(tb testing.TB, s string) (m icmp.Message, src, dst netip.Addr) {
	tb.Helper()
	b := unhex(tb, s)
	src, dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	m, ok := icmp.Parse(b[40:], src, dst)
	require.True(tb, ok)
	return m, src, dst
}

// RFC 4861 §4.1, §4.3, §4.4 and §4.6.1, RFC 7527 §4.1: messages from a Linux kernel are parsed and
// written unchanged.
func TestRFC4861_4_RealMessages(t *testing.T) {
	for _, row := range []struct {
		packet string
		want   icmp.Discovery
	}{
		{dadPacket, icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: hostOne, Nonce: unhex(t, "9b4b2be1a597")}},
		{rsPacket, icmp.Discovery{Type: icmp.TypeRouterSolicit6, SourceLink: unhex(t, macTwo)}},
		{nsPacket, icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: hostTwo, SourceLink: unhex(t, macOne)}},
		{naPacket, icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: hostTwo, Solicited: true, Override: true}},
		{unicastNA, icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: hostOne, Solicited: true}},
	} {
		m, src, dst := packetOf(t, row.packet)
		d, r := icmp.ParseDiscovery(&m, src, dst, 255)
		require.Equal(t, icmp.Accepted, r, row.packet)
		assert.Equal(t, row.want, d)
		// naPacket has the target's link-layer address, which Discovery does not contain
		if row.packet != naPacket {
			assert.Equal(t, m, d.Message())
		}
	}
}

// RFC 4861 §4.2, §4.6.2 and §4.6.4: a router advertisement is checked byte by byte.
func TestRFC4861_4_2_RouterAdvertisement(t *testing.T) {
	d := icmp.Discovery{Type: icmp.TypeRouterAdvert6, SourceLink: unhex(t, macOne), Advert: icmp.Advert{
		HopLimit: 64, Lifetime: 1800 * time.Second, Reachable: 30 * time.Second,
		Retransmit: 1500 * time.Millisecond, MTU: 1400, Prefixes: []icmp.PrefixInfo{
			{Prefix: netip.MustParsePrefix("2001:db8::/64"), OnLink: true, Autonomous: true, Valid: 86400 * time.Second, Preferred: 14400 * time.Second},
			{Prefix: netip.MustParsePrefix("2001:db8:1::/48"), OnLink: true, Valid: icmp.Infinite},
		},
	}}
	want := "8600" + "0000" + "4000" + "0708" + "00007530" + "000005dc" + "0101" + macOne +
		"0501000000000578" +
		"030440c0" + "00015180" + "00003840" + "00000000" + "20010db8000000000000000000000000" +
		"03043080" + "ffffffff" + "00000000" + "00000000" + "20010db8000100000000000000000000"
	m := d.Message()
	b := m.Append(nil, router6, allNodes)
	copy(b[2:4], []byte{0, 0})
	assert.Equal(t, want, hex.EncodeToString(b))
	got, r := icmp.ParseDiscovery(&m, router6, allNodes, 255)
	require.Equal(t, icmp.Accepted, r)
	assert.Equal(t, d, got)

	redirect := icmp.Discovery{Type: icmp.TypeRedirect6, Target: router6, Destination: hostTwo}
	m = redirect.Message()
	got, r = icmp.ParseDiscovery(&m, router6, hostOne, 255)
	require.Equal(t, icmp.Accepted, r, "RFC 4861 §4.5")
	assert.Equal(t, redirect, got)
}

// router6 is the link-local address of a router.
var (
	router6  = netip.MustParseAddr("fe80::ff")
	allNodes = netip.MustParseAddr("ff02::1")
)

// RFC 4861 §6.1.1, §6.1.2, §7.1.1, §7.1.2, §8.1, §3.1 and §4.6: the node ignores these messages for
// the expected reasons.
func TestRFC4861_6_1_IgnoredMessages(t *testing.T) {
	const (
		solicit = icmp.TypeNeighborSolicit
		advert  = icmp.TypeNeighborAdvert
	)
	link := []byte{1, 2, 3, 4, 5, 6}
	addr := netip.MustParseAddr
	type row struct {
		name     string
		d        icmp.Discovery
		src, dst string
		want     icmp.Refusal
	}
	for _, r := range []row{
		{"rs", icmp.Discovery{Type: icmp.TypeRouterSolicit6, SourceLink: link}, "fe80::1", "ff02::2", icmp.Accepted},
		{
			"rs without a source",
			icmp.Discovery{Type: icmp.TypeRouterSolicit6},
			"::", "ff02::2",
			icmp.Accepted,
		},
		{"rs without a source, with a link", icmp.Discovery{
			Type:       icmp.TypeRouterSolicit6,
			SourceLink: link,
		}, "::", "ff02::2", icmp.RefusedOption},
		{"ra", icmp.Discovery{Type: icmp.TypeRouterAdvert6}, "fe80::1", "ff02::1", icmp.Accepted},
		{"ra from beyond the link", icmp.Discovery{Type: icmp.TypeRouterAdvert6}, "2001:db8::1", "ff02::1", icmp.RefusedSource},
		{"ns", icmp.Discovery{Type: solicit, Target: hostOne, SourceLink: link}, "fe80::1", "ff02::1:ff00:1", icmp.Accepted},
		{"ns of a group", icmp.Discovery{Type: solicit, Target: addr("ff02::5")}, "fe80::1", "ff02::1:ff00:5", icmp.RefusedTarget},
		{
			"ns of ::",
			icmp.Discovery{Type: solicit, Target: addr("::")},
			"fe80::1", "ff02::1:ff00:0",
			icmp.RefusedTarget,
		},
		{"dad", icmp.Discovery{Type: solicit, Target: hostOne}, "::", "ff02::1:ff00:1", icmp.Accepted},
		{"dad by unicast", icmp.Discovery{Type: solicit, Target: hostOne}, "::", "2001:db8::1", icmp.RefusedDestination},
		{"dad with a link", icmp.Discovery{Type: solicit, Target: hostOne, SourceLink: link}, "::", "ff02::1:ff00:1", icmp.RefusedOption},
		{"na", icmp.Discovery{Type: advert, Target: hostOne, Solicited: true}, "fe80::1", "fe80::2", icmp.Accepted},
		{"na to all", icmp.Discovery{Type: advert, Target: hostOne}, "fe80::1", "ff02::1", icmp.Accepted},
		{"na to all, solicited", icmp.Discovery{Type: advert, Target: hostOne, Solicited: true}, "fe80::1", "ff02::1", icmp.RefusedDestination},
		{"na of a group", icmp.Discovery{Type: advert, Target: addr("ff02::5")}, "fe80::1", "fe80::2", icmp.RefusedTarget},
		{"redirect", icmp.Discovery{Type: icmp.TypeRedirect6, Target: hostTwo, Destination: hostTwo}, "fe80::1", "fe80::2", icmp.Accepted},
		{"redirect from beyond the link", icmp.Discovery{Type: icmp.TypeRedirect6, Target: hostTwo, Destination: hostTwo}, "2001:db8::1", "fe80::2", icmp.RefusedSource},
		{"redirect of a group", icmp.Discovery{Type: icmp.TypeRedirect6, Target: router6, Destination: addr("ff02::5")}, "fe80::1", "fe80::2", icmp.RefusedDestination},
		{"redirect to a global router", icmp.Discovery{Type: icmp.TypeRedirect6, Target: hostOne, Destination: hostTwo}, "fe80::1", "fe80::2", icmp.RefusedTarget},
	} {
		m := r.d.Message()
		_, got := icmp.ParseDiscovery(&m, addr(r.src), addr(r.dst), 255)
		assert.Equal(t, r.want, got, "%s: %v", r.name, got)
		_, got = icmp.ParseDiscovery(&m, addr(r.src), addr(r.dst), 254)
		assert.Equal(t, icmp.RefusedHopLimit, got, "%s, forwarded", r.name)
		m.Code = 1
		_, got = icmp.ParseDiscovery(&m, addr(r.src), addr(r.dst), 255)
		assert.Equal(t, icmp.RefusedCode, got, r.name)
		m.Code = 0
		if n := map[icmp.Type]int{icmp.TypeRouterAdvert6: 8, solicit: 16, advert: 16, icmp.TypeRedirect6: 32}[m.Type]; n > 0 {
			short := m
			short.Body = m.Body[:n-1]
			_, got = icmp.ParseDiscovery(&short, addr(r.src), addr(r.dst), 255)
			assert.Equal(t, icmp.RefusedLength, got, r.name)
		}
		for _, option := range [][]byte{{9, 0, 0, 0, 0, 0, 0, 0}, {9, 2, 0, 0, 0, 0, 0, 0}, {9}} {
			bad := m
			bad.Body = append(append([]byte(nil), m.Body...), option...)
			_, got = icmp.ParseDiscovery(&bad, addr(r.src), addr(r.dst), 255)
			assert.Equal(t, icmp.RefusedOption, got, r.name)
		}
		m.Body = append(append([]byte(nil), m.Body...), 99, 1, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0, 25, 2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
		_, got = icmp.ParseDiscovery(&m, addr(r.src), addr(r.dst), 255)
		assert.Equal(t, r.want, got, "%s with unknown options", r.name)
	}
	_, got := icmp.ParseDiscovery(&icmp.Message{Type: icmp.TypeEcho6}, hostOne, hostTwo, 255)
	assert.Equal(t, icmp.RefusedType, got)
}

func TestRefusalNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for r := range icmp.Refusal(icmp.NumRefusals) {
		assert.NotEmpty(t, r.String())
		assert.False(t, seen[r.String()], r)
		seen[r.String()] = true
	}
	assert.Equal(t, "unknown", icmp.Refusal(icmp.NumRefusals).String())
}

// RFC 4291 §2.7.1 contains this example.
func TestRFC4291_2_7_1_SolicitedNode(t *testing.T) {
	assert.Equal(t, netip.MustParseAddr("ff02::1:ff0e:8c6c"), icmp.SolicitedNode(netip.MustParseAddr("4037::1:800:200e:8c6c")))
}

func FuzzDiscovery(f *testing.F) {
	for _, p := range []string{dadPacket, rsPacket, nsPacket, naPacket, unicastNA} {
		f.Add(unhex(f, p)[40:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < icmp.HeaderLen {
			return
		}
		m := icmp.Message{Type: icmp.TypeEcho6&^0xff | icmp.Type(b[0]), Code: b[1], Rest: [4]byte(b[4:]), Body: b[8:]}
		d, r := icmp.ParseDiscovery(&m, router6, hostOne, 255)
		if r != icmp.Accepted {
			return
		}
		require.LessOrEqual(t, len(d.Advert.Prefixes)*32, len(b))
		again := d.Message()
		got, r := icmp.ParseDiscovery(&again, router6, hostOne, 255)
		require.Equal(t, icmp.Accepted, r)
		require.Equal(t, normal(d), normal(got))
	})
}

// normal clears the fields that a message of this type does not have.
func normal(d icmp.Discovery) icmp.Discovery {
	if d.Type != icmp.TypeRouterAdvert6 {
		d.Advert = icmp.Advert{}
	}
	return d
}

// be16 returns a delay in MLD's format.
func be16(v int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
