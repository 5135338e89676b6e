package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
)

// testPacket is a packet from the kernel that a test can change before it computes the checksums.
type testPacket struct {
	v6      bool
	proto   uint8
	options int // length of the TCP options in bytes
	flags   uint8
	id      uint16
	df      bool
	tos     uint8
	seq     uint32
	text    []byte
}

// packet returns the packet with correct checksums, and the length of its headers.
func (w testPacket) packet() (b []byte, headers int) {
	start := 20
	if w.v6 {
		start = 40
	}
	headers = start + 8
	if w.proto == protoTCP {
		headers = start + 20 + w.options
	}
	b = make([]byte, headers+len(w.text))
	copy(b[headers:], w.text)
	e := binary.BigEndian
	p := b[start:]
	if w.v6 {
		e.PutUint32(b, 6<<28|uint32(w.tos)<<20|0x12345)
		e.PutUint16(b[4:], uint16(len(p)))
		b[6], b[7] = w.proto, 64
		copy(b[8:], netip.MustParseAddr("fd00:8::2").AsSlice())
		copy(b[24:], netip.MustParseAddr("fd00:2::2").AsSlice())
	} else {
		b[0], b[1], b[8], b[9] = 0x45, w.tos, 64, w.proto
		e.PutUint16(b[2:], uint16(len(b)))
		e.PutUint16(b[4:], w.id)
		if w.df {
			b[6] = 0x40
		}
		copy(b[12:], []byte{10, 8, 0, 2, 10, 2, 0, 2})
		e.PutUint16(b[10:], checksum.Checksum(b[:20]))
	}
	copy(p, []byte{0x80, 0, 0x23, 0x28})
	at := udpSumAt
	if w.proto == protoTCP {
		e.PutUint32(p[4:], w.seq)
		e.PutUint32(p[8:], 77)
		p[12], p[13] = byte((20+w.options)/4)<<4, w.flags
		e.PutUint16(p[14:], 500)
		for i := range w.options {
			p[20+i] = 1 // no-operation option
		}
		at = tcpSumAt
	} else {
		e.PutUint16(p[4:], uint16(len(p)))
	}
	src, dst, _ := addresses(b)
	sum := ^checksum.Fold(checksum.Sum(p, checksum.PseudoHeader(src, dst, w.proto, len(p))))
	if sum == 0 {
		sum = 0xffff
	}
	e.PutUint16(p[at:], sum)
	return b, headers
}

func randomPayload(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// splitAll splits a packet in memory of the same size as the device's.
func splitAll(t *testing.T, h vnetHeader, packet []byte) [][]byte {
	t.Helper()
	mem := make([]byte, tunBurstBytes)
	copy(mem, packet)
	got, ok := h.split(mem, len(packet))
	require.True(t, ok)
	var packets [][]byte
	for data := mem[:got.bytes]; len(data) > 0; {
		n := min(got.size, len(data))
		packets = append(packets, data[:n:n])
		data = data[n:]
	}
	return packets
}

// The segments equal those of a sender without offload. PSH and FIN are on the last segment (RFC
// 9293 §3.8.2), CWR is on the first new one (RFC 3168 §6.1.2), and identifications do not repeat
// (RFC 6864 §4.2).
func TestVnetSplitsTCP(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { testVnetSplitsTCP(t, testPacket{}, vnetTCPv4, 20) })
	t.Run("IPv6", func(t *testing.T) { testVnetSplitsTCP(t, testPacket{v6: true}, vnetTCPv6, 40) })
}

func testVnetSplitsTCP(t *testing.T, w testPacket, gso uint8, start uint16) {
	t.Helper()
	text := randomPayload(1, 3000)
	w.proto, w.options, w.flags = protoTCP, 12, tcpACK|tcpPSH|tcpFIN|tcpCWR
	w.id, w.tos, w.seq, w.text = 0xffff, 2, 0xffffff00, text
	b, headers := w.packet()
	packets := splitAll(t, vnetHeader{
		flags: vnetNeedsChecksum, gso: gso | vnetECN, gsoSize: 1348, csumStart: start, csumOffset: 16,
	}, b)
	require.Len(t, packets, 3)
	for i, p := range packets {
		part := text[i*1348 : min(len(text), (i+1)*1348)]
		flags := []uint8{tcpACK | tcpCWR, tcpACK, tcpACK | tcpPSH | tcpFIN}[i]
		want := w
		want.flags, want.id, want.seq, want.text = flags, w.id+uint16(i), w.seq+uint32(i*1348), part
		sealed, _ := want.packet()
		assert.Equal(t, sealed, p, "segment %d", i)
		assert.Len(t, p, headers+len(part))
	}
}

