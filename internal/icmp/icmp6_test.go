package icmp_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

// These IPv6 packets were sent by a Linux kernel: a datagram to a closed port with the error about
// it, and an echo request.
const (
	portUnreach6 = "600889b4003b3a40" + "20010db8000000000000000000000002" + "20010db8000000000000000000000001" +
		"0104646600000000" + "6002036c000b1140" + "20010db8000000000000000000000001" + "20010db8000000000000000000000002" +
		"a06d0009000b5b9168690a"
	echo6Packet = "6000ce3500403a40" + "20010db8000000000000000000000001" + "20010db8000000000000000000000002" +
		"8000f49a156a0001" + "aaae046b00000000ab1d010000000000101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637"
)

// hostOne and hostTwo are the ends of those packets.
var hostOne, hostTwo = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")

// packet6 is an IPv6 packet from hostOne to hostTwo.
func packet6(protocol byte, payload ...byte) []byte {
	b := make([]byte, 40, 40+len(payload))
	b[0], b[6], b[7] = 0x60, protocol, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	src, dst := hostOne.As16(), hostTwo.As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	return append(b, payload...)
}

// RFC 4443 §2.1, §2.3, §3.1 and §4.1, RFC 8200 §8.1: messages from a Linux kernel are parsed and
// written unchanged.
func TestRFC4443_2_RealMessages(t *testing.T) {
	b := unhex(t, portUnreach6)[40:]
	m, ok := icmp.Parse(b, hostTwo, hostOne)
	require.True(t, ok)
	assert.Equal(t, icmp.Message{Type: icmp.TypeUnreachable6, Code: icmp.CodePort6, Body: b[8:]}, m)
	assert.Equal(t, b, m.Append(nil, hostTwo, hostOne))
	q, rest, ok := icmp.Quoted(m.Body)
	require.True(t, ok)
	assert.Equal(t, icmp.Quote{Src: hostOne, Dst: hostTwo, Protocol: 17, TotalLen: 51}, q)
	assert.Equal(t, b[8+40:], rest)
	assert.Equal(t, b, icmp.Error(nil, hostTwo, errPort, 0, m.Body, 1500))

	b = unhex(t, echo6Packet)[40:]
	m, ok = icmp.Parse(b, hostOne, hostTwo)
	require.True(t, ok)
	id, seq := m.Echo()
	assert.Equal(t, []any{icmp.TypeEcho6, uint16(0x156a), uint16(1)}, []any{m.Type, id, seq})
	for bit := range len(b) * 8 {
		bad := append([]byte(nil), b...)
		bad[bit/8] ^= 1 << (bit % 8)
		_, ok := icmp.Parse(bad, hostOne, hostTwo)
		assert.False(t, ok, "bit %d flipped", bit)
	}
	_, ok = icmp.Parse(b, hostOne, netip.MustParseAddr("2001:db8::3"))
	assert.False(t, ok, "RFC 4443 §2.3: the checksum covers the addresses")
	_, ok = icmp.Parse(b, noAddr, noAddr)
	assert.False(t, ok, "not a message of ICMP")
}

