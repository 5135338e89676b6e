package ip_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// datagram6 returns a packet with these bytes of payload, and with an identification unless id is 0.
func datagram6(id uint32, body []byte, options ...byte) []byte {
	h := ip.Header{
		TOS: 0x10, FlowLabel: 0x12345, ID: id, TTL: 60, Protocol: ip.ProtoUDP, Src: src6, Dst: dst6,
		Options: options,
	}
	h.TotalLen = h.Size() + len(body)
	return append(h.Append(nil), body...)
}

// piece6 is like piece, for IPv6.
func piece6(id uint32, text []byte, from, end int, change ...func(*ip.Header)) []byte {
	h := ip.Header{
		TotalLen: ip.HeaderLen6 + 8 + end - from, ID: id, MF: end != len(text), FragOff: from,
		TTL: 60, Protocol: ip.ProtoUDP, Src: src6, Dst: dst6,
	}
	for _, f := range change {
		f(&h)
	}
	return append(h.Append(nil), text[from:end]...)
}

// header6 parses a packet that must be valid and of its full length, with its extension headers.
func header6(tb testing.TB, b []byte) ip.Header {
	tb.Helper()
	h, r := walked(tb, b)
	require.Equal(tb, ip.Refusal{}, r)
	require.Len(tb, b, h.TotalLen)
	return h
}

// put6 is like put, for IPv6.
func put6(tb testing.TB, r *ip.Reassembler, now clock.Time, b []byte) ([]byte, ip.DropReason) {
	tb.Helper()
	h := header6(tb, b)
	whole, reason := r.Input(now, 0, &h, b)
	return slices.Clone(whole), reason
}

// RFC 8200 §4.5: the source's fragments contain the headers for routers, a Fragment header, and as
// much of the rest as the MTU allows, a multiple of eight except for the last. RFC 8200 §5: the MTU
// is at least 1280.
func TestRFC8200_4_5_Fragments(t *testing.T) {
	hop := extension(ip.ProtoUDP, 5, 2, 0, 0)
	tests := []struct {
		payload, mtu int
		options      []byte
		want         []string
	}{
		{1232, 1280, nil, []string{"0+1232"}}, // RFC 6946 §2: an atomic fragment
		{1233, 1280, nil, []string{"0+1232+", "1232+1"}},
		{1240, 1287, nil, []string{"0+1232+", "1232+8"}},
		{3000, 68, nil, []string{"0+1232+", "1232+1232+", "2464+536"}},
		{2464, 1280, hop, []string{"0+1224+", "1224+1224+", "2448+16"}},
		{65535, 32800, nil, []string{"0+32752+", "32752+32752+", "65504+31"}},
	}
	for _, tt := range tests {
		body := text(tt.payload)
		packet := datagram6(77, body, tt.options...)
		var got []string
		list := cut(packet, tt.mtu)
		for _, b := range list {
			require.LessOrEqual(t, len(b), max(tt.mtu, ip.MinMTU6))
			h := header6(t, b)
			if len(list) > 1 {
				assert.Equal(t, uint32(77), h.ID)
			}
			assert.Equal(t, ip.ProtoUDP, h.Protocol)
			assert.Equal(t, []any{uint8(0x10), uint32(0x12345), uint8(60)}, []any{h.TOS, h.FlowLabel, h.TTL})
			more := ""
			if h.MF {
				more = "+"
			}
			got = append(got, fmt.Sprintf("%d+%d%s", h.FragOff, len(b)-h.Len, more))
			assert.Equal(t, body[h.FragOff:h.FragOff+len(b)-h.Len], b[h.Len:])
		}
		assert.Equal(t, tt.want, got, "%d bytes for %d", tt.payload, tt.mtu)
		var f ip.Fragmenter
		require.True(t, f.Reset(packet, tt.mtu, 0))
		assert.Equal(t, len(tt.want), f.Left())
	}
}

