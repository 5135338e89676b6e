package ip_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// datagram returns a packet with n different bytes of payload.
func datagram(n int, options ...byte) []byte {
	h := ip.Header{
		TOS: 0x10, TotalLen: ip.HeaderLen + len(options) + n, ID: 0x1234, TTL: 60,
		Protocol: ip.ProtoUDP, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
		Options: options,
	}
	b := h.Append(nil)
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for range n {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

// cut fragments a packet.
func cut(packet []byte, mtu int) [][]byte {
	var f ip.Fragmenter
	if !f.Reset(packet, mtu, 0) {
		return nil
	}
	var list [][]byte
	for f.More() {
		b := make([]byte, f.HeaderLen())
		list = append(list, append(b, f.Next(b)...))
	}
	return list
}

// header parses a packet that must be valid and of its full length.
func header(tb testing.TB, b []byte) (ip.Header, []byte) {
	tb.Helper()
	h, payload, drop := ip.ParseHeader(b)
	require.Equal(tb, ip.DropNone, drop)
	require.Len(tb, b, h.TotalLen)
	return h, payload
}

// RFC 791 §3.2: each fragment is as long as the link allows, and a multiple of eight except the
// last. Offsets give the position, and all but the last have the more-fragments flag. The other
// header fields are the same in all.
func TestRFC791_3_2_Fragments(t *testing.T) {
	tests := []struct {
		payload, mtu int
		want         []string // "offset+length" of each fragment, and "+" if more follow
	}{
		{1380, 1400, []string{"0+1380"}},
		{1381, 1400, []string{"0+1376+", "1376+5"}},
		{1480, 576, []string{"0+552+", "552+552+", "1104+376"}},
		{100, 68, []string{"0+48+", "48+48+", "96+4"}},
		{97, 68, []string{"0+48+", "48+48+", "96+1"}},
		{96, 68, []string{"0+48+", "48+48"}},
		// the length of the last fragment need not be a multiple of eight
		{556, 576, []string{"0+556"}},
		{552 + 556, 576, []string{"0+552+", "552+556"}},
		{65515, 32780, []string{"0+32760+", "32760+32755"}},
	}
	for _, tt := range tests {
		packet := datagram(tt.payload)
		whole, text := header(t, packet)
		var got []string
		for _, b := range cut(packet, tt.mtu) {
			require.LessOrEqual(t, len(b), tt.mtu)
			h, payload := header(t, b)
			more := ""
			if h.MF {
				more = "+"
			}
			got = append(got, fmt.Sprintf("%d+%d%s", h.FragOff, len(payload), more))
			assert.Equal(t, text[h.FragOff:h.FragOff+len(payload)], payload)
			h.FragOff, h.MF, h.TotalLen = 0, false, whole.TotalLen
			assert.Equal(t, whole, h)
		}
		assert.Equal(t, tt.want, got, "%d bytes for %d", tt.payload, tt.mtu)
		var f ip.Fragmenter
		require.True(t, f.Reset(packet, tt.mtu, 0))
		assert.Equal(t, len(tt.want), f.Left())
	}
}

// RFC 791 §3.1: an option with the copied flag is in every fragment, any other only in the first. A
// malformed list ends at its first error.
func TestRFC791_3_1_CopiedOptions(t *testing.T) {
	const (
		nop         = 1
		recordRoute = 7    // this option is not copied
		streamID    = 0x88 // this option is copied
		security    = 0x82 // this option is copied
	)
	tests := []struct {
		name          string
		options, want []byte
	}{
		{"none", nil, nil},
		{"not copied", []byte{recordRoute, 3, 4, 0}, nil},
		{"copied", []byte{streamID, 4, 9, 9}, []byte{streamID, 4, 9, 9}},
		{
			"one of each",
			[]byte{nop, recordRoute, 7, 4, 1, 2, 3, 4, streamID, 4, 9, 8},
			[]byte{streamID, 4, 9, 8},
		},
		{
			"padded",
			[]byte{security, 3, 1, nop, recordRoute, 3, 4, 0},
			[]byte{security, 3, 1, 0},
		},
		{"after the end", []byte{0, streamID, 3, 9}, nil},
		{"a length of one", []byte{streamID, 1, 9, 9}, nil},
		{"a length too long", []byte{streamID, 4, 1, 1, streamID, 5, 9, 9}, []byte{streamID, 4, 1, 1}},
		{"no length", []byte{nop, nop, nop, streamID}, nil},
		{"forty bytes", bytes.Repeat([]byte{streamID, 4, 1, 2}, 10), bytes.Repeat([]byte{streamID, 4, 1, 2}, 10)},
	}
	for _, tt := range tests {
		pieces := cut(datagram(100, tt.options...), 68)
		require.Greater(t, len(pieces), 1, tt.name)
		for i, b := range pieces {
			h, _ := header(t, b)
			want := tt.want
			if i == 0 {
				want = tt.options
			}
			assert.Equal(t, want, slices.Clip(h.Options), "%s, fragment %d", tt.name, i)
		}
		var f ip.Fragmenter
		require.True(t, f.Reset(datagram(100, tt.options...), 68, 0))
		assert.Equal(t, len(pieces), f.Left(), tt.name)
	}
}

// RFC 791 §3.2: a fragment is fragmented like a whole packet. Only the last piece of the last
// fragment has no more-fragments flag.
func TestFragmentsOfFragments(t *testing.T) {
	packet := datagram(3000)
	_, text := header(t, packet)
	var got []byte
	var ends int
	for _, outer := range cut(packet, 1400) {
		for _, middle := range cut(outer, 576) {
			for _, inner := range cut(middle, 68) {
				h, payload := header(t, inner)
				require.Equal(t, len(got), h.FragOff)
				got = append(got, payload...)
				if !h.MF {
					ends++
				}
			}
		}
	}
	assert.Equal(t, text, got)
	assert.Equal(t, 1, ends)
}

// Fragmentation can pause while the link has no room. It continues later with the link's MTU at
// that time.
func TestFragmentationResumes(t *testing.T) {
	packet := datagram(1000)
	_, text := header(t, packet)
	var got []byte
	at := 0
	for i := 0; at < len(text); i++ {
		var f ip.Fragmenter
		require.True(t, f.Reset(packet, 68+100*i, at))
		b := make([]byte, f.HeaderLen())
		b = append(b, f.Next(b)...)
		h, payload := header(t, b)
		require.Equal(t, at, h.FragOff)
		require.Equal(t, at+len(payload) < len(text), h.MF)
		got = append(got, payload...)
		at = f.Done()
	}
	assert.Equal(t, text, got)
}

// RFC 791 §3.1: the 13-bit offset ends at 65,528. If a fragment reached beyond, the offsets of its
// pieces would wrap around and the pieces would overwrite earlier data.
func TestFragmentOffsetsDoNotWrap(t *testing.T) {
	h := ip.Header{TotalLen: 1400, TTL: 9, FragOff: 65528, Protocol: ip.ProtoUDP}
	packet := append(h.Append(nil), make([]byte, 1380)...)
	var f ip.Fragmenter
	assert.False(t, f.Reset(packet, 576, 0))
	h = ip.Header{TotalLen: 27, TTL: 9, FragOff: 65508 &^ 7, Protocol: ip.ProtoUDP}
	assert.True(t, f.Reset(append(h.Append(nil), make([]byte, 7)...), 576, 0))
}

func TestFragmentingAllocatesNothing(t *testing.T) {
	packet := datagram(65515, 0x88, 4, 1, 2)[:65535]
	ip.Header{TotalLen: 65535, Options: []byte{0x88, 4, 1, 2}}.Append(packet[:0])
	var f ip.Fragmenter
	out := make([]byte, ip.MaxHeaderLen)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		f.Reset(packet, 576, 0)
		for f.More() {
			f.Next(out[:f.HeaderLen()])
		}
	}))
}