// RFC 7915 §4.2 and RFC 4443 §3.1, §3.2, §3.3, §3.4: each ICMP error is converted to an ICMPv6
// error with its value.
func TestRFC4443_3_Errors(t *testing.T) {
	type row struct {
		in    icmp.ReportError
		value int
		want  icmp.ReportError
		rest  uint32
	}
	of := func(t icmp.Type, code uint8) icmp.ReportError { return icmp.ReportError{Type: t, Code: code} }
	for _, r := range []row{
		{of(icmp.TypeUnreachable, icmp.CodeNet), 0, of(icmp.TypeUnreachable6, icmp.CodeNoRoute), 0},
		{of(icmp.TypeUnreachable, icmp.CodeHost), 0, of(icmp.TypeUnreachable6, icmp.CodeAddress), 0},
		{of(icmp.TypeUnreachable, icmp.CodeProtocol), 0, of(icmp.TypeParameterProblem6, icmp.CodeNextHeader), 40},
		{errPort, 0, of(icmp.TypeUnreachable6, icmp.CodePort6), 0},
		{of(icmp.TypeUnreachable, icmp.CodeFragNeeded), 100_000, of(icmp.TypeTooBig, 0), 100_000},
		{of(icmp.TypeUnreachable, icmp.CodeNetProhibited), 0, of(icmp.TypeUnreachable6, icmp.CodeProhibited6), 0},
		{of(icmp.TypeUnreachable, icmp.CodeHostProhibited), 0, of(icmp.TypeUnreachable6, icmp.CodeProhibited6), 0},
		{of(icmp.TypeUnreachable, icmp.CodeAdminProhibited), 0, of(icmp.TypeUnreachable6, icmp.CodeProhibited6), 0},
		{of(icmp.TypeTimeExceeded, icmp.CodeTTL), 0, of(icmp.TypeTimeExceeded6, icmp.CodeTTL), 0},
		{of(icmp.TypeTimeExceeded, icmp.CodeReassembly), 0, of(icmp.TypeTimeExceeded6, icmp.CodeReassembly), 0},
		{of(icmp.TypeParameterProblem, 0), 41, of(icmp.TypeParameterProblem6, icmp.CodeHeaderField), 41},
		{of(icmp.TypeParameterProblem6, icmp.CodeOption), 300, of(icmp.TypeParameterProblem6, icmp.CodeOption), 300},
		{of(icmp.TypeUnreachable6, icmp.CodeSourcePolicy), 0, of(icmp.TypeUnreachable6, icmp.CodeSourcePolicy), 0},
	} {
		original := packet6(60, append([]byte{200, 0, 1, 4, 0, 0, 0, 0}, make([]byte, 2000)...)...)
		b := icmp.Error(nil, hostTwo, r.in, r.value, original, 1500)
		m, ok := icmp.Parse(b, hostTwo, hostOne)
		require.True(t, ok)
		assert.Equal(t, r.want, m.Report(), r.in)
		assert.Equal(t, r.rest, binary.BigEndian.Uint32(m.Rest[:]), r.in)
		assert.Len(t, m.Body, 1280-48, "RFC 4443 §2.4: as much as fits in the minimum MTU")
		mtu, tooBig := m.TooBig()
		assert.Equal(t, m.Type == icmp.TypeTooBig, tooBig)
		if tooBig {
			assert.Equal(t, 100_000, mtu)
		}
		if m.Type == icmp.TypeParameterProblem6 {
			assert.Equal(t, int(r.rest), m.Pointer())
		}
	}
}

// RFC 4443 §2.4 (e): no error is sent about these packets.
func TestRFC4443_2_4_MayReport(t *testing.T) {
	tooBig := icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeFragNeeded}
	option := icmp.ReportError{Type: icmp.TypeParameterProblem6, Code: icmp.CodeOption}
	header := icmp.ReportError{Type: icmp.TypeParameterProblem6}
	ends := func(src, dst string, b []byte) []byte {
		s, d := netip.MustParseAddr(src).As16(), netip.MustParseAddr(dst).As16()
		copy(b[8:], s[:])
		copy(b[24:], d[:])
		return b
	}
	of := func(typ icmp.Type) []byte { return packet6(58, typ.Number(), 0, 0, 0) }
	udp := func() []byte { return packet6(17, 1, 2, 3, 4, 0, 8, 0, 0) }
	for _, row := range []struct {
		name   string
		packet []byte
		report icmp.ReportError
		want   bool
	}{
		{"a datagram", udp(), errPort, true},
		{"nothing after the header", packet6(59), errPort, true},
		{"a header cut short", udp()[:39], errPort, false},
		{"an echo", of(icmp.TypeEcho6), errPort, true},
		{"an unknown query", of(200), errPort, true},
		{"an unknown error", of(100), errPort, false},
		{"unreachable", of(icmp.TypeUnreachable6), errPort, false},
		{"too big", of(icmp.TypeTooBig), tooBig, false},
		{"a redirect", of(icmp.TypeRedirect6), errPort, false},
		{"an empty message", packet6(58), errPort, false},
		{"an error after a header", packet6(60, 58, 0, 1, 4, 0, 0, 0, 0, 1, 4), errPort, false},
		{"an echo after a header", packet6(60, 58, 0, 1, 4, 0, 0, 0, 0, 128, 0), errPort, true},
		{"a chain cut short", packet6(60, 58, 1, 1, 4, 0, 0, 0, 0), errPort, false},
		{"the first fragment", packet6(44, 17, 0, 0, 1, 0, 0, 0, 9), errPort, true},
		{"a later fragment", packet6(44, 17, 0, 0, 9, 0, 0, 0, 9), tooBig, true},
		{"a later fragment of ICMPv6", packet6(44, 58, 0, 0, 9, 0, 0, 0, 9, 128), tooBig, false},
		{"source unspecified", ends("::", "2001:db8::2", udp()), errPort, false},
		{"source multicast", ends("ff02::1", "2001:db8::2", udp()), errPort, false},
		{"source loopback", ends("::1", "2001:db8::2", udp()), errPort, false},
		{"to a group", ends("2001:db8::1", "ff02::2", udp()), errPort, false},
		{"to a group, too big", ends("2001:db8::1", "ff02::2", udp()), tooBig, true},
		{"to a group, an option", ends("2001:db8::1", "ff02::2", udp()), option, true},
		{"to a group, a header", ends("2001:db8::1", "ff02::2", udp()), header, false},
		{"a message of ICMP in IPv6", packet6(1, 3), errPort, true},
	} {
		assert.Equal(t, row.want, icmp.MayReport(row.packet, row.report, false), row.name)
	}
	assert.True(t, icmp.MayReport(ends("::1", "::1", udp()), errPort, true))
}