// A packet without an identification cannot be fragmented.
func TestFragmenterNeedsAnIdentification(t *testing.T) {
	var f ip.Fragmenter
	assert.False(t, f.Reset(datagram6(0, text(2000)), 1280, 0))
	assert.False(t, f.Reset(packet6(ip.NextDestination, []byte{ip.NextFragment, 1}), 1280, 0))
	assert.False(t, f.Reset(packet6(ip.ProtoUDP, []byte{ip.NextFragment, 15: 1}), 1280, 0))
	late := piece6(1, make([]byte, 65535), 65528, 65535)
	assert.True(t, f.Reset(late, 1280, 0))
	assert.False(t, f.Reset(append(late, 0), 1280, 0), "beyond the longest payload")
	require.True(t, f.Reset(datagram(100), 1280, 0))
	b := make([]byte, f.HeaderLen())
	assert.Equal(t, datagram(100), append(b, f.Next(b)...),
		"Reset accepts an IPv4 packet afterwards")
}

// RFC 8200 §4.5: fragments in any order yield the original packet, with the headers of the first
// fragment and without Fragment header.
func TestRFC8200_4_5_Reassembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := reassembler(t, ip.ReassemblyConfig{})
	for range 100 {
		body := text(rng.IntN(20_000) + 1300)
		options := [][]byte{nil, extension(ip.ProtoUDP, 5, 2, 0, 0)}[rng.IntN(2)]
		packet := datagram6(0, body, options...)
		pieces := cut(datagram6(9, body, options...), 1280+rng.IntN(1000))
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		for i, b := range pieces {
			whole, reason := put6(t, r, start, b)
			require.Equal(t, ip.DropNone, reason)
			if i < len(pieces)-1 {
				require.Nil(t, whole)
				continue
			}
			require.Equal(t, packet, whole)
		}
	}
	assert.Zero(t, r.Info().Bytes)
	assert.Equal(t, clock.Never, r.Deadline())
}

// RFC 8200 §4.5: source, destination and identification identify a datagram; the next header of
// the first fragment counts.
func TestRFC8200_4_5_NextHeadersDiffer(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	body := text(32)
	_, reason := put6(t, r, start, piece6(1<<20|7, body, 16, 32, protocol(99)))
	require.Equal(t, ip.DropNone, reason)
	for _, other := range []func(*ip.Header){
		func(h *ip.Header) { h.ID = 7 }, func(h *ip.Header) { h.Src = h.Src.Next() },
		func(h *ip.Header) { h.Dst = h.Dst.Next() },
	} {
		whole, reason := put6(t, r, start, piece6(1<<20|7, body, 0, 16, other))
		assert.Nil(t, whole)
		assert.Equal(t, ip.DropNone, reason)
	}
	whole, _ := put6(t, r, start, piece6(1<<20|7, body, 0, 16, tos(0xb8)))
	h := header6(t, whole)
	assert.Equal(t, ip.ProtoUDP, h.Protocol)
	assert.Equal(t, uint8(0xb8), h.TOS)
	assert.Equal(t, body, whole[h.Len:])
}

