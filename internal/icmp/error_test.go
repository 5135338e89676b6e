package icmp_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
)

var (
	noAddr  netip.Addr // ICMP's checksum does not cover the addresses
	errPort = icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodePort}
)

// RFC 792 requires the header and eight bytes, RFC 1812 §4.3.2.3 as much as 576 bytes hold. A link
// may carry less.
func TestErrorQuoteLength(t *testing.T) {
	udp, echo := unhex(t, udpPacket), unhex(t, echoPacket)
	long := append(append([]byte(nil), udp...), make([]byte, 1000)...)
	tests := []struct {
		name     string
		original []byte
		size     int
		want     int
	}{
		{"a short packet", udp, 1400, len(udp)},
		{"header with options", echo, 1400, len(echo)},
		{"a long packet", long, 1400, 548},
		{"a link of 68 bytes", long, 68, 40},
		{"options, and a link of 60", echo, 60, 36},
		{"less than eight bytes after the header", udp[:25], 1400, 25},
		{"nothing after the header", udp[:20], 1400, 20},
		{"a header longer than the packet", []byte{0x4f, 1, 2}, 1400, 3},
		{"nothing", nil, 1400, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := icmp.Error([]byte{9}, noAddr,
				icmp.ReportError{Type: icmp.TypeTimeExceeded, Code: icmp.CodeTTL}, 0, tt.original, tt.size)
			require.Equal(t, byte(9), b[0])
			m, ok := icmp.Parse(b[1:], noAddr, noAddr)
			require.True(t, ok)
			assert.Equal(t, icmp.TypeTimeExceeded, m.Type)
			assert.Equal(t, string(tt.original[:tt.want]), string(m.Body))
		})
	}
}

func TestErrorCarriesTheMTUOrAPointer(t *testing.T) {
	tooBig := icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeFragNeeded}
	for mtu, want := range map[int]int{576: 576, 1400: 1400, 70_000: 0xffff} {
		m, ok := icmp.Parse(icmp.Error(nil, noAddr, tooBig, mtu, unhex(t, udpPacket), 576), noAddr, noAddr)
		require.True(t, ok)
		got, ok := m.TooBig()
		assert.True(t, ok)
		assert.Equal(t, want, got)
		assert.Equal(t, [2]byte{}, [2]byte(m.Rest[:]), "RFC 1191 §4: the low half")
	}
	b := icmp.Error(nil, noAddr, icmp.ReportError{Type: icmp.TypeParameterProblem}, 20,
		unhex(t, udpPacket), 576)
	m, ok := icmp.Parse(b, noAddr, noAddr)
	require.True(t, ok)
	assert.Equal(t, [4]byte{20, 0, 0, 0}, m.Rest, "RFC 792: the first byte")
	assert.Equal(t, 20, m.Pointer())
	_, ok = m.TooBig()
	assert.False(t, ok)
}

// RFC 1122 §3.2.2: no error may be sent about these packets.
func TestMayReport(t *testing.T) {
	src := func(a ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[12:], a); return b }
	}
	dst := func(a ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[16:], a); return b }
	}
	at := func(i int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[i] = v; return b }
	}
	icmpOf := func(typ icmp.Type) func([]byte) []byte {
		return func(b []byte) []byte { b[9], b[20] = 1, typ.Number(); return b }
	}
	tests := []struct {
		name string
		edit func([]byte) []byte
		want bool
	}{
		{"a datagram", src(10, 0, 0, 1), true},
		{"the first fragment", at(6, 0x20), true},
		{"a later fragment", at(7, 0x01), false},
		{"the last fragment", at(6, 0x01), false},
		{"source zero", src(0, 0, 0, 0), false},
		{"source loopback", src(127, 0, 0, 1), false},
		{"source multicast", src(224, 0, 0, 9), false},
		{"source class E", src(240, 0, 0, 1), false},
		{"source broadcast", src(255, 255, 255, 255), false},
		{"to a multicast group", dst(224, 0, 0, 9), false},
		{"to the top of multicast", dst(239, 255, 255, 255), false},
		{"to everybody", dst(255, 255, 255, 255), false},
		{"an echo", icmpOf(icmp.TypeEcho), true},
		{"an echo reply", icmpOf(icmp.TypeEchoReply), true},
		{"a timestamp", icmpOf(icmp.TypeTimestamp), true},
		{"unreachable", icmpOf(icmp.TypeUnreachable), false},
		{"source quench", icmpOf(icmp.TypeSourceQuench), false},
		{"redirect", icmpOf(icmp.TypeRedirect), false},
		{"time exceeded", icmpOf(icmp.TypeTimeExceeded), false},
		{"parameter problem", icmpOf(icmp.TypeParameterProblem), false},
		{"an unknown message", icmpOf(200), false},
		{"a message of no bytes", func(b []byte) []byte { b[9] = 1; return b[:20] }, false},
		{"a header cut short", func(b []byte) []byte { return b[:19] }, false},
		{"nothing", func([]byte) []byte { return nil }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, udpPacket)
			copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
			assert.Equal(t, tt.want, icmp.MayReport(tt.edit(b), errPort, false))
		})
	}
}