// RFC 8200 §4.1: extension headers before the quoted payload are skipped, at most seven.
func TestRFC8200_4_1_QuotedAfterExtensions(t *testing.T) {
	ext := []byte{60, 0, 1, 4, 0, 0, 0, 0}
	chain := func(n int, last ...byte) (b []byte) {
		for range n {
			b = append(b, ext...)
		}
		if n > 0 {
			b[len(b)-8] = last[0]
		}
		return append(b, last[1:]...)
	}
	udp := []byte{17, 0, 1, 0, 2, 0, 8, 0, 0}
	for n := range 8 {
		q, rest, ok := icmp.Quoted(packet6([]byte{17, 60}[min(n, 1)], chain(n, udp...)...))
		require.True(t, ok, n)
		assert.Equal(t, uint8(17), q.Protocol)
		assert.Equal(t, udp[1:], rest)
	}
	for name, b := range map[string][]byte{
		"eight headers":       packet6(60, chain(8, udp...)...),
		"seven bytes":         packet6(17, udp[1:8]...),
		"a header cut short":  packet6(0, 17, 0, 0),
		"a header too long":   packet6(43, append([]byte{17, 3, 0, 0, 0, 0, 0, 0}, udp[1:]...)...),
		"a later fragment":    packet6(44, append([]byte{17, 0, 1, 0, 0, 0, 0, 0}, udp[1:]...)...),
		"a header of version": append([]byte{0x50}, packet6(17, udp[1:]...)[1:]...),
	} {
		_, _, ok := icmp.Quoted(b)
		assert.False(t, ok, name)
	}
}

// RFC 9293 §3.9.2.2 and RFC 4443 §3: each error has the right effect on a connection and on a
// socket.
func TestRFC4443_3_Meanings(t *testing.T) {
	for _, row := range []struct {
		typ              icmp.Type
		code             uint8
		refuses, lasting bool
		text             string
	}{
		{icmp.TypeUnreachable6, 0, false, false, "no route to destination"},
		{icmp.TypeUnreachable6, 1, false, true, "communication prohibited"},
		{icmp.TypeUnreachable6, 2, false, false, "beyond scope of source address"},
		{icmp.TypeUnreachable6, 3, false, false, "address unreachable"},
		{icmp.TypeUnreachable6, 4, true, true, "port unreachable"},
		{icmp.TypeUnreachable6, 5, false, true, "source address failed policy"},
		{icmp.TypeUnreachable6, 6, false, true, "reject route to destination"},
		{icmp.TypeUnreachable6, 7, false, false, "ICMPv6 error of type 1, code 7"},
		{icmp.TypeTooBig, 0, false, false, "packet too big"},
		{icmp.TypeTimeExceeded6, 0, false, false, "hop limit exceeded"},
		{icmp.TypeTimeExceeded6, 1, false, false, "fragment reassembly time exceeded"},
		{icmp.TypeParameterProblem6, 0, false, true, "parameter problem, code 0"},
		{icmp.TypeParameterProblem6, 1, false, true, "protocol unreachable"},
		{icmp.TypeParameterProblem6, 2, false, true, "parameter problem, code 2"},
	} {
		r := icmp.ReportError{Type: row.typ, Code: row.code}
		assert.Equal(t, row.refuses, r.Refuses(), r)
		assert.Equal(t, row.lasting, r.Permanent(), r)
		assert.EqualError(t, r, row.text)
	}
}