// RFC 6864 §4.3: no identification repeats before all others were used. As in RFC 7739 for IPv6,
// known identifications do not reveal the next one.
func TestRFC6864_4_3_Identifications(t *testing.T) {
	src, dst := ip.V4(10, 0, 0, 1), ip.V4(10, 1, 0, 2)
	x := ip.NewIdentifications([16]byte{1, 2, 3})
	seen := map[uint32]bool{}
	steps := map[uint16]int{}
	last := uint32(0)
	for i := range 65536 {
		id := x.Next(src, dst, ip.ProtoUDP)
		require.False(t, seen[id], "%d is repeated after %d", id, i)
		seen[id] = true
		steps[uint16(id-last)]++
		last = id
	}
	most := 0
	for _, n := range steps {
		most = max(most, n)
	}
	assert.Less(t, most, 40, "no step is frequent")
	assert.Greater(t, len(steps), 30_000)
	other := ip.NewIdentifications([16]byte{1, 2, 4})
	x = ip.NewIdentifications([16]byte{1, 2, 3})
	same := 0
	for range 1000 {
		a, b := x.Next(src, dst, ip.ProtoUDP), other.Next(src, dst, ip.ProtoUDP)
		c := x.Next(dst, src, ip.ProtoUDP)
		if a == b || a == c {
			same++
		}
	}
	assert.Less(t, same, 5, "other secrets and addresses give other values")
	assert.Zero(t, testing.AllocsPerRun(100, func() { x.Next(src, dst, ip.ProtoUDP) }))
}

// RFC 7739 §5: identifications of IPv6 have 32 bits. Known ones do not reveal the next one, not even
// to the same destination. None is 0.
func TestRFC7739_5_Identifications6(t *testing.T) {
	x := ip.NewIdentifications([16]byte{1, 2, 3})
	seen, steps := map[uint32]bool{}, map[uint32]bool{}
	last, same := uint32(0), 0
	for range 100_000 {
		id := x.Next(src6, dst6, ip.ProtoUDP)
		require.NotZero(t, id)
		seen[id], steps[id-last] = true, true
		if id == x.Next(src6, dst6.Next(), ip.ProtoUDP) {
			same++
		}
		last = id
	}
	assert.Len(t, seen, 100_000)
	assert.Greater(t, len(steps), 99_000)
	assert.Zero(t, same)
	assert.Zero(t, testing.AllocsPerRun(100, func() { x.Next(src6, dst6, ip.ProtoUDP) }))
}

func BenchmarkIdentification(b *testing.B) {
	x := ip.NewIdentifications([16]byte{1})
	b.ReportAllocs()
	for b.Loop() {
		x.Next(ip.V4(10, 0, 0, 1), ip.V4(10, 1, 0, 2), ip.ProtoUDP)
	}
}