func TestVnetSplitsUDP(t *testing.T) {
	text := randomPayload(2, 2500)
	for _, v6 := range []bool{false, true} {
		w := testPacket{v6: v6, proto: protoUDP, id: 7, text: text}
		b, _ := w.packet()
		packets := splitAll(t, vnetHeader{flags: vnetNeedsChecksum, gso: vnetUDP, gsoSize: 1000}, b)
		require.Len(t, packets, 3)
		for i, p := range packets {
			want := w
			want.id, want.text = w.id+uint16(i), text[i*1000:min(len(text), (i+1)*1000)]
			sealed, _ := want.packet()
			assert.Equal(t, sealed, p, "datagram %d", i)
		}
	}
}

// The device completes a checksum that the kernel left to it. RFC 768: a checksum of zero is sent
// as all ones.
func TestVnetCompletesAChecksum(t *testing.T) {
	for _, proto := range []uint8{protoTCP, protoUDP} {
		at := map[uint8]int{protoTCP: tcpSumAt, protoUDP: udpSumAt}[proto]
		for i := range 200_000 {
			text := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
			want, _ := testPacket{proto: proto, flags: tcpACK, text: text}.packet()
			b := bytes.Clone(want)
			l, ok := parseLayout(b, len(b))
			require.True(t, ok)
			binary.BigEndian.PutUint16(b[20+at:], checksum.Fold(l.pseudo(b, len(b)-20)))
			h := vnetHeader{flags: vnetNeedsChecksum, csumStart: 20, csumOffset: uint16(at)}
			got, ok := h.split(b, len(b))
			require.True(t, ok)
			require.Equal(t, burst{bytes: len(b), size: len(b), checked: true}, got)
			require.Equal(t, want, b, "%x", text)
			if binary.BigEndian.Uint16(want[20+at:]) == 0xffff {
				break // a checksum of all ones was tested
			}
		}
	}
	b, _ := testPacket{proto: protoTCP, flags: tcpACK, text: []byte("as it is")}.packet()
	got, ok := vnetHeader{}.split(bytes.Clone(b), len(b))
	require.True(t, ok)
	assert.False(t, got.checked, "the kernel only forwards the packet")
}

func TestVnetRejectsInvalidHeaders(t *testing.T) {
	good := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: 100, csumStart: 20, csumOffset: 16}
	tcp := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(3, 1000)}
	udp := tcp
	udp.proto = protoUDP
	for name, c := range map[string]struct {
		change func(h *vnetHeader, b []byte)
		udp    bool
	}{
		"no size":              {change: func(h *vnetHeader, _ []byte) { h.gsoSize = 0 }},
		"UDP as TCP":           {change: func(*vnetHeader, []byte) {}, udp: true},
		"TCP as UDP":           {change: func(h *vnetHeader, _ []byte) { h.gso = vnetUDP }},
		"IPv6":                 {change: func(_ *vnetHeader, b []byte) { b[0] = 0x60 }},
		"IPv4 as IPv6":         {change: func(h *vnetHeader, _ []byte) { h.gso = vnetTCPv6 }},
		"unknown kind":         {change: func(h *vnetHeader, _ []byte) { h.gso = 3 }},
		"fragment":             {change: func(_ *vnetHeader, b []byte) { b[6] = 0x20 }},
		"IP header too long":   {change: func(_ *vnetHeader, b []byte) { b[0] = 0x4f; b[9] = 1 }},
		"IP header too short":  {change: func(_ *vnetHeader, b []byte) { b[0] = 0x44 }},
		"TCP header too short": {change: func(_ *vnetHeader, b []byte) { b[32] = 0x40 }},
		"another length":       {change: func(_ *vnetHeader, b []byte) { b[3]++ }},
		"checksum outside": {change: func(h *vnetHeader, b []byte) {
			h.gso, h.csumStart, h.csumOffset = vnetNone, 65535, uint16(len(b))
		}},
		"checksum at the very end": {change: func(h *vnetHeader, b []byte) {
			h.gso, h.csumStart, h.csumOffset = vnetNone, 20, uint16(len(b)-21)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := tcp
			if c.udp {
				w = udp
			}
			b, _ := w.packet()
			h := good
			c.change(&h, b)
			_, ok := h.split(append(b, make([]byte, 4096)...), len(b))
			assert.False(t, ok)
		})
	}
	b, _ := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(4, 60_000)}.packet()
	_, ok := vnetHeader{gso: vnetTCPv4, gsoSize: 1}.split(append(b, make([]byte, tunBurstBytes)...), len(b))
	assert.False(t, ok, "60,000 packets do not fit in memory")
	_, ok = parseVnet(make([]byte, vnetHeaderLen-1))
	assert.False(t, ok)
}

