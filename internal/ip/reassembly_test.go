package ip_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

const start = clock.Time(time.Second)

func reassembler(tb testing.TB, cfg ip.ReassemblyConfig) *ip.Reassembler {
	tb.Helper()
	r := ip.NewReassembler()
	require.NoError(tb, r.Configure(cfg))
	return r
}

// put delivers a fragment and returns a copy of the datagram that it completes.
func put(tb testing.TB, r *ip.Reassembler, now clock.Time, b []byte) ([]byte, ip.DropReason) {
	tb.Helper()
	h, _ := header(tb, b)
	whole, reason := r.Input(now, 0, &h, b)
	return slices.Clone(whole), reason
}

// discards drains the list of discarded datagrams.
func discards(r *ip.Reassembler) (list []ip.Discard) {
	for d, ok := r.Output(); ok; d, ok = r.Output() {
		d.First = slices.Clone(d.First)
		list = append(list, d)
	}
	return list
}

// piece returns a fragment of a datagram with identification id. Its payload is text[from:end].
func piece(id uint32, text []byte, from, end int, change ...func(*ip.Header)) []byte {
	h := ip.Header{
		TotalLen: ip.HeaderLen + end - from, ID: id, MF: end != len(text), FragOff: from,
		TTL: 60, Protocol: ip.ProtoUDP, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	for _, f := range change {
		f(&h)
	}
	return append(h.Append(nil), text[from:end]...)
}

func tos(v uint8) func(*ip.Header) { return func(h *ip.Header) { h.TOS = v } }

func protocol(v uint8) func(*ip.Header) { return func(h *ip.Header) { h.Protocol = v } }

func source(v uint8) func(*ip.Header) { return func(h *ip.Header) { h.Src = ip.V4(10, 0, 0, v) } }

func text(n int) []byte { return datagram(n)[ip.HeaderLen:] }

// RFC 791 §3.2: fragments in any order yield the original packet, including its options.
func TestRFC791_3_2_Reassembly(t *testing.T) {
	packet := datagram(4000, 7, 3, 4, 0, 0x88, 4, 1, 2)
	pieces := cut(packet, 576)
	rng := rand.New(rand.NewPCG(1, 2))
	r := reassembler(t, ip.ReassemblyConfig{})
	for range 50 {
		rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		for i, b := range pieces {
			whole, reason := put(t, r, start, b)
			require.Equal(t, ip.DropNone, reason)
			if i < len(pieces)-1 {
				require.Nil(t, whole)
				continue
			}
			require.Equal(t, packet, whole)
		}
	}
	assert.Empty(t, discards(r))
	assert.Zero(t, r.Info().Bytes)
	assert.Zero(t, r.Info().Datagrams)
	assert.Equal(t, clock.Never, r.Deadline())
	assert.Equal(t, uint64(50), r.Info().Whole)
}

// RFC 791 §3.2: source, destination, protocol and identification together identify a datagram.
func TestDatagramsAreDistinguished(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	body := text(16)
	others := []func(*ip.Header){
		func(h *ip.Header) { h.ID++ }, source(9), protocol(ip.ProtoICMP),
		func(h *ip.Header) { h.Dst = h.Dst.Next() },
	}
	whole, _ := put(t, r, start, piece(7, body, 0, 8))
	require.Nil(t, whole)
	for _, other := range others {
		whole, reason := put(t, r, start, piece(7, body, 8, 16, other))
		assert.Nil(t, whole)
		assert.Equal(t, ip.DropNone, reason)
	}
	assert.Equal(t, 5, r.Info().Datagrams)
	whole, _ = put(t, r, start, piece(7, body, 8, 16))
	assert.Equal(t, body, whole[20:])
}

// Fragments that are invalid on their own.
func TestInvalidFragments(t *testing.T) {
	body := text(64)
	more := func(h *ip.Header) { h.MF = true }
	late := func(off int) func(*ip.Header) { return func(h *ip.Header) { h.FragOff = off } }
	tests := []struct {
		name     string
		fragment []byte
		want     ip.DropReason
	}{
		{"no data", piece(1, body, 0, 0), ip.DropFragmentEmpty},
		{"no data at the end", piece(1, body, 64, 64), ip.DropFragmentEmpty},
		{"RFC 791 §3.1: nine bytes and more", piece(1, body, 0, 9), ip.DropFragmentLength},
		{"the ping of death", piece(1, body, 0, 64, late(65528)), ip.DropFragmentTooLong},
		{"one byte too many", piece(1, body, 36, 64, late(65488)), ip.DropFragmentTooLong},
		{"the longest", piece(1, body, 37, 64, late(65488)), ip.DropNone},
		{"RFC 1858 §3: ports alone", piece(1, body, 0, 8, protocol(ip.ProtoTCP)), ip.DropFragmentTiny},
		{"RFC 1858 §3: no flags", piece(1, body, 0, 16, protocol(ip.ProtoTCP)), ip.DropFragmentTiny},
		{"a TCP header", piece(1, body, 0, 24, protocol(ip.ProtoTCP)), ip.DropNone},
		{"RFC 1858 §4: over the flags", piece(1, body, 8, 48, protocol(ip.ProtoTCP), more), ip.DropFragmentTiny},
		{"after the header", piece(1, body, 24, 64, protocol(ip.ProtoTCP)), ip.DropNone},
		{"eight bytes of UDP", piece(1, body, 0, 8), ip.DropNone},
	}
	for _, tt := range tests {
		r := reassembler(t, ip.ReassemblyConfig{})
		whole, reason := put(t, r, start, tt.fragment)
		assert.Nil(t, whole, tt.name)
		assert.Equal(t, tt.want, reason, tt.name)
		assert.Equal(t, tt.want == ip.DropNone, r.Info().Datagrams == 1, tt.name)
	}
}

// RFC 5722 §4: a datagram with an overlap is discarded silently, with all earlier and later
// fragments. So a fragment cannot overwrite the flags of a TCP header (RFC 1858 §4).
func TestRFC5722_4_OverlapsRefuseTheDatagram(t *testing.T) {
	body, forged := text(64), bytes.Repeat([]byte{0xee}, 64)
	more := func(h *ip.Header) { h.MF = true }
	tests := []struct {
		name   string
		pieces [][]byte
		want   ip.DropReason
	}{
		{"other bytes", [][]byte{piece(1, body, 0, 32), piece(1, forged, 0, 32)}, ip.DropFragmentOverlap},
		{"one unit", [][]byte{piece(1, body, 0, 32), piece(1, body, 24, 48)}, ip.DropFragmentOverlap},
		{"from before", [][]byte{piece(1, body, 24, 48), piece(1, body, 0, 32)}, ip.DropFragmentOverlap},
		{"within", [][]byte{piece(1, body, 0, 32), piece(1, body, 8, 16)}, ip.DropFragmentOverlap},
		{"the head of it", [][]byte{piece(1, body, 0, 32), piece(1, body, 0, 16)}, ip.DropFragmentOverlap},
		{"the tail of it", [][]byte{piece(1, body, 0, 32), piece(1, body, 16, 32)}, ip.DropFragmentOverlap},
		{"around", [][]byte{piece(1, body, 16, 24), piece(1, body, 0, 48)}, ip.DropFragmentOverlap},
		{"two that make one", [][]byte{
			piece(1, body, 0, 16), piece(1, body, 16, 32), piece(1, body, 0, 32),
		}, ip.DropFragmentOverlap},
		{"data after the last fragment", [][]byte{
			piece(1, body, 48, 64), piece(1, body, 48, 64, more),
		}, ip.DropFragmentOverlap},
		{"a shorter last one", [][]byte{
			piece(1, body, 48, 64), piece(1, body[:62], 48, 62),
		}, ip.DropFragmentOverlap},
		{"an end before received data", [][]byte{
			piece(1, body, 40, 48), piece(1, body[:32], 24, 32),
		}, ip.DropFragmentEnd},
		{"two ends", [][]byte{
			piece(1, body[:32], 24, 32), piece(1, body, 48, 64),
		}, ip.DropFragmentEnd},
		{"more after the end", [][]byte{
			piece(1, body[:32], 24, 32), piece(1, body, 32, 40),
		}, ip.DropFragmentEnd},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := reassembler(t, ip.ReassemblyConfig{})
			last := len(tt.pieces) - 1
			for _, b := range tt.pieces[:last] {
				_, reason := put(t, r, start, b)
				require.Equal(t, ip.DropNone, reason)
			}
			_, reason := put(t, r, start, tt.pieces[last])
			assert.Equal(t, tt.want, reason)
			assert.Equal(t, []ip.Discard{{Reason: tt.want, Count: last}}, discards(r))
			for _, b := range cut(append(piece(1, body, 0, 64), 0)[:84], 68) {
				whole, reason := put(t, r, start, b)
				assert.Nil(t, whole)
				assert.Equal(t, tt.want, reason, "later fragments")
			}
			r.Advance(r.Deadline())
			assert.Empty(t, discards(r), "reported already")
			assert.Zero(t, r.Info().Bytes)
			assert.Equal(t, uint64(1), r.Info().Refused)
		})
	}
}

