package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// near6 contains destinations of packets to the router of fuzzRouter.
var near6 = []netip.Addr{
	addr("2001:db8::2"),
	addr("2001:db8:1::1"),
	addr("2001:db8:1::2"),
	addr("2001:db8:1::9"),
	addr("2001:db8:1::"),
	addr("2001:db8:f::1"),
	addr("2001:db8:e::1"),
	addr("fe80::2"),
	addr("ff02::1"),
	addr("ff02::9"),
	addr("ff02::1:ff00:2"),
	addr("ff05::1234"),
	addr("::1"),
}

// fixed6 is like fixSome, for IPv6: it also makes a chain of extension headers.
func fixed6(b []byte, how byte) []byte {
	if how&1 == 0 || len(b) < ip.HeaderLen6 {
		return b
	}
	b[0] = 0x60 | b[0]&15
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-ip.HeaderLen6))
	if how&32 != 0 {
		b[7] = []byte{255, 255, 64, 1}[b[7]%4]
	}
	if how&8 != 0 {
		sources := []netip.Addr{addr("2001:db8::1"), addr("fe80::1"), addr("2001:db8::7")}
		copy(b[8:], sources[int(b[23])%len(sources)].AsSlice())
		copy(b[24:], near6[int(b[39])%len(near6)].AsSlice())
	}
	field, at := 6, ip.HeaderLen6
	for n := 0; how&4 != 0; n++ {
		kinds := []byte{58, 17, 6, 59, 200, 44, 60, 43, 0}
		if how&2 != 0 || n == 4 {
			kinds = kinds[:3]
		}
		kind := kinds[int(b[field])%len(kinds)]
		b[field] = kind
		if len(kinds) == 3 || slices.Contains(kinds[:5], kind) || at+8 > len(b) {
			break
		}
		field = at
		at = fixedExtension(b, at, kind, how)
	}
	if how&16 != 0 && at < len(b) {
		src, dst := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		fixPayload(b[at:], src, dst, b[field])
	}
	return b
}

// fixedExtension corrects the extension header at an offset, and returns the header's end.
func fixedExtension(b []byte, at int, kind, how byte) int {
	size := 8
	if kind != ip.NextFragment && at+16 <= len(b) {
		b[at+1] &= 1
		size += 8 * int(b[at+1])
	}
	if how&64 == 0 {
		return at + size
	}
	switch kind {
	case ip.NextFragment: // selects one of a few datagrams
		b[at+2], b[at+3] = 0, b[at+3]&0x39
		copy(b[at+4:], []byte{0, 0, 0, b[at+7] & 3})
	case ip.NextRouting:
		b[at+3] = 0
	default:
		b[at+2] = []byte{0x1e, 0x1e, 0x5e, 0x9e, 0xde, 0x05}[b[at+2]%6]
		b[at+3] = byte(size - 4)
	}
	return at + size
}

// valid6 returns packets that the router of fuzzRouter accepts, or refuses for one reason.
func valid6() (list [][]byte) {
	a, router, far6 := addr("2001:db8::1"), addr("2001:db8::2"), addr("2001:db8:1::2")
	local, group := addr("fe80::1"), addr("ff02::1")
	add := func(h ip.Header, payload []byte) { list = append(list, packet(h, payload)) }
	message := func(src, dst netip.Addr, m icmp.Message) {
		h := ip.Header{TTL: 255, Protocol: ip.ProtoICMPv6, Src: src, Dst: dst}
		add(h, m.Append(nil, src, dst))
	}
	datagram := func(src, dst netip.Addr, port uint16, payload []byte) ip.Header {
		h := ip.Header{TTL: 255, Protocol: ip.ProtoUDP, Src: src, Dst: dst}
		u := udp.Header{SrcPort: port, DstPort: port}
		add(h, u.Append(nil, src, dst, payload))
		return h
	}
	h := datagram(a, router, 53, []byte("hello"))
	whole := list[0][40:]
	datagram(a, router, 99, nil)
	datagram(a, far6, 53, make([]byte, 1300))
	response := append([]byte{2, 1, 0, 0}, addr("2001:db8:c::").AsSlice()...)
	datagram(local, rip.MulticastNG, rip.PortNG, append(response, 0, 0, 48, 1))
	for _, piece := range []struct{ from, end int }{{0, 8}, {8, len(whole)}, {4, 12}, {0, len(whole)}} {
		h.ID, h.FragOff, h.MF = 7, piece.from&^7, piece.end != len(whole)
		add(h, whole[piece.from:piece.end])
	}
	h.ID, h.FragOff, h.MF = 0, 0, false
	for next, options := range map[uint8][]byte{
		ip.NextHopByHop: {17, 0, 5, 2, 0, 0, 1, 0}, ip.NextDestination: {17, 0, 0xc9, 4, 0, 0, 0, 0},
		ip.NextRouting: append([]byte{17, 2, 0, 1}, make([]byte, 20)...),
	} {
		h.Next, h.Options = next, options
		add(h, whole)
	}
	slices.SortFunc(list, slices.Compare) // the order of a map is random
	message(a, router, icmp.Message{Type: icmp.TypeEcho6, Body: []byte("tide")})
	message(a, group, icmp.Message{Type: icmp.TypeEcho6, Body: []byte("tide")})
	for _, mtu := range []byte{0, 4, 5, 6} { // each number is multiplied by 256 bytes
		about := packet6("2001:db8::2", "2001:db8::1", ip.Header{}, nil)
		message(a, router, icmp.Message{Type: icmp.TypeTooBig, Rest: [4]byte{2: mtu}, Body: about})
	}
	prefix := icmp.PrefixInfo{Prefix: pfx("2001:db8:d::/64"), OnLink: true, Autonomous: true, Valid: 1e12, Preferred: 1e12}
	for _, d := range []icmp.Discovery{
		{Type: icmp.TypeRouterSolicit6, SourceLink: make([]byte, 6)},
		{Type: icmp.TypeRouterAdvert6, Advert: icmp.Advert{Lifetime: 1e12, MTU: 1279, Prefixes: []icmp.PrefixInfo{prefix}}},
		{Type: icmp.TypeNeighborSolicit, Target: router, SourceLink: make([]byte, 6)},
		{Type: icmp.TypeNeighborAdvert, Target: a, Override: true},
		{Type: icmp.TypeRedirect6, Target: local, Destination: far6},
	} {
		message(local, router, d.Message())
		message(local, group, d.Message())
	}
	message(local, group, icmp.Message{Type: icmp.TypeListenerQuery, Rest: [4]byte{3, 232}, Body: make([]byte, 20)})
	syn := make([]byte, 20)
	(&tcp.Header{Seq: 1, Flags: tcp.SYN, Window: 9}).Put(syn, 9, 80)
	fixPayload(syn, a, router, ip.ProtoTCP)
	add(ip.Header{Protocol: ip.ProtoTCP, Src: a, Dst: router}, syn)
	return list
}

// mutated returns one of the packets with a few changed bytes, and in most cases with correct
// lengths and checksums.
func mutated(rng *rand.Rand, list [][]byte) []byte {
	b := slices.Clone(list[rng.IntN(len(list))])
	for range rng.IntN(4) {
		b[rng.IntN(len(b))] = byte(rng.Uint32())
	}
	if rng.IntN(8) == 0 {
		b = b[:rng.IntN(len(b))]
	}
	return fixed6(b, byte(rng.Uint32())&^(2|4|8))
}
