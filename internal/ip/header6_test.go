package ip_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

var (
	src6   = netip.MustParseAddr("2001:db8::1")
	dst6   = netip.MustParseAddr("2001:db8::2")
	group6 = netip.MustParseAddr("ff02::1")
)

// packet6 returns a packet to dst6 whose next header is the type of the first of rest.
func packet6(next uint8, rest ...[]byte) []byte {
	payload := slices.Concat(rest...)
	h := ip.Header{
		TotalLen: ip.HeaderLen6 + len(payload), TTL: 64, Protocol: next, Src: src6, Dst: dst6,
	}
	return append(h.Append(nil), payload...)
}

// extension returns an extension header. Its length is a multiple of eight bytes: its options or
// data, and zeros.
func extension(next uint8, data ...byte) []byte {
	b := append([]byte{next, 0}, data...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b[1] = uint8(len(b)/8 - 1)
	return b
}

// fragment6 returns a Fragment header.
func fragment6(next uint8, offset int, more bool, id uint32) []byte {
	b := []byte{next, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(offset))
	if more {
		b[3] |= 1
	}
	binary.BigEndian.PutUint32(b[4:], id)
	return b
}

// RFC 8200 §3: ParseHeader and Append agree on each field of the header.
func TestRFC8200_3_Header(t *testing.T) {
	b := unhex(t, "6a1bcdef0008113fff020000000000000000000000000001"+
		"20010db8000000000000000000000002"+"0102030400080000")
	h, payload, drop := ip.ParseHeader(append(b, 0xff)) // a link may pad packets
	require.Equal(t, ip.DropNone, drop)
	assert.Equal(t, ip.Header{
		Len: 40, TotalLen: 48, TOS: 0xa1, FlowLabel: 0xbcdef, TTL: 63, DF: true,
		Protocol: ip.ProtoUDP, Src: group6, Dst: dst6,
	}, h)
	assert.Equal(t, b[40:], payload)
	assert.True(t, h.Is6())
	assert.Equal(t, b, append(h.Append(nil), payload...))
	put := make([]byte, 41)
	h.FlowLabel |= 0xff << 20
	h.Put(put)
	assert.Equal(t, append(b[:40:40], 0), put, "the byte after it is unchanged")
	h.Src = netip.Addr{}
	h.Put(put)
	for _, src := range []netip.Addr{netip.IPv6Unspecified(), netip.IPv6Loopback()} {
		h, _, drop := ip.ParseHeader(append(put[:40:40], payload...))
		require.Equal(t, ip.DropNone, drop)
		assert.Equal(t, src, h.Src)
		put[23] = 1
	}
}

// RFC 8200 §3 and §5: invalid lengths are detected. RFC 6890 §2.2.3: packets never have IPv4-mapped
// addresses.
func TestRFC8200_3_InvalidHeaders(t *testing.T) {
	whole := packet6(ip.NextHopByHop, extension(ip.ProtoUDP, 1, 0), make([]byte, 8))
	mapped := netip.MustParseAddr("::ffff:10.0.0.1").As16()
	tests := []struct {
		name string
		bad  func(b []byte) []byte
		want ip.DropReason
	}{
		{"39 bytes", func(b []byte) []byte { return b[:39] }, ip.DropShort},
		{"one byte is missing", func(b []byte) []byte { return b[:55] }, ip.DropTotalLength},
		{"longer than the packet", func(b []byte) []byte { b[5]++; return b }, ip.DropTotalLength},
		{"longer hop-by-hop header", func(b []byte) []byte { b[41] = 2; return b }, ip.DropExtension},
		{"shorter than one", func(b []byte) []byte { b[5] = 7; return b }, ip.DropExtension},
		{"mapped source", func(b []byte) []byte { copy(b[8:], mapped[:]); return b }, ip.DropMartian},
		{"mapped target", func(b []byte) []byte { copy(b[24:], mapped[:]); return b }, ip.DropMartian},
	}
	for _, tt := range tests {
		h, payload, drop := ip.ParseHeader(tt.bad(slices.Clone(whole)))
		assert.Equal(t, tt.want, drop, tt.name)
		assert.Empty(t, payload, tt.name)
		assert.Equal(t, ip.Header{}, h, tt.name)
	}
	h, payload, drop := ip.ParseHeader(whole)
	require.Equal(t, ip.DropNone, drop)
	assert.Equal(t, 48, h.Len)
	assert.Equal(t, ip.ProtoUDP, h.Protocol)
	assert.Equal(t, whole[40:48], h.Options)
	assert.Equal(t, whole, append(h.Append(nil), payload...))
}

// RFC 8200 §3: each router decrements the hop limit by one.
func TestRFC8200_3_HopLimit(t *testing.T) {
	b := packet6(ip.ProtoUDP, make([]byte, 8))
	want := slices.Clone(b)
	want[7]--
	ip.DecrementTTL(b)
	assert.Equal(t, want, b)
}

// The upper bits of the hash depend on each bit of both addresses.
func TestEnds6Hash(t *testing.T) {
	ends := ip.EndsOf6(packet6(ip.ProtoUDP))
	seen := map[uint64]bool{ends.Hash() >> 48: true}
	for bit := range 256 {
		changed := ends
		changed[bit/64] ^= 1 << (bit % 64)
		seen[changed.Hash()>>48] = true
	}
	assert.Greater(t, len(seen), 250)
}

func TestHeader6DoesNotAllocate(t *testing.T) {
	packet := packet6(ip.NextHopByHop, extension(ip.NextDestination, 5, 2, 0, 0),
		extension(ip.NextFragment, 1, 4), fragment6(ip.ProtoUDP, 8, true, 7), make([]byte, 16))
	out := make([]byte, 0, 128)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		h, _, drop := ip.ParseHeader(packet)
		if drop != ip.DropNone || h.CheckOptions(packet).Drop != 0 || h.Walk(packet).Drop != 0 {
			t.Fatal(drop)
		}
		out = h.Append(out[:0])
		h.Put(out)
	}))
	assert.Equal(t, packet[:len(packet)-16], append(out[:6:6], packet[6:len(packet)-16]...))
}

func BenchmarkParseHeader6(b *testing.B) {
	packet := packet6(ip.ProtoUDP, make([]byte, 8))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, drop := ip.ParseHeader(packet); drop != ip.DropNone {
			b.Fatal(drop)
		}
	}
}

func BenchmarkPut6(b *testing.B) {
	h := ip.Header{TotalLen: 1400, TTL: 64, Protocol: ip.ProtoTCP, Src: src6, Dst: dst6}
	var out [ip.HeaderLen6]byte
	b.ReportAllocs()
	for b.Loop() {
		h.Put(out[:])
	}
}