// RFC 8200 §4.5 and RFC 7112 §5: invalid fragments, and the parameter problems that report them.
func TestRFC8200_4_5_InvalidFragments(t *testing.T) {
	body := text(64)
	more := func(h *ip.Header) { h.MF = true }
	first := func(next uint8, chain ...[]byte) []byte {
		return packet6(ip.NextFragment, fragment6(next, 0, true, 1), slices.Concat(chain...))
	}
	problem := func(drop ip.DropReason, code uint8, pointer int) ip.Refusal {
		return ip.Refusal{Drop: drop, Report: true, Code: code, Pointer: pointer}
	}
	tiny := problem(ip.DropFragmentTiny, ip.ProblemChain, 0)
	tests := []struct {
		name     string
		fragment []byte
		want     ip.Refusal
	}{
		{"no data", piece6(1, body, 0, 0), ip.Refusal{Drop: ip.DropFragmentEmpty}},
		{"nine bytes", piece6(1, body, 0, 9), problem(ip.DropFragmentLength, 0, 4)},
		{
			"too long", piece6(1, make([]byte, 65544), 65528, 65536),
			problem(ip.DropFragmentTooLong, 0, 42),
		},
		{
			"too long with another header", packet6(ip.NextDestination,
				extension(ip.NextFragment), fragment6(ip.ProtoUDP, 65528, false, 1), body[:1]),
			problem(ip.DropFragmentTooLong, 0, 50),
		},
		{"the longest", piece6(1, make([]byte, 65535), 65528, 65535), ip.Refusal{}},
		{"RFC 7112 §5: 16 bytes of TCP", first(ip.ProtoTCP, body[:16]), tiny},
		{"24 bytes of TCP", first(ip.ProtoTCP, body[:24]), ip.Refusal{}},
		{"8 bytes of UDP", first(ip.ProtoUDP, body[:8]), ip.Refusal{}},
		{"no UDP", first(ip.NextDestination, extension(ip.ProtoUDP)), tiny},
		{"no ICMPv6", first(ip.NextDestination, extension(ip.ProtoICMPv6)), tiny},
		{"unknown protocol", first(ip.NextDestination, extension(99)), ip.Refusal{}},
		{"UDP", first(ip.NextDestination, extension(ip.ProtoUDP), body[:8]), ip.Refusal{}},
		{"half a header", first(ip.NextRouting, []byte{17, 1, 0, 0, 0, 0, 0, 0}), tiny},
		{
			"fragment of a fragment", first(ip.NextFragment, fragment6(ip.ProtoUDP, 0, false, 1)),
			ip.Refusal{Drop: ip.DropExtension},
		},
		{
			"RFC 8200 §4: a late Hop-by-Hop Options header", first(ip.NextHopByHop, extension(ip.ProtoUDP, 0xc2, 4), body[:8]),
			problem(ip.DropExtension, ip.ProblemNext, 40),
		},
		{"later fragment", piece6(1, body, 8, 16, more, protocol(ip.NextRouting)), ip.Refusal{}},
	}
	for _, tt := range tests {
		r := reassembler(t, ip.ReassemblyConfig{})
		h := header6(t, tt.fragment)
		whole, reason := r.Input(start, 0, &h, tt.fragment)
		assert.Nil(t, whole, tt.name)
		assert.Equal(t, tt.want, h.FragmentProblem(reason), tt.name)
		assert.Equal(t, tt.want.Drop == ip.DropNone, r.Info().Datagrams == 1, tt.name)
	}
}

// RFC 8200 §4.5: the payload is at most 65,535 bytes, with the headers of the first fragment.
func TestRFC8200_4_5_LongestDatagram(t *testing.T) {
	hop := extension(ip.ProtoUDP, append([]byte{0x1e, 12}, make([]byte, 12)...)...)
	for over := range 2 {
		r := reassembler(t, ip.ReassemblyConfig{})
		body := text(65519 + over)
		_, reason := put6(t, r, start, piece6(1, body, 65504, len(body)))
		require.Equal(t, ip.DropNone, reason)
		whole, reason := put6(t, r, start, piece6(1, body, 0, 65504, func(h *ip.Header) {
			h.Options = hop
			h.TotalLen += len(hop)
		}))
		if over == 1 {
			assert.Equal(t, ip.DropFragmentTooLong, reason)
			continue
		}
		require.Len(t, whole, ip.HeaderLen6+65535)
		assert.Equal(t, body, whole[56:])
	}
}