// splitPieces returns a packet in pieces, as the protocol engines make them.
func splitPieces(r *rand.Rand, b []byte, headers int) [][]byte {
	if r.IntN(2) == 0 {
		return [][]byte{b}
	}
	cut := headers + r.IntN(len(b)-headers+1)
	return [][]byte{b[:headers], b[headers:cut], b[cut:]}
}

// joinAll joins packets to trains as the device does.
func joinAll(j *joiner, packets [][][]byte) (headers []vnetHeader, bodies [][]byte) {
	flush := func() {
		if j.count > 0 {
			h := j.finish()
			headers = append(headers, h)
			bodies = append(bodies, bytes.Join(j.pieces, nil))
		}
	}
	for _, p := range packets {
		size := 0
		for _, piece := range p {
			size += len(piece)
		}
		if !j.add(p, size) {
			flush()
			j.start(p, size, true)
		}
	}
	flush()
	j.reset()
	return headers, bodies
}

// Splitting a joined train, as the kernel or a network card does, yields the original packets.
func TestVnetJoinReversesSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for round := range 500 {
		w := testPacket{
			proto: protoTCP, options: []int{0, 12}[r.IntN(2)], flags: tcpACK, id: uint16(r.Uint32()),
			df: r.IntN(2) == 0, seq: r.Uint32(), text: randomPayload(uint64(round),
				1+r.IntN(60_000)),
		}
		h := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: uint16(500 + r.IntN(1000))}
		if r.IntN(2) == 0 {
			w.flags |= []uint8{tcpPSH, tcpFIN, tcpPSH | tcpFIN}[r.IntN(3)]
		}
		if r.IntN(3) == 0 {
			w.flags |= tcpCWR
			h.gso |= vnetECN
		}
		if w.v6 = r.IntN(2) == 0; w.v6 {
			h.gso += vnetTCPv6 - vnetTCPv4
		}
		if r.IntN(4) == 0 {
			w.proto, h.gso = protoUDP, vnetUDP
		}
		b, headers := w.packet()
		want := splitAll(t, h, b)
		var packets [][][]byte
		for _, p := range want {
			packets = append(packets, splitPieces(r, p, headers))
		}
		hs, bodies := joinAll(&joiner{udp: true}, packets)
		require.Len(t, hs, 1, "round %d", round)
		if len(want) == 1 {
			require.Equal(t, vnetHeader{}, hs[0])
		} else {
			require.Equal(t, h.gso, hs[0].gso, "round %d", round)
			require.Equal(t, uint16(headers), hs[0].hdrLen)
		}
		require.Equal(t, want, splitAll(t, hs[0], bodies[0]), "round %d", round)
	}
}