func TestMayReportToItself(t *testing.T) {
	b := unhex(t, udpPacket)
	copy(b[12:], []byte{127, 0, 0, 1, 127, 0, 0, 2})
	assert.True(t, icmp.MayReport(b, errPort, true))
	assert.False(t, icmp.MayReport(b, errPort, false))
	b[12] = 224
	assert.False(t, icmp.MayReport(b, errPort, true))
}

func TestMayReportSkipsOptions(t *testing.T) {
	b := unhex(t, echoPacket)
	copy(b[12:], []byte{10, 0, 0, 1})
	assert.True(t, icmp.MayReport(b, errPort, false))
	b[28] = icmp.TypeTimeExceeded.Number()
	assert.False(t, icmp.MayReport(b, errPort, false))
}

func TestQuoted(t *testing.T) {
	m, ok := icmp.Parse(unhex(t, portUnreach)[20:], noAddr, noAddr)
	require.True(t, ok)
	q, rest, ok := icmp.Quoted(m.Body)
	require.True(t, ok)
	assert.Equal(t, icmp.Quote{
		Src: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{127, 0, 0, 2}), Protocol: 17, TotalLen: 39,
	}, q)
	assert.Equal(t, unhex(t, udpPacket)[20:], rest)

	q, rest, ok = icmp.Quoted(unhex(t, echoPacket))
	require.True(t, ok, "options are skipped")
	assert.Equal(t, uint8(1), q.Protocol)
	assert.Equal(t, icmp.TypeEcho.Number(), rest[0])
}

func TestQuotedRefuses(t *testing.T) {
	whole := unhex(t, udpPacket)
	for n := range 28 {
		_, _, ok := icmp.Quoted(whole[:n])
		assert.False(t, ok, "%d bytes", n)
	}
	_, _, ok := icmp.Quoted(whole[:28])
	assert.True(t, ok)
	for name, edit := range map[string]func([]byte){
		"version 6":        func(b []byte) { b[0] = 0x65 },
		"IHL 4":            func(b []byte) { b[0] = 0x44 },
		"IHL 15":           func(b []byte) { b[0] = 0x4f },
		"a later fragment": func(b []byte) { b[7] = 1 },
	} {
		b := append([]byte(nil), whole...)
		edit(b)
		_, _, ok := icmp.Quoted(b)
		assert.False(t, ok, name)
	}
}

func FuzzError(f *testing.F) {
	f.Add(unhex(f, udpPacket))
	f.Add(unhex(f, echoPacket))
	f.Add([]byte{0x4f})
	f.Fuzz(func(t *testing.T, original []byte) {
		may := icmp.MayReport(original, errPort, false)
		src, dst := netip.Addr{}, netip.Addr{}
		if len(original) >= 40 && original[0]>>4 == 6 {
			src, dst = netip.IPv6Unspecified(), netip.AddrFrom16([16]byte(original[8:]))
		}
		for _, size := range []int{0, 68, 300, 1400} {
			m, ok := icmp.Parse(icmp.Error(nil, src,
				icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeHost}, 0, original, size),
				src, dst)
			require.True(t, ok)
			if src.Is6() {
				require.Equal(t, icmp.TypeUnreachable6, m.Type)
				require.LessOrEqual(t, len(m.Body), max(0, min(size, icmp.MaxPacket6)-48))
			} else {
				require.LessOrEqual(t, len(m.Body), max(68, min(size, icmp.MaxPacket)-28))
			}
			require.Equal(t, original[:len(m.Body)], m.Body)
			if q, rest, ok := icmp.Quoted(m.Body); ok && may {
				require.True(t, src.Is6() || original[9] == q.Protocol)
				require.GreaterOrEqual(t, len(rest), 8)
			}
		}
	})
}