// RFC 5722 §4, RFC 8200 §4.5: overlapping fragments discard the whole datagram and its later
// fragments, silently. An exact duplicate does not.
func TestRFC5722_4_Overlaps6(t *testing.T) {
	body := text(64)
	r := reassembler(t, ip.ReassemblyConfig{})
	for range 2 {
		_, reason := put6(t, r, start, piece6(1, body, 0, 32))
		require.Equal(t, ip.DropNone, reason)
	}
	assert.Equal(t, uint64(1), r.Info().Duplicates)
	bad := piece6(1, body, 24, 64)
	_, reason := put6(t, r, start, bad)
	assert.Equal(t, ip.DropFragmentOverlap, reason)
	h := header6(t, bad)
	assert.Equal(t, ip.Refusal{Drop: reason}, h.FragmentProblem(reason))
	whole, reason := put6(t, r, start, piece6(1, body, 32, 64))
	assert.Nil(t, whole)
	assert.Equal(t, ip.DropFragmentOverlap, reason)
	assert.Equal(t, []ip.Discard{{Reason: ip.DropFragmentOverlap, Count: 1}}, discards(r))
}

// RFC 8200 §4.5: after 60 s the source gets a Time Exceeded message if the first fragment has
// arrived. IPv4 has its own timeout.
func TestRFC8200_4_5_Timeout(t *testing.T) {
	body := text(64)
	r := reassembler(t, ip.ReassemblyConfig{})
	first := piece6(1, body, 0, 32)
	put6(t, r, start, first)
	put6(t, r, start.Add(time.Second), piece6(2, body, 32, 64))
	put(t, r, start.Add(2*time.Second), piece(1, body, 0, 32))
	assert.Equal(t, start.Add(22*time.Second), r.Deadline())
	r.Advance(start.Add(22 * time.Second))
	assert.Len(t, discards(r), 1)
	assert.Equal(t, start.Add(60*time.Second), r.Deadline())
	r.Advance(start.Add(60*time.Second - 1))
	assert.Empty(t, discards(r))
	r.Advance(start.Add(61 * time.Second))
	assert.Equal(t, []ip.Discard{
		{Reason: ip.DropFragmentTimeout, Count: 1, First: first},
		{Reason: ip.DropFragmentTimeout, Count: 1},
	}, discards(r))
	assert.Zero(t, r.Info().Bytes)
	bad := ip.ReassemblyConfig{Timeout6: -1}
	assert.ErrorContains(t, r.Configure(bad), "timeout -1ns must be positive")
}

// RFC 3168 §5.3 applies to the codepoint of IPv6 datagrams, too.
func TestRFC3168_5_3_ECN6(t *testing.T) {
	body := text(32)
	for _, tt := range [][3]uint8{{1, 2, 1}, {2, 3, 3}, {0xfd, 0, 0xfc}, {0, 3, 0xff}} {
		r := reassembler(t, ip.ReassemblyConfig{})
		put6(t, r, start, piece6(1, body, 0, 16, tos(tt[0])))
		whole, reason := put6(t, r, start, piece6(1, body, 16, 32, tos(tt[1])))
		if tt[2] == 0xff {
			assert.Equal(t, ip.DropFragmentECN, reason)
			continue
		}
		h := header6(t, whole)
		assert.Equal(t, tt[2], h.TOS)
	}
}

// Datagrams of both families share the memory; the oldest of all is evicted.
func TestFamiliesShareTheMemory(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{MaxDatagrams: 4})
	body := text(64)
	put6(t, r, start, piece6(1, body, 0, 32))
	put(t, r, start+1, piece(1, body, 0, 32))
	put6(t, r, start+2, piece6(2, body, 0, 32))
	put(t, r, start+3, piece(2, body, 0, 32))
	other := func(h *ip.Header) { h.Src = netip.MustParseAddr("2001:db8:9::1") }
	put6(t, r, start+4, piece6(3, body, 0, 32, other))
	put6(t, r, start+5, piece6(4, body, 0, 32, other))
	assert.Equal(t, uint64(2), r.Info().Evicted)
	whole, _ := put6(t, r, start+6, piece6(2, body, 32, 64))
	assert.NotNil(t, whole)
	whole, _ = put(t, r, start+6, piece(2, body, 32, 64))
	assert.NotNil(t, whole)
}