// Segments are joined if they continue the first one with equal headers, until a PSH or FIN.
func TestVnetSegmentsThatAreNotJoined(t *testing.T) {
	first := testPacket{proto: protoTCP, flags: tcpACK, df: true, seq: 1000, text: randomPayload(1,
		100)}
	next := first
	next.seq, next.text = 1100, randomPayload(2, 100)
	seal := func(b []byte) []byte {
		l, ok := parseLayout(b, len(b))
		require.True(t, ok)
		binary.BigEndian.PutUint16(b[10:], 0)
		binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b[:20]))
		binary.BigEndian.PutUint16(b[36:], 0)
		binary.BigEndian.PutUint16(b[36:], ^checksum.Fold(checksum.Sum(b[20:], l.pseudo(b, len(b)-20))))
		return b
	}
	for name, c := range map[string]struct {
		first, next func(w *testPacket)
		bytes       func(b []byte) []byte // changes the next segment
		joined      bool
	}{
		"the next":      {joined: true},
		"a gap":         {next: func(w *testPacket) { w.seq++ }},
		"a longer one":  {next: func(w *testPacket) { w.text = randomPayload(3, 101) }},
		"a shorter one": {next: func(w *testPacket) { w.text = w.text[:1] }, joined: true},
		"after a PSH":   {first: func(w *testPacket) { w.flags |= tcpPSH }},
		"after a FIN":   {first: func(w *testPacket) { w.flags |= tcpFIN }},
		"with PSH":      {next: func(w *testPacket) { w.flags |= tcpPSH }, joined: true},
		"with CWR":      {next: func(w *testPacket) { w.flags |= tcpCWR }},
		"after CWR":     {first: func(w *testPacket) { w.flags |= tcpCWR }, joined: true},
		"with ECE":      {next: func(w *testPacket) { w.flags |= 0x40 }},
		"with a SYN":    {next: func(w *testPacket) { w.flags |= 2 }},
		"after a SYN":   {first: func(w *testPacket) { w.flags |= 2 }},
		"urgent": {
			first: func(w *testPacket) { w.flags |= 0x20 },
			next:  func(w *testPacket) { w.flags |= 0x20 },
		},
		"options":                {next: func(w *testPacket) { w.options = 12 }},
		"CE of RFC 3168":         {next: func(w *testPacket) { w.tos = 3 }},
		"without text":           {next: func(w *testPacket) { w.text = nil }},
		"after one without text": {first: func(w *testPacket) { w.text = nil; w.seq = 1100 }},
		"another DF bit":         {next: func(w *testPacket) { w.df = false }},
		"identification":         {next: func(w *testPacket) { w.id = 9 }, joined: true},
		"identification counts": {
			first: func(w *testPacket) { w.df = false },
			next:  func(w *testPacket) { w.df = false; w.id = 2 },
		},
		"identification follows": {
			first: func(w *testPacket) { w.df = false },
			next:  func(w *testPacket) { w.df = false; w.id = 1 }, joined: true,
		},
		"other acknowledgment": {bytes: func(b []byte) []byte { b[31]++; return seal(b) }},
		"other window":         {bytes: func(b []byte) []byte { b[35]++; return seal(b) }},
		"other port":           {bytes: func(b []byte) []byte { b[21]++; return seal(b) }},
		"other address":        {bytes: func(b []byte) []byte { b[19]++; return seal(b) }},
		"other TTL":            {bytes: func(b []byte) []byte { b[8]--; return seal(b) }},
		"bad TCP checksum":     {bytes: func(b []byte) []byte { b[60]++; return b }},
		"bad IP checksum":      {bytes: func(b []byte) []byte { b[10]++; return b }},
		"a fragment":           {bytes: func(b []byte) []byte { b[7] = 1; return b }},
		"cut short":            {bytes: func(b []byte) []byte { return b[:30] }},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := first, next
			if c.first != nil {
				c.first(&a)
			}
			if c.next != nil {
				c.next(&b)
			}
			one, _ := a.packet()
			two, _ := b.packet()
			if c.bytes != nil {
				two = c.bytes(two)
			}
			hs, bodies := joinAll(&joiner{}, [][][]byte{{one}, {two}})
			if c.joined {
				assert.Len(t, hs, 1)
				return
			}
			require.Len(t, hs, 2)
			assert.Equal(t, [][]byte{one, two}, bodies, "unchanged")
			assert.Equal(t, []vnetHeader{{}, {}}, hs)
		})
	}
	// RFC 768: a datagram without a checksum cannot be verified, and is not changed.
	u := testPacket{proto: protoUDP, df: true, text: randomPayload(1, 100)}
	one, _ := u.packet()
	two, _ := u.packet()
	hs, _ := joinAll(&joiner{udp: true}, [][][]byte{{one}, {two}})
	assert.Len(t, hs, 1)
	two[26], two[27] = 0, 0
	hs, _ = joinAll(&joiner{udp: true}, [][][]byte{{one}, {two}})
	assert.Len(t, hs, 2)
	hs, _ = joinAll(&joiner{}, [][][]byte{{one}, {one}})
	assert.Len(t, hs, 2, "this kernel accepts no joined datagrams")
}