// RFC 4443 §4.1 and §3.3: a ping and a trace of an IPv6 host succeed. The trace's first probe is
// too big.
func TestProbesOfIPv6(t *testing.T) {
	p := icmp.NewPing(1, icmp.PingConfig{Dst: hostTwo, ID: 7, Data: []byte("tide"), Count: 1})
	var sent icmp.Packet
	require.True(t, p.Output(1, &sent))
	request, reply := icmp.EchoTypes(sent.Dst)
	require.Equal(t, icmp.TypeEcho6, request)
	b := icmp.Message{Type: reply, Rest: icmp.EchoRest(sent.ID, sent.Seq), Body: sent.Data}.Append(nil, hostTwo, hostOne)
	a := icmp.Answer{From: hostTwo, Dst: hostTwo}
	require.True(t, a.Parse(b, hostOne))
	p.Input(3, &a)
	assert.Equal(t, 1, p.Info().Received)
	b[8] ^= 1
	a = icmp.Answer{From: hostTwo, Dst: hostTwo}
	require.True(t, a.Parse(b, hostOne))
	assert.True(t, a.Damaged)
	b[0] = icmp.TypeEcho6.Number()
	assert.False(t, a.Parse(b, hostOne))

	router := netip.MustParseAddr("2001:db8::ff")
	tr := icmp.NewTrace(icmp.TraceConfig{
		Dst: hostTwo, Kind: icmp.Datagram, ID: 9, Port: 33434, First: 1, Max: 3, Queries: 1, Parallel: 1,
		DF: true, Data: make([]byte, 1452), Overhead: 48,
	})
	answer := func(now clock.Time, r icmp.ReportError, value int) {
		var probe icmp.Packet
		require.True(t, tr.Output(now, &probe))
		udp := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, probe.ID), probe.Seq)
		about := packet6(17, append(udp, make([]byte, 4+len(probe.Data))...)...)
		a := icmp.Answer{From: router, Dst: router}
		require.True(t, a.Parse(icmp.Error(nil, router, r, value, about, 1500), hostOne))
		assert.Equal(t, value, a.MTU)
		tr.Input(now+2, &a)
	}
	answer(1, icmp.ReportError{Type: icmp.TypeTooBig}, 1400)
	answer(5, icmp.ReportError{Type: icmp.TypeTimeExceeded}, 0)
	ttl, replies, ok := tr.Hop()
	require.True(t, ok)
	assert.Equal(t, 1, ttl)
	assert.Equal(t, 1400, replies[0].PathMTU)
	answer(9, errPort, 0)
	assert.True(t, tr.Done())

	tr = icmp.NewTrace(icmp.TraceConfig{Dst: hostTwo, First: 1, Max: 1, Queries: 1, Parallel: 1})
	require.True(t, tr.Output(1, &sent))
	tr.Refused(1, assert.AnError, 1280)
	_, replies, ok = tr.Hop()
	require.True(t, ok)
	assert.Equal(t, icmp.TypeTooBig, replies[0].Type)
}

// An error about a packet of the other IP version answers no probe.
func TestAnswerOfTheOtherFamily(t *testing.T) {
	m := icmp.Message{Type: icmp.TypeUnreachable6, Code: icmp.CodePort6, Body: unhex(t, udpPacket)}
	a := icmp.Answer{From: hostTwo}
	assert.False(t, a.Parse(m.Append(nil, hostTwo, hostOne), hostOne))
}
