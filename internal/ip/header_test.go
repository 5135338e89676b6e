package ip_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// These packets were sent by a Linux kernel on its loopback interface.
const (
	udpPacket = "45000027913240004011ab907f0000017f000002" +
		"b9669c410013fe2777686f2773207468657265"
	echoWithRecordRoute = "4700002ccd6c40004001e64f7f0000017f000003" + "010707087f000001" +
		"08002d201234000174696465706f6f6c"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

// RFC 791 §3.1: ParseHeader reads each field of the header. RFC 1122 §3.2.1.8: an unknown option is
// skipped, and stays in the packet.
func TestParseHeaderOfRealPackets(t *testing.T) {
	tests := []struct {
		name    string
		packet  string
		want    ip.Header
		payload string
	}{
		{
			name:   "udp",
			packet: udpPacket,
			want: ip.Header{
				Len: 20, TotalLen: 39, ID: 0x9132, DF: true, TTL: 64, Protocol: ip.ProtoUDP,
				Src: ip.V4(127, 0, 0, 1), Dst: ip.V4(127, 0, 0, 2),
			},
			payload: "b9669c410013fe2777686f2773207468657265",
		},
		{
			name:   "echo with a record route option",
			packet: echoWithRecordRoute,
			want: ip.Header{
				Len: 28, TotalLen: 44, ID: 0xcd6c, DF: true, TTL: 64, Protocol: ip.ProtoICMP,
				Src: ip.V4(127, 0, 0, 1), Dst: ip.V4(127, 0, 0, 3),
				Options: []byte{1, 7, 7, 8, 127, 0, 0, 1},
			},
			payload: "08002d201234000174696465706f6f6c",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.packet)
			h, payload, drop := ip.ParseHeader(b)
			require.Equal(t, ip.DropNone, drop)
			assert.Equal(t, tt.want, h)
			assert.Equal(t, unhex(t, tt.payload), payload)
			assert.Equal(t, b, append(h.Append(nil), payload...), "Append gives the same bytes")
		})
	}
}

func TestParseHeaderFragments(t *testing.T) {
	tests := []struct {
		word   uint16
		df, mf bool
		off    int
	}{
		{0x0000, false, false, 0},
		{0x4000, true, false, 0},
		{0x2000, false, true, 0},
		{0x2001, false, true, 8},
		{0x1fff, false, false, 65528},
		{0x8000, false, false, 0}, // RFC 791's reserved bit is ignored
	}
	for _, tt := range tests {
		b := unhex(t, udpPacket)
		binary.BigEndian.PutUint16(b[6:], tt.word)
		fixChecksum(b)
		h, _, drop := ip.ParseHeader(b)
		require.Equal(t, ip.DropNone, drop)
		assert.Equal(t, tt.df, h.DF, "%04x", tt.word)
		assert.Equal(t, tt.mf, h.MF, "%04x", tt.word)
		assert.Equal(t, tt.off, h.FragOff, "%04x", tt.word)
		assert.Equal(t, tt.mf || tt.off > 0, h.IsFragment(), "%04x", tt.word)
	}
}

// fixChecksum corrects the checksum of the header in b.
func fixChecksum(b []byte) {
	ihl := min(int(b[0]&15)*4, len(b))
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b[:ihl]))
}

// RFC 1812 §5.2.2: ParseHeader checks the length, version, header length, total length and
// checksum.
func TestParseHeaderDrops(t *testing.T) {
	tests := []struct {
		name string
		bad  func(b []byte) []byte
		want ip.DropReason
	}{
		{"nothing", func([]byte) []byte { return nil }, ip.DropShort},
		{"five bytes", func(b []byte) []byte { return b[:5] }, ip.DropShort},
		{"19 bytes", func(b []byte) []byte { return b[:19] }, ip.DropShort},
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, ip.DropVersion},
		{"version 7", func(b []byte) []byte { b[0] = 0x75; return b }, ip.DropVersion},
		{"IHL 4", func(b []byte) []byte { b[0] = 0x44; return b }, ip.DropHeaderLength},
		{"IHL beyond the packet", func(b []byte) []byte { b[0] = 0x4f; return b }, ip.DropHeaderLength},
		{"total length 0", func(b []byte) []byte { b[2], b[3] = 0, 0; return b }, ip.DropTotalLength},
		{"total length 19", func(b []byte) []byte { b[3] = 19; return b }, ip.DropTotalLength},
		{"total length beyond the packet", func(b []byte) []byte { b[3]++; return b }, ip.DropTotalLength},
		{"cut short by a byte", func(b []byte) []byte { return b[:len(b)-1] }, ip.DropTotalLength},
		{"a bit of the TTL", func(b []byte) []byte { b[8] ^= 1; return b }, ip.DropHeaderChecksum},
		{"a bit of the checksum", func(b []byte) []byte { b[11] ^= 0x80; return b }, ip.DropHeaderChecksum},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, payload, drop := ip.ParseHeader(tt.bad(unhex(t, udpPacket)))
			assert.Equal(t, tt.want, drop)
			assert.Empty(t, payload)
			assert.Equal(t, ip.Header{}, h)
		})
	}
}

