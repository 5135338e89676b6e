package ip_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// walked returns the header of b after all extension headers, and why the packet is refused.
func walked(tb testing.TB, b []byte) (ip.Header, ip.Refusal) {
	tb.Helper()
	h, _, drop := ip.ParseHeader(b)
	require.Equal(tb, ip.DropNone, drop)
	if r := h.CheckOptions(b); r.Drop != ip.DropNone {
		return h, r
	}
	return h, h.Walk(b)
}

// multicast changes the destination of a packet to a multicast address.
func multicast(b []byte) []byte {
	a := group6.As16()
	copy(b[24:], a[:])
	return b
}

// RFC 8200 §4 and §4.1: a destination processes headers in any order and number.
func TestRFC8200_4_1_HeadersInAnyOrder(t *testing.T) {
	text := []byte("upper layer")
	options := extension(ip.NextRouting, 1, 4, 0, 0, 0, 0)
	b := packet6(ip.NextHopByHop, extension(ip.NextDestination, 5, 2, 0, 0), options,
		extension(ip.NextDestination, 3, 0), extension(ip.NextFragment, 0x1e, 1, 9),
		fragment6(ip.ProtoUDP, 0, false, 1), text)
	h, r := walked(t, b)
	assert.Equal(t, ip.Refusal{}, r)
	assert.Equal(t, ip.ProtoUDP, h.Protocol)
	assert.Equal(t, text, b[h.Len:h.TotalLen])
	assert.Equal(t, b[40:h.Len], h.Options)
	assert.Equal(t, b, append(h.Append(nil), text...))
	assert.Equal(t, h.Len, h.Size())
	h, r = walked(t, packet6(ip.ProtoUDP, text))
	assert.Equal(t, ip.Refusal{}, r)
	assert.Nil(t, h.Options)
}

// RFC 8200 §4: the Hop-by-Hop Options header may only be the first one. Another gets code 1, with a
// pointer to the next header field.
func TestRFC8200_4_LaterHopByHop(t *testing.T) {
	h := extension(ip.NextHopByHop, 1, 0)
	for _, b := range [][]byte{
		packet6(ip.NextHopByHop, h, extension(ip.ProtoUDP)),
		packet6(ip.NextDestination, h, extension(ip.ProtoUDP)),
	} {
		_, r := walked(t, b)
		assert.Equal(t, ip.Refusal{
			Drop: ip.DropExtension, Report: true, Code: ip.ProblemNext, Pointer: 40,
		}, r)
		_, r = walked(t, multicast(b))
		assert.False(t, r.Report, "RFC 4443 §2.4 (e.3)")
	}
}

// RFC 8200 §4.2 and §4.6: the highest bits of an unknown option's type say what to do. RFC 4443
// §3.4: the pointer is the offset of the option type.
func TestRFC8200_4_2_UnknownOptions(t *testing.T) {
	tests := []struct {
		kind          byte
		drop          ip.DropReason
		one, everyone bool // the node sends a report for a unicast or multicast packet
	}{
		{0x1e, ip.DropNone, false, false},
		{0x3e, ip.DropNone, false, false},
		{0x5e, ip.DropOption, false, false},
		{0x9e, ip.DropOption, true, true},
		{0xde, ip.DropOption, true, false},
	}
	for _, tt := range tests {
		for _, next := range []uint8{ip.NextHopByHop, ip.NextDestination} {
			b := packet6(next, extension(ip.ProtoUDP, 1, 0, tt.kind, 1, 0), make([]byte, 8))
			want := ip.Refusal{Drop: tt.drop, Report: tt.one}
			if tt.kind >= 0x80 {
				want.Code, want.Pointer = ip.ProblemOption, 44
			}
			_, r := walked(t, b)
			assert.Equal(t, want, r, "%x", tt.kind)
			want.Report = tt.everyone
			_, r = walked(t, multicast(b))
			assert.Equal(t, want, r, "%x", tt.kind)
		}
	}
}

// RFC 8200 §4.2 and §4.3: options of an invalid length are errors. Other options, such as the
// router alert of RFC 2711 §2.1, are skipped if that is permitted.
func TestRFC8200_4_3_Options(t *testing.T) {
	bad := func(at int) ip.Refusal {
		return ip.Refusal{Drop: ip.DropOption, Report: true, Pointer: at}
	}
	for _, tt := range []struct {
		options []byte
		want    ip.Refusal
	}{
		{[]byte{5, 2, 0, 0, 1, 0}, ip.Refusal{}},
		{[]byte{0x1e, 4, 0, 0, 0, 0}, ip.Refusal{}},
		{[]byte{0x1e, 5, 0, 0, 0, 0}, bad(42)},
		{[]byte{1, 2, 0, 0, 1, 1}, bad(46)},
		{[]byte{1, 3, 0, 0, 0, 1}, bad(47)},
	} {
		for _, next := range []uint8{ip.NextHopByHop, ip.NextDestination} {
			_, r := walked(t, packet6(next, extension(ip.ProtoUDP, tt.options...)))
			assert.Equal(t, tt.want, r, "%v", tt.options)
		}
	}
}