// RFC 8200 §3: the segments of a train have equal IPv6 headers.
func TestVnetJoinsEqualIPv6Headers(t *testing.T) {
	first := testPacket{v6: true, proto: protoTCP, flags: tcpACK, seq: 1000, text: randomPayload(1,
		100)}
	next := first
	next.seq, next.text = 1100, randomPayload(2, 100)
	for _, at := range []int{-1, 0, 1, 2, 3, 7, 8, 23, 24, 39} {
		a, _ := first.packet()
		b, _ := next.packet()
		if at >= 0 {
			b[at] ^= 1
			p := b[40:]
			binary.BigEndian.PutUint16(p[tcpSumAt:], 0)
			sum := checksum.Sum(p, layout{proto: protoTCP}.pseudo(b, len(p)))
			binary.BigEndian.PutUint16(p[tcpSumAt:], ^checksum.Fold(sum))
		}
		hs, _ := joinAll(&joiner{}, [][][]byte{{a}, {b}})
		assert.Equal(t, at < 0, len(hs) == 1, "byte %d", at)
	}
}

func TestVnetAllocatesNothing(t *testing.T) {
	b, headers := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(1,
		60_000)}.packet()
	mem := make([]byte, tunBurstBytes)
	h := vnetHeader{gso: vnetTCPv4, gsoSize: 1360}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		copy(mem, b)
		if _, ok := h.split(mem, len(b)); !ok {
			panic("it was refused")
		}
	}))
	var packets [][][]byte
	for _, p := range splitAll(t, h, b) {
		packets = append(packets, [][]byte{p[:headers], p[headers:]})
	}
	j := &joiner{}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		j.start(packets[0], headers+1360, true)
		for _, p := range packets[1:] {
			if !j.add(p, len(p[0])+len(p[1])) {
				panic("it was not joined")
			}
		}
		j.finish()
		j.reset()
	}))
}

// For any header from the kernel, split does not panic, and the packets that it returns are valid.
func FuzzVnetSplit(f *testing.F) {
	tcp, _ := testPacket{
		proto: protoTCP, flags: tcpACK | tcpPSH, options: 12,
		text: randomPayload(1,
			300),
	}.packet()
	udp, _ := testPacket{proto: protoUDP, text: randomPayload(1, 300)}.packet()
	tcp6, _ := testPacket{v6: true, proto: protoTCP, flags: tcpACK | tcpPSH, text: randomPayload(1,
		300)}.packet()
	for _, s := range []struct {
		h vnetHeader
		b []byte
	}{
		{vnetHeader{flags: 1, gso: vnetTCPv6, gsoSize: 130, csumStart: 40, csumOffset: 16, hdrLen: 60}, tcp6},
		{vnetHeader{flags: 1, gso: vnetTCPv4, gsoSize: 130, csumStart: 20, csumOffset: 16, hdrLen: 52}, tcp},
		{vnetHeader{flags: 1, gso: vnetUDP, gsoSize: 100, csumStart: 20, csumOffset: 6, hdrLen: 28}, udp},
		{vnetHeader{flags: 1, csumStart: 20, csumOffset: 6}, udp[:100]},
		{vnetHeader{flags: 1, csumStart: 0xffff, csumOffset: 0xffff}, udp[:100]},
		{vnetHeader{gso: vnetTCPv4, gsoSize: 1}, tcp},
	} {
		var h [vnetHeaderLen]byte
		s.h.put(&h)
		f.Add(append(h[:], s.b...))
	}
	mem := make([]byte, tunBurstBytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := parseVnet(b)
		if !ok || len(b)-vnetHeaderLen > mostJoined {
			return
		}
		n := len(b) - vnetHeaderLen
		copy(mem, b[vnetHeaderLen:])
		got, ok := h.split(mem, n)
		if !ok {
			return
		}
		require.LessOrEqual(t, got.bytes, len(mem))
		require.GreaterOrEqual(t, got.bytes, n)
		if h.gso == vnetNone {
			require.Equal(t, n, got.bytes)
			return
		}
		require.Positive(t, got.size)
		for data := mem[:got.bytes]; len(data) > 0; {
			p := data[:min(got.size, len(data))]
			l, ok := parseLayout(p, len(p))
			require.True(t, ok)
			require.True(t, l.v6 || checksum.Verify(p[:l.ip], 0))
			require.True(t, checksum.Verify(p[l.ip:], l.pseudo(p, len(p)-l.ip)))
			data = data[len(p):]
		}
	})
}