func TestParseHeaderChecksOptionsToo(t *testing.T) {
	b := unhex(t, echoWithRecordRoute)
	b[27] ^= 1
	_, _, drop := ip.ParseHeader(b)
	assert.Equal(t, ip.DropHeaderChecksum, drop)
}

func TestParseHeaderLimitsPayloadToTotalLength(t *testing.T) {
	// RFC 1122 §3.2.1 uses the total length and not the length on the link, because a link may pad
	// packets.
	b := append(unhex(t, udpPacket), 0, 0, 0)
	_, payload, drop := ip.ParseHeader(b)
	require.Equal(t, ip.DropNone, drop)
	assert.Len(t, payload, 19)
}

// RFC 791 §3.1: zeros end the list of options and pad it.
func TestAppendPadsOptions(t *testing.T) {
	h := ip.Header{TotalLen: 24, TTL: 1, Options: []byte{7, 3, 4}}
	b := h.Append([]byte("before"))
	assert.Equal(t, "before", string(b[:6]))
	got, payload, drop := ip.ParseHeader(b[6:])
	require.Equal(t, ip.DropNone, drop)
	assert.Equal(t, 24, got.Len)
	assert.Equal(t, []byte{7, 3, 4, 0}, got.Options)
	assert.Empty(t, payload)
	assert.Panics(t, func() { ip.Header{Options: make([]byte, 41)}.Append(nil) })
}

func TestPutEqualsAppend(t *testing.T) {
	h := ip.Header{
		TOS: 0x88, TotalLen: 1400, ID: 0xbeef, DF: true, MF: true, FragOff: 1480, TTL: 64,
		Protocol: ip.ProtoTCP, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	b := []byte{19: 0xff, 20: 0xee, 21: 0xdd}
	h.Put(b)
	assert.Equal(t, h.Append(nil), b[:20])
	assert.Equal(t, []byte{0xee, 0xdd}, b[20:], "the bytes after it are unchanged")
}

func TestHeaderDoesNotAllocate(t *testing.T) {
	packet, out := unhex(t, echoWithRecordRoute), make([]byte, 0, 64)
	allocs := testing.AllocsPerRun(100, func() {
		h, _, drop := ip.ParseHeader(packet)
		if drop != ip.DropNone {
			t.Fatal(drop)
		}
		out = h.Append(out[:0])
		h.Put(out)
	})
	assert.Zero(t, allocs)
}

func FuzzParseHeader(f *testing.F) {
	f.Add(unhex(f, udpPacket))
	f.Add(unhex(f, echoWithRecordRoute))
	f.Add([]byte{})
	f.Add([]byte("12345"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= ip.HeaderLen && len(b)%2 == 0 {
			fixChecksum(b) // without a valid checksum, nearly all packets would be dropped here
		}
		h, payload, drop := ip.ParseHeader(b)
		if drop != ip.DropNone {
			require.Equal(t, ip.Header{}, h)
			require.NotContains(t, drop.String(), "unknown reason")
			return
		}
		require.Equal(t, h.TotalLen, h.Len+len(payload))
		if h.Is6() {
			return // FuzzHeader6 compares these, but no jumbograms, which Append cannot write
		}
		again := append(h.Append(nil), payload...)
		h2, payload2, drop2 := ip.ParseHeader(again)
		require.Equal(t, ip.DropNone, drop2)
		require.Equal(t, h, h2)
		require.Equal(t, payload, payload2)
		if b[6]&0x80 == 0 && binary.BigEndian.Uint16(b[10:]) != 0xffff {
			require.Equal(t, b[:h.TotalLen], again)
		}
	})
}

func BenchmarkParseHeader(b *testing.B) {
	packet := unhex(b, udpPacket)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, drop := ip.ParseHeader(packet); drop != ip.DropNone {
			b.Fatal(drop)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	h := ip.Header{TotalLen: 1400, DF: true, TTL: 64, Protocol: ip.ProtoTCP}
	var out [ip.HeaderLen]byte
	b.ReportAllocs()
	for b.Loop() {
		h.Put(out[:])
	}
}