// RFC 8504 §5.3: a header may have at most 7 bytes of padding together, and 8 options.
func TestRFC8504_5_3_Limits(t *testing.T) {
	limit := ip.Refusal{Drop: ip.DropExtensionLimit}
	unknown := func(n int) []byte { return bytes.Repeat([]byte{0x1e, 2, 0, 0}, n) }
	for name, tt := range map[string]struct {
		options []byte
		want    ip.Refusal
	}{
		"7 bytes":                  {append([]byte{1, 5, 0, 0, 0, 0, 0, 0x1e, 5}, make([]byte, 5)...), ip.Refusal{}},
		"8 bytes":                  {[]byte{1, 6, 0, 0, 0, 0, 0, 0, 0x1e, 4, 0, 0, 0, 0}, limit},
		"8 single bytes":           {[]byte{0, 0, 0, 0, 0, 0, 0, 0, 0x1e, 4, 0, 0, 0, 0}, limit},
		"of both kinds":            {[]byte{0, 1, 5, 0, 0, 0, 0, 0, 0x1e, 4, 0, 0, 0, 0}, limit},
		"5 bytes, 5 bytes":         {[]byte{1, 3, 0, 0, 0, 0x1e, 2, 0, 0, 1, 3, 0, 0, 0}, ip.Refusal{}},
		"8 options, between zeros": {append([]byte{0}, append(unknown(8), 0)...), ip.Refusal{}},
		"9 options":                {append([]byte{0}, append(unknown(9), 0)...), limit},
	} {
		_, r := walked(t, packet6(ip.NextHopByHop, extension(ip.ProtoUDP, tt.options...)))
		assert.Equal(t, tt.want, r, name)
	}
	chain := bytes.Repeat(extension(ip.NextDestination, 1, 4), 8)
	chain[len(chain)-8] = ip.ProtoUDP
	_, r := walked(t, packet6(ip.NextDestination, chain))
	assert.Equal(t, ip.Refusal{}, r)
	_, r = walked(t, packet6(ip.NextDestination, extension(ip.NextDestination), chain))
	assert.Equal(t, limit, r, "9 headers")
	for n, want := range map[int]ip.Refusal{252: {}, 253: limit} {
		long := append([]byte{0x1e, byte(n)}, make([]byte, n)...)
		_, r = walked(t, packet6(ip.NextDestination, extension(ip.ProtoUDP, long...)))
		assert.Equal(t, want, r, "a header of %d bytes", n+4)
	}
}

// RFC 8200 §4.4: a routing header that has segments left gets code 0 with a pointer to its type.
// Others are skipped, even those of type 0 (RFC 5095 §3).
func TestRFC8200_4_4_RoutingHeader(t *testing.T) {
	for _, kind := range []byte{0, 2, 3, 4, 253} {
		route := extension(ip.ProtoUDP, append([]byte{kind, 1}, make([]byte, 20)...)...)
		b := packet6(ip.NextHopByHop, extension(ip.NextRouting, 1, 4), route, make([]byte, 8))
		_, r := walked(t, b)
		assert.Equal(t, ip.Refusal{Drop: ip.DropSourceRoute, Report: true, Pointer: 50}, r)
		b[51] = 0
		h, r := walked(t, b)
		assert.Equal(t, ip.Refusal{}, r)
		assert.Equal(t, ip.ProtoUDP, h.Protocol)
	}
}

// RFC 8200 §4.5: Walk reads each field of the Fragment header. RFC 6946 §4: an atomic fragment is a
// whole packet.
func TestRFC8200_4_5_FragmentHeader(t *testing.T) {
	text := make([]byte, 16)
	for _, options := range [][]byte{nil, extension(ip.NextFragment, 1, 4)} {
		next := ip.NextFragment
		if options != nil {
			next = ip.NextDestination
		}
		b := packet6(next, options, fragment6(ip.ProtoTCP, 0xfff8, true, 0xdeadbeef), text)
		h, r := walked(t, b)
		require.Equal(t, ip.Refusal{}, r)
		assert.True(t, h.IsFragment())
		assert.Equal(t, 0xfff8, h.FragOff)
		assert.True(t, h.MF)
		assert.Equal(t, uint32(0xdeadbeef), h.ID)
		assert.Equal(t, ip.ProtoTCP, h.Protocol)
		assert.Equal(t, h.Len, h.Size())
		assert.Equal(t, b, append(h.Append(nil), text...))
		atomic := packet6(next, options, fragment6(ip.ProtoTCP, 0, false, 7), text)
		atomic[len(atomic)-21] |= 6 // sets the reserved bits
		atomic[len(atomic)-23] = 9  // sets the reserved byte
		h, r = walked(t, atomic)
		require.Equal(t, ip.Refusal{}, r)
		assert.False(t, h.IsFragment())
		assert.Equal(t, ip.ProtoTCP, h.Protocol)
		assert.Equal(t, text, atomic[h.Len:])
		h, r = walked(t, packet6(next, options, fragment6(ip.NextDestination, 0, false, 7), extension(ip.ProtoUDP), text))
		require.Equal(t, ip.Refusal{}, r)
		assert.Equal(t, ip.ProtoUDP, h.Protocol, "the header after the Fragment header")
		_, r = walked(t, packet6(next, options, fragment6(ip.NextHopByHop, 0, false, 7), extension(ip.ProtoUDP), text))
		assert.Equal(t, ip.DropExtension, r.Drop)
	}
}