// The kernel receives exactly the bytes that were sent.
func FuzzVnetJoin(f *testing.F) {
	tcp, headers := testPacket{proto: protoTCP, flags: tcpACK, text: randomPayload(1, 300)}.packet()
	h := vnetHeader{gso: vnetTCPv4, gsoSize: 100}
	mem := append(tcp, make([]byte, 1000)...)
	got, _ := h.split(mem, len(tcp))
	f.Add(mem[:got.bytes], uint16(got.size), uint8(headers))
	tcp, headers = testPacket{v6: true, proto: protoTCP, flags: tcpACK, text: randomPayload(1,
		300)}.packet()
	mem = append(tcp, make([]byte, 1000)...)
	got, _ = vnetHeader{gso: vnetTCPv6, gsoSize: 100}.split(mem, len(tcp))
	f.Add(mem[:got.bytes], uint16(got.size), uint8(headers))
	f.Add([]byte{0x45, 1, 2}, uint16(1), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, size uint16, cut uint8) {
		if len(b) > 1<<16 || size == 0 || len(b) == 0 {
			return
		}
		var want []byte
		train := buffer.Train{Size: int(size), Bytes: len(b), Count: (len(b) + int(size) - 1) / int(size)}
		for data := b; len(data) > 0; {
			p := data[:min(len(data), int(size))]
			at := min(len(p), int(cut))
			train.Pieces = append(train.Pieces, p[:at], p[at:])
			data = data[len(p):]
		}
		j, at := &joiner{udp: true}, cursor{train: &train}
		var packets [][][]byte
		for range train.Count {
			p, _ := at.next(nil)
			packets = append(packets, p)
		}
		hs, bodies := joinAll(j, packets)
		for i, body := range bodies {
			if hs[i].gso == vnetNone {
				want = append(want, body...)
				continue
			}
			mem := make([]byte, 1<<20)
			copy(mem, body)
			got, ok := hs[i].split(mem, len(body))
			require.True(t, ok)
			want = append(want, mem[:got.bytes]...)
		}
		require.True(t, sameButID(want, b, int(size)), "%x\n%x", want, b)
	})
}

// sameButID compares packets without their identifications, which have no meaning with DF set (RFC
// 6864 §4.1), and without the checksums, which depend on them.
func sameButID(a, b []byte, size int) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) > 0 {
		n := min(size, len(a))
		p, q := bytes.Clone(a[:n]), bytes.Clone(b[:n])
		if !bytes.Equal(p, q) {
			if n < 20 || p[0]>>4 != 4 || p[6]&0x40 == 0 {
				return false
			}
			for _, i := range []int{4, 5, 10, 11} {
				p[i], q[i] = 0, 0
			}
			if !bytes.Equal(p, q) {
				return false
			}
		}
		a, b = a[n:], b[n:]
	}
	return true
}

// BenchmarkVnetSplit measures splitting a train of 48 packets from the kernel, including checksums.
func BenchmarkVnetSplit(b *testing.B) {
	packet, _ := testPacket{proto: protoTCP, flags: tcpACK, options: 12, text: randomPayload(1,
		64_000)}.packet()
	mem := make([]byte, tunBurstBytes)
	h := vnetHeader{flags: vnetNeedsChecksum, gso: vnetTCPv4, gsoSize: 1348}
	b.SetBytes(64_000)
	for b.Loop() {
		copy(mem, packet)
		if _, ok := h.split(mem, len(packet)); !ok {
			b.Fatal("split refused the packet")
		}
	}
}

// BenchmarkVnetJoin measures a train to the kernel. The checksums are verified, as in a router, or
// known to be right, because the stack has computed them.
func BenchmarkVnetJoin(b *testing.B) {
	packet, _ := testPacket{proto: protoTCP, flags: tcpACK, options: 12, text: randomPayload(1,
		64_000)}.packet()
	mem := append(packet, make([]byte, tunBurstBytes)...)
	got, _ := vnetHeader{gso: vnetTCPv4, gsoSize: 1348}.split(mem, len(packet))
	train := buffer.Train{
		Pieces: [][]byte{mem[:got.bytes]}, Size: got.size, Bytes: got.bytes,
		Count: (got.bytes + got.size - 1) / got.size,
	}
	for _, trust := range []bool{false, true} {
		b.Run(map[bool]string{false: "verified", true: "trusted"}[trust], func(b *testing.B) {
			j := &joiner{trust: trust}
			var p [][]byte
			b.SetBytes(64_000)
			for b.Loop() {
				at := cursor{train: &train}
				for i := range train.Count {
					var size int
					p, size = at.next(p[:0])
					if i == 0 {
						j.start(p, size, true)
					} else if !j.add(p, size) {
						b.Fatal("the packet was not joined")
					}
				}
				j.finish()
				j.reset()
			}
		})
	}
}