// The network may deliver a packet twice (RFC 791 §1.4). A duplicate does not discard the datagram.
func TestDuplicateFragments(t *testing.T) {
	packet := datagram(3001)
	pieces := cut(packet, 576)
	r := reassembler(t, ip.ReassemblyConfig{})
	for i, b := range pieces[:len(pieces)-1] {
		for range 3 {
			whole, reason := put(t, r, start, b)
			require.Nil(t, whole)
			require.Equal(t, ip.DropNone, reason)
			whole, reason = put(t, r, start, pieces[i/2])
			require.Nil(t, whole)
			require.Equal(t, ip.DropNone, reason)
		}
	}
	whole, _ := put(t, r, start, pieces[len(pieces)-1])
	assert.Equal(t, packet, whole)
	assert.NotZero(t, r.Info().Duplicates)

	t.Log("# the last fragment first, and duplicated")
	for _, i := range []int{len(pieces) - 1, len(pieces) - 1, 0, 0} {
		_, reason := put(t, r, start, pieces[i])
		require.Equal(t, ip.DropNone, reason)
	}
}

// RFC 792 and RFC 1122 §3.3.2: a datagram that is incomplete at the timeout is discarded. If
// fragment zero had arrived, the ICMP error can quote it.
func TestRFC1122_3_3_2_Timeout(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	body := text(4000)
	zero := piece(1, body, 0, 1384)
	at := func(seconds float64) clock.Time { return start.Add(time.Duration(seconds * 1e9)) }
	put(t, r, at(0), piece(1, body, 1384, 2768))
	put(t, r, at(5), zero)
	put(t, r, at(10), piece(2, body, 1384, 2768))
	assert.Equal(t, at(20), r.Deadline(), "founding document 004: 20 s from the first on")
	r.Advance(at(19.999))
	assert.Empty(t, discards(r))
	r.Advance(at(20))
	assert.Equal(t, []ip.Discard{
		{Reason: ip.DropFragmentTimeout, Count: 2, First: zero},
	}, discards(r))
	assert.Equal(t, at(30), r.Deadline())
	require.NoError(t, r.Configure(ip.ReassemblyConfig{Timeout: 25 * time.Second}))
	assert.Equal(t, at(35), r.Deadline())
	r.Advance(at(35))
	assert.Equal(t, []ip.Discard{{Reason: ip.DropFragmentTimeout, Count: 1}}, discards(r))
	assert.Zero(t, r.Info().Bytes)
	assert.Equal(t, uint64(2), r.Info().TimedOut)
	whole, reason := put(t, r, at(36), piece(1, body, 2768, 4000))
	assert.Nil(t, whole)
	assert.Equal(t, ip.DropNone, reason, "the first of another datagram")
}