// RFC 8200 §4.7: after "no next header", the rest of the payload is ignored.
func TestRFC8200_4_7_NoNextHeader(t *testing.T) {
	for _, b := range [][]byte{
		packet6(ip.NextNone, make([]byte, 9)),
		packet6(ip.NextHopByHop, extension(ip.NextNone), make([]byte, 9)),
		packet6(ip.NextDestination, extension(ip.NextNone)),
	} {
		_, r := walked(t, b)
		assert.Equal(t, ip.Refusal{Drop: ip.DropNoNextHeader}, r)
	}
}

// An extension header that ends beyond the packet is malformed.
func TestWalkStopsAtTheEnd(t *testing.T) {
	for _, next := range []uint8{ip.NextRouting, ip.NextFragment, ip.NextDestination} {
		options := extension(ip.ProtoUDP, append([]byte{0x1e, 12}, make([]byte, 12)...)...)
		if next == ip.NextFragment {
			options = fragment6(ip.ProtoUDP, 0, false, 1)
		}
		b := packet6(next, options)
		for n := range options {
			b[5] = byte(n)
			_, r := walked(t, append(b[:40+n:40+n], 0xff, 0xff, 0xff))
			assert.Equal(t, ip.Refusal{Drop: ip.DropExtension}, r)
		}
	}
}

// RFC 2675 §2 and §3: a node without jumbograms does not recognize the option. A payload length of
// 0 without that option is an error.
func TestRFC2675_3_Jumbograms(t *testing.T) {
	jumbo := packet6(ip.NextHopByHop, extension(ip.ProtoUDP, 0xc2, 4, 0, 1, 0, 0), make([]byte, 99))
	refused := ip.Refusal{Drop: ip.DropJumbo, Report: true, Code: ip.ProblemOption, Pointer: 42}
	_, r := walked(t, jumbo)
	assert.Equal(t, refused, r, "a short packet")
	jumbo[4], jumbo[5] = 0, 0
	h, r := walked(t, jumbo)
	assert.Equal(t, refused, r)
	assert.Equal(t, len(jumbo), h.TotalLen)
	other := packet6(ip.NextHopByHop, extension(ip.ProtoUDP, 1, 4), make([]byte, 99))
	other[4], other[5] = 0, 0
	_, r = walked(t, other)
	assert.Equal(t, ip.Refusal{Drop: ip.DropJumbo, Report: true, Pointer: 4}, r)
}

// FuzzHeader6 parses packets and walks their extension headers. The result describes the packet.
func FuzzHeader6(f *testing.F) {
	f.Add(packet6(ip.ProtoUDP, make([]byte, 8)), false)
	f.Add(packet6(ip.NextHopByHop, extension(ip.NextRouting, 5, 2, 0, 0), extension(ip.NextNone, 2)), true)
	f.Add(packet6(ip.NextDestination, extension(ip.NextFragment, 1, 4), fragment6(6, 8, true, 1)), false)
	f.Fuzz(func(t *testing.T, b []byte, trim bool) {
		if len(b) >= ip.HeaderLen6 && len(b) <= 0xffff {
			b[0] = 0x60 | b[0]&0x0f
			if trim {
				b[4], b[5] = byte((len(b)-40)>>8), byte(len(b)-40)
			}
		}
		h, payload, drop := ip.ParseHeader(b)
		if drop != ip.DropNone || !h.Is6() {
			return
		}
		require.Equal(t, b[h.Len:h.TotalLen], payload)
		if r := h.CheckOptions(b); r.Drop != ip.DropNone {
			require.Less(t, r.Pointer, h.Len)
			return
		}
		require.True(t, h.Options == nil || h.TotalLen == 40+int(b[4])<<8+int(b[5]))
		if r := h.Walk(b); r.Drop != ip.DropNone {
			require.Less(t, r.Pointer, h.TotalLen)
			require.True(t, r.Report || r.Code == 0 || h.Dst.IsMulticast())
			return
		}
		require.LessOrEqual(t, h.Len, h.TotalLen)
		require.Equal(t, h.Len, h.Size())
		again := append(h.Append(nil), b[h.Len:h.TotalLen]...)
		if h.IsFragment() { // Append does not keep reserved bits
			b[h.Len-7], again[h.Len-7] = 0, 0
			b[h.Len-5] &^= 6
		}
		require.Equal(t, b[:h.TotalLen], again)
	})
}