// A host that floods the node from all addresses of its network evicts its own datagrams, not those
// of another network or of a neighbor. Neighbors have no network of their own.
func TestFloodingNetworkEvictsItsOwnDatagrams(t *testing.T) {
	body := text(2000)
	from := func(s string, host uint32) func(*ip.Header) {
		a := netip.MustParseAddr(s).As16()
		binary.BigEndian.PutUint32(a[8:], host)
		return func(h *ip.Header) { h.Src = netip.AddrFrom16(a) }
	}
	for flood, hosts := range map[string]uint32{"2001:db8::1": 20_000, "fe80::1": 1} {
		r := reassembler(t, ip.ReassemblyConfig{})
		quiet := []func(*ip.Header){from("2001:db8:0:1::1", 0), from("fe80::1", 1)}
		for _, change := range quiet {
			put6(t, r, start, piece6(1, body, 0, 1000, change))
		}
		for i := range uint32(20_000) {
			put6(t, r, start, piece6(i, body, 0, 1000, from(flood, i%hosts)))
			discards(r)
		}
		for _, change := range quiet {
			whole, reason := put6(t, r, start, piece6(1, body, 1000, 2000, change))
			assert.Equal(t, ip.DropNone, reason)
			assert.NotNil(t, whole, flood)
		}
	}
}

// FuzzFragments6 delivers arbitrary fragments of one datagram. An oracle that marks the units
// received agrees with the Reassembler.
func FuzzFragments6(f *testing.F) {
	f.Add([]byte{0, 2, 2, 1, 4, 0, 1, 0})
	f.Add([]byte{0, 4, 2, 1, 2, 4, 2, 0})
	f.Add([]byte{6, 7, 4, 0, 0, 6, 6, 1})
	const units = 64
	body := text(units * 8)
	f.Fuzz(func(t *testing.T, script []byte) {
		r := reassembler(t, ip.ReassemblyConfig{})
		var have [units]bool
		type span struct{ from, end int }
		seen, end, refused := map[span]bool{}, 0, false
		for ; len(script) >= 2; script = script[2:] {
			from := int(script[0]) % units
			to := min(from+1+int(script[1]>>1)%8, units)
			last := script[1]&1 != 0
			if last && from == 0 {
				continue // the Reassembler never receives an atomic fragment
			}
			b := piece6(1, body, from*8, to*8, func(h *ip.Header) { h.MF = !last })
			whole, reason := put6(t, r, start, b)
			same := seen[span{from, to}] && last == (to == end)
			overlap, beyond := false, false
			for i, known := range have {
				overlap = overlap || known && i >= from && i < to
				beyond = beyond || known && i >= to
			}
			switch {
			case refused:
			case overlap && same:
				require.Equal(t, ip.DropNone, reason)
				continue
			case overlap:
				refused = true
			case end != 0 && (last || to > end), last && beyond:
				refused = true
			default:
				require.Equal(t, ip.DropNone, reason)
				for i := from; i < to; i++ {
					have[i] = true
				}
				seen[span{from, to}] = true
				if last {
					end = to
				}
			}
			require.Equal(t, refused, reason != ip.DropNone, "%d to %d", from, to)
			complete := !refused && end != 0 && !slices.Contains(have[:max(end, 1)], false)
			require.Equal(t, complete, whole != nil)
			if complete {
				require.Equal(t, datagram6(0, body[:end*8])[40:], whole[40:])
				return
			}
		}
	})
}

func TestReassembly6AllocatesNothing(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	pieces := cut(datagram6(1, text(9000)), 1400)
	for range 2 {
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			for _, b := range pieces {
				h, _, _ := ip.ParseHeader(b)
				if h.Walk(b).Drop != ip.DropNone {
					t.Fatal("refused")
				}
				r.Input(start, 0, &h, b)
			}
		}))
	}
}
