package udp_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/udp"
)

var (
	hostA = netip.AddrFrom4([4]byte{10, 0, 0, 1})
	hostB = netip.AddrFrom4([4]byte{10, 0, 0, 2})
)

// This is a datagram summed by hand (RFC 768): 0a00+0001+0a00+0002+0011+000a+1234+0035+000a+6869 is
// 8efa, and its complement is 7105.
func TestHeaderOnTheWire(t *testing.T) {
	b := udp.Header{SrcPort: 0x1234, DstPort: 53}.Append([]byte("x"), hostA, hostB, []byte("hi"))
	require.Equal(t, "78"+"12340035000a"+"7105"+"6869", hex.EncodeToString(b))
	h, payload, ok := udp.ParseHeader(b[1:])
	require.True(t, ok)
	assert.Equal(t, udp.Header{SrcPort: 0x1234, DstPort: 53, Length: 10, Checksum: 0x7105}, h)
	assert.Equal(t, "hi", string(payload))
	assert.True(t, h.Verify(hostA, hostB, b[1:]))
	assert.False(t, h.Verify(hostB, netip.AddrFrom4([4]byte{10, 0, 0, 3}), b[1:]), "RFC 768: the pseudo-header counts")
}

func TestParseHeaderLengths(t *testing.T) {
	sound := udp.Header{SrcPort: 1, DstPort: 2}.Append(nil, hostA, hostB, []byte("abc"))
	for name, row := range map[string]struct {
		length byte
		extra  int // number of bytes after the datagram
		ok     bool
	}{
		"exact length":         {11, 0, true},
		"an IP payload longer": {11, 5, true},
		"no payload":           {8, 3, true},
		"below the header":     {7, 0, false},
		"zero":                 {0, 0, false},
		"beyond the packet":    {12, 0, false},
	} {
		b := append(bytes.Clone(sound), make([]byte, row.extra)...)
		b[5] = row.length
		_, payload, ok := udp.ParseHeader(b)
		assert.Equal(t, row.ok, ok, name)
		if ok {
			assert.Len(t, payload, int(row.length)-udp.HeaderLen, name)
		}
	}
	for n := range udp.HeaderLen {
		_, _, ok := udp.ParseHeader(sound[:n])
		assert.False(t, ok, "%d bytes", n)
	}
}

// RFC 768: a checksum of zero is sent as all ones. Zero means no checksum, and such a datagram is
// accepted (RFC 1122 §4.1.3.4).
func TestChecksumOfZero(t *testing.T) {
	h := udp.Header{SrcPort: 1, DstPort: 2}
	// Find the payload word that makes the sum all ones.
	probe := h.Append(nil, hostA, hostB, []byte{0, 0})
	b := h.Append(nil, hostA, hostB, probe[6:8])
	require.Equal(t, []byte{0xff, 0xff}, b[6:8])
	parsed, _, ok := udp.ParseHeader(b)
	require.True(t, ok)
	assert.True(t, parsed.Verify(hostA, hostB, b))

	b[6], b[7], b[8] = 0, 0, b[8]^1
	parsed, _, ok = udp.ParseHeader(b)
	require.True(t, ok)
	assert.True(t, parsed.Verify(hostA, hostB, b), "not computed, not verified")
}

func TestAppendPanicsIfThePayloadIsTooLong(t *testing.T) {
	h := udp.Header{}
	assert.Len(t, h.Append(nil, hostA, hostB, make([]byte, udp.MaxPayload)), 0xffff-20)
	assert.Panics(t, func() { h.Append(nil, hostA, hostB, make([]byte, udp.MaxPayload+1)) })
	six := netip.IPv6Loopback()
	assert.Len(t, h.Append(nil, six, six, make([]byte, udp.MaxPayload6)), 0xffff)
	assert.Panics(t, func() { h.Append(nil, six, six, make([]byte, udp.MaxPayload6+1)) })
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(nil), []byte("payload"))
	f.Add(udp.Header{SrcPort: 7, DstPort: 9}.Append(nil, hostA, hostB, []byte("odd")), []byte{})
	f.Add([]byte{0, 7, 0, 9, 0, 9, 0, 0, 1, 2}, []byte{0})
	f.Fuzz(func(t *testing.T, b, text []byte) {
		if h, payload, ok := udp.ParseHeader(b); ok {
			require.Len(t, payload, h.Length-udp.HeaderLen)
			again := h.Append(nil, hostA, hostB, payload)
			if h.Checksum != 0 && h.Verify(hostA, hostB, b) && h.Checksum != 0xffff {
				require.Equal(t, b[:h.Length], again)
			}
		}
		if len(text) > udp.MaxPayload {
			return
		}
		sent := udp.Header{SrcPort: 1, DstPort: 2}.Append(nil, hostA, hostB, text)
		h, payload, ok := udp.ParseHeader(sent)
		require.True(t, ok)
		require.True(t, bytes.Equal(text, payload))
		require.NotZero(t, h.Checksum)
		require.True(t, h.Verify(hostA, hostB, sent))
		if len(text) > 0 { // the checksum detects every flipped bit
			sent[udp.HeaderLen+int(text[0])%len(text)] ^= 1 << (text[0] % 8)
			require.False(t, h.Verify(hostA, hostB, sent))
		}
	})
}