// RFC 3168 §5.3: a congestion mark on any fragment marks the datagram, unless another fragment is
// not ECN-capable.
func TestRFC3168_5_3_ECN(t *testing.T) {
	const notECT, ect1, ect0, ce = 0, 1, 2, 3
	tests := []struct {
		fragments [3]uint8
		want      uint8
		drop      ip.DropReason
	}{
		{[3]uint8{notECT, notECT, notECT}, notECT, ip.DropNone},
		{[3]uint8{ect0, ect0, ect0}, ect0, ip.DropNone},
		{[3]uint8{ect1, ect1, ect1}, ect1, ip.DropNone},
		{[3]uint8{ce, ce, ce}, ce, ip.DropNone},
		{[3]uint8{ect0, ce, ect0}, ce, ip.DropNone},
		{[3]uint8{ce, ect1, ect0}, ce, ip.DropNone},
		{[3]uint8{ect0, notECT, ect0}, notECT, ip.DropNone},
		{[3]uint8{ect0, ect1, ect1}, ect0, ip.DropNone},
		{[3]uint8{ect0, notECT, ce}, 0, ip.DropFragmentECN},
		{[3]uint8{ce, ce, notECT}, 0, ip.DropFragmentECN},
	}
	const dscp = 0x28
	body := text(24)
	for _, tt := range tests {
		r := reassembler(t, ip.ReassemblyConfig{})
		var whole []byte
		var reason ip.DropReason
		for i, ecn := range tt.fragments {
			whole, reason = put(t, r, start, piece(1, body, 8*i, 8*i+8, tos(dscp|ecn)))
		}
		require.Equal(t, tt.drop, reason, "%v", tt.fragments)
		if reason == ip.DropNone {
			h, payload := header(t, whole)
			assert.Equal(t, dscp|tt.want, h.TOS, "%v", tt.fragments)
			assert.Equal(t, body, payload)
		}
	}
}

// Options that are only in fragment zero can make the datagram longer than the maximum, although
// each fragment fits.
func TestReassembledDatagramTooLong(t *testing.T) {
	body := text(65515)
	r := reassembler(t, ip.ReassemblyConfig{})
	for from := 1480; from < len(body); from += 1480 {
		_, reason := put(t, r, start, piece(1, body, from, min(from+1480, len(body))))
		require.Equal(t, ip.DropNone, reason)
	}
	zero := piece(1, body, 0, 1480, func(h *ip.Header) {
		h.Options = []byte{7, 3, 4, 0}
		h.TotalLen += 4
	})
	whole, reason := put(t, r, start, zero)
	assert.Nil(t, whole)
	assert.Equal(t, ip.DropFragmentTooLong, reason)
}

func TestInvalidReassemblyConfigs(t *testing.T) {
	for _, cfg := range []ip.ReassemblyConfig{
		{Timeout: -1},
		{MaxBytes: 100},
		{MaxDatagrams: 1},
		{MaxFragments: 1},
	} {
		r := ip.NewReassembler()
		was := r.Config()
		assert.ErrorIs(t, r.Configure(cfg), ip.ErrReassembly, "%+v", cfg)
		assert.Equal(t, was, r.Config())
	}
}
