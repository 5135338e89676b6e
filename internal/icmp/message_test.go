package icmp_test

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
)

// These IP packets were sent by a Linux kernel on its loopback interface: a datagram to a closed
// port and the error about it, and an echo request with a record route option and its reply.
const (
	udpPacket   = "45000027913240004011ab907f0000017f000002b9669c410013fe2777686f2773207468657265"
	portUnreach = "45c000430cc5000040016f327f0000027f000001" + "0303108e00000000" + udpPacket
	echoPacket  = "4700002ccd6c40004001e64f7f0000017f000003010707087f000001" + "08002d201234000174696465706f6f6c"
	replyPacket = "4700002cac1100004001be357f0000037f0000010707087f00000100" + "000035201234000174696465706f6f6c"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

func TestParseRealMessages(t *testing.T) {
	tests := []struct {
		name   string
		packet string
		header int // length of the IP header
		want   icmp.Message
	}{
		{"port unreachable", portUnreach, 20, icmp.Message{
			Type: icmp.TypeUnreachable, Code: icmp.CodePort, Body: unhex(t, udpPacket),
		}},
		{"echo", echoPacket, 28, icmp.Message{
			Type: icmp.TypeEcho, Rest: icmp.EchoRest(0x1234, 1), Body: []byte("tidepool"),
		}},
		{"echo reply", replyPacket, 28, icmp.Message{
			Type: icmp.TypeEchoReply, Rest: icmp.EchoRest(0x1234, 1), Body: []byte("tidepool"),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.packet)[tt.header:]
			m, ok := icmp.Parse(b, noAddr, noAddr)
			require.True(t, ok)
			assert.Equal(t, tt.want, m)
			assert.Equal(t, append([]byte("before"), b...), m.Append([]byte("before"), noAddr, noAddr))
		})
	}
}

func TestParseRefuses(t *testing.T) {
	echo := unhex(t, echoPacket)[28:]
	for n := range icmp.HeaderLen {
		_, ok := icmp.Parse(echo[:n], noAddr, noAddr)
		assert.False(t, ok, "%d bytes", n)
	}
	for bit := range len(echo) * 8 {
		bad := append([]byte(nil), echo...)
		bad[bit/8] ^= 1 << (bit % 8)
		_, ok := icmp.Parse(bad, noAddr, noAddr)
		assert.False(t, ok, "bit %d turned", bit)
	}
}

func TestParseOddLength(t *testing.T) {
	// RFC 792: "If the total length is odd, the received data is padded with one
	// octet of zeros for computing the checksum."
	m := icmp.Message{Type: icmp.TypeEcho, Body: []byte("odd")}
	got, ok := icmp.Parse(m.Append(nil, noAddr, noAddr), noAddr, noAddr)
	require.True(t, ok)
	assert.Equal(t, m, got)
}

func TestEchoFields(t *testing.T) {
	m := icmp.Message{Rest: icmp.EchoRest(0xabcd, 0x0102)}
	id, seq := m.Echo()
	assert.Equal(t, uint16(0xabcd), id)
	assert.Equal(t, uint16(0x0102), seq)
}

func TestAppendAndParseDoNotAllocate(t *testing.T) {
	m := icmp.Message{Type: icmp.TypeEcho, Body: []byte("tidepool")}
	out := make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out = m.Append(out[:0], noAddr, noAddr)
		if _, ok := icmp.Parse(out, noAddr, noAddr); !ok {
			t.Fatal("refused")
		}
	}))
}

func FuzzParse(f *testing.F) {
	f.Add(unhex(f, portUnreach)[20:])
	f.Add(unhex(f, echoPacket)[28:])
	f.Add([]byte{})
	f.Add(unhex(f, portUnreach6)[40:])
	f.Add(unhex(f, echo6Packet)[40:])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, ends := range [][2]netip.Addr{{noAddr, noAddr}, {hostOne, hostTwo}, {hostTwo, hostOne}} {
			m, ok := icmp.Parse(b, ends[0], ends[1])
			if !ok {
				continue
			}
			require.Equal(t, ends[0].Is6(), m.Type.Is6())
			again, ok := icmp.Parse(m.Append(nil, ends[0], ends[1]), ends[0], ends[1])
			require.True(t, ok)
			require.Equal(t, m, again)
			a := icmp.Answer{From: ends[0], Dst: ends[0]}
			if a.Parse(b, ends[1]) {
				require.GreaterOrEqual(t, a.MTU, 0)
				require.GreaterOrEqual(t, a.Pointer, 0)
			}
		}
		// Parsing the message that Append writes returns the same message.
		if len(b) >= icmp.HeaderLen {
			m := icmp.Message{Type: icmp.Type(b[0]), Code: b[1], Rest: [4]byte(b[4:8]), Body: b[8:]}
			got, ok := icmp.Parse(m.Append(nil, noAddr, noAddr), noAddr, noAddr)
			require.True(t, ok)
			require.Equal(t, m, got)
		}
	})
}
