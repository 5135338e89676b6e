package ip_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// holes is the algorithm of RFC 815 §3: the list of missing ranges. It is the oracle for fragments
// that do not overlap.
type holes struct {
	list []hole // first and last byte of each missing range, in any order
	data []byte
	end  int
}

type hole struct{ first, last int }

const infinity = 1 << 20

func newHoles() *holes {
	return &holes{list: []hole{{0, infinity}}, data: make([]byte, 65536)}
}

// add adds a fragment and reports whether the datagram is complete.
func (o *holes) add(h *ip.Header, payload []byte) bool {
	first, last := h.FragOff, h.FragOff+len(payload)-1
	for i := 0; i < len(o.list); {
		d := o.list[i]
		if first > d.last || last < d.first {
			i++
			continue
		}
		o.list = slices.Delete(o.list, i, i+1)
		if first > d.first {
			o.list = append(o.list, hole{d.first, first - 1})
		}
		if last < d.last && h.MF {
			o.list = append(o.list, hole{last + 1, d.last})
		}
	}
	copy(o.data[first:], payload)
	if !h.MF {
		o.end = last + 1
	}
	return len(o.list) == 0
}

// nested fragments a packet for several random MTUs in turn.
func nested(rng *rand.Rand, packet []byte, depth int) [][]byte {
	list := cut(packet, ip.MinMTU+rng.IntN(1400))
	if depth == 0 {
		return list
	}
	var all [][]byte
	for _, b := range list {
		if rng.IntN(2) == 0 {
			all = append(all, nested(rng, b, depth-1)...)
		} else {
			all = append(all, b)
		}
	}
	return all
}

// RFC 815 §3: after each fragment the oracle and the Reassembler agree on whether the datagram is
// complete, in every order and with duplicates.
func TestRFC815_3_HoleAlgorithm(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	r := reassembler(t, ip.ReassemblyConfig{})
	for round := range 300 {
		packet := datagram(rng.IntN(20_000) + 1)
		list := nested(rng, packet, 2)
		for range rng.IntN(len(list) + 1) {
			list = append(list, list[rng.IntN(len(list))])
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if len(list) == 1 {
			continue // the packet is not a fragment
		}
		o := newHoles()
		for i, b := range list {
			h, payload := header(t, b)
			whole, reason := r.Input(start, 0, &h, b)
			require.Equal(t, ip.DropNone, reason, "seed %d, round %d, fragment %d", seed, round, i)
			require.Equal(t, o.add(&h, payload), whole != nil, "seed %d, round %d, fragment %d",
				seed, round, i)
			if whole != nil {
				require.Equal(t, packet, whole)
				require.Equal(t, packet[20:], o.data[:o.end])
				break // the next fragment begins another datagram
			}
		}
		require.Zero(t, r.Info().Datagrams)
	}
	assert.NotZero(t, r.Info().Duplicates)
}

// FuzzFragments fragments a datagram repeatedly and delivers the fragments in any order and with
// duplicates. The result is the original datagram.
func FuzzFragments(f *testing.F) {
	f.Add([]byte("the payload"), uint16(68), uint16(68), uint64(1))
	f.Add(make([]byte, 3000), uint16(576), uint16(68), uint64(2))
	f.Add(make([]byte, 65515), uint16(1400), uint16(577), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, mtu1, mtu2 uint16, order uint64) {
		if len(text) == 0 || len(text) > 65515 {
			return
		}
		h := ip.Header{
			TotalLen: 20 + len(text), ID: uint32(uint16(order)), TTL: 9, Protocol: ip.ProtoUDP,
			Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
		}
		packet := append(h.Append(nil), text...)
		var list [][]byte
		for _, b := range cut(packet, int(mtu1)) {
			list = append(list, cut(b, int(mtu2))...)
		}
		if len(list) == 1 {
			require.Equal(t, packet, list[0])
			return
		}
		rng := rand.New(rand.NewPCG(order, 1))
		for range rng.IntN(len(list)) {
			list = append(list, list[rng.IntN(len(list))])
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		r := reassembler(t, ip.ReassemblyConfig{})
		for _, b := range list {
			whole, reason := put(t, r, start, b)
			require.Equal(t, ip.DropNone, reason)
			if whole != nil {
				require.True(t, bytes.Equal(packet, whole))
				return
			}
		}
		t.Fatal("the datagram is not complete")
	})
}

// fuzzed reads a fragment from bytes: six for the header, and the length of the payload.
func fuzzed(b []byte) (h ip.Header, packet, rest []byte) {
	const size = 7
	if len(b) < size {
		return h, nil, nil
	}
	n := int(b[5]) << (b[6] % 9)
	h = ip.Header{
		Len: ip.HeaderLen, TOS: b[4] & 3, ID: uint32(b[2] % 8), MF: b[3]&1 != 0,
		FragOff:  int(binary.BigEndian.Uint16(b)&0x1fff) * 8,
		Protocol: []byte{ip.ProtoUDP, ip.ProtoTCP}[b[3]>>1&1],
		Src:      ip.V4(10, 0, 0, b[3]>>2&3), Dst: ip.V4(10, 1, 0, 2), TTL: 9,
	}
	if b[4]&0x80 != 0 {
		h.Options, h.Len = []byte{7, 3, 4, 0}, 24
	}
	if b[4]&0x40 != 0 {
		return fuzzed6(h, n, b)
	}
	n = min(n, ip.MaxPacketLen-h.Len)
	h.TotalLen = h.Len + n
	return h, append(h.Append(nil), bytes.Repeat(b[4:5], n)...), b[size:]
}

// fuzzed6 is like fuzzed, for IPv6.
func fuzzed6(h ip.Header, n int, b []byte) (ip.Header, []byte, []byte) {
	h.Src, h.Dst, h.ID, h.Options = src6, dst6, h.ID+1, nil
	h.MF = h.MF || h.FragOff == 0 // ensures that the fragment is not atomic
	if b[4]&0x80 != 0 {
		h.Options = extension(ip.ProtoUDP, 5, 2, 0, 0)
	}
	h.Len = h.Size()
	n = min(n, 0xffff+ip.HeaderLen6-h.Len)
	h.TotalLen = h.Len + n
	return h, append(h.Append(nil), bytes.Repeat(b[4:5], n)...), b[7:]
}

// FuzzReassembler delivers arbitrary fragments. Nothing panics, every result is a valid packet, and
// memory stays within its bound and is freed.
func FuzzReassembler(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 0, 8, 0, 0, 1, 1, 0, 0, 8, 0})
	f.Add([]byte{0, 0, 1, 1, 0, 8, 0, 0, 0, 1, 1, 1, 8, 0})
	f.Add([]byte{31, 255, 1, 0, 0, 255, 8, 0, 0, 1, 1, 0, 255, 8, 0, 0, 2, 1, 0x80, 248, 3})
	f.Add([]byte{0, 0, 1, 1, 0x40, 8, 0, 0, 1, 1, 0, 0xc0, 8, 0, 0, 2, 1, 0, 0x40, 9, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 256 << 10
		r := reassembler(t, ip.ReassemblyConfig{MaxBytes: limit, MaxDatagrams: 5, MaxFragments: 9})
		now, held, told := start, 0, 0
		for {
			h, packet, rest := fuzzed(b)
			if packet == nil {
				break
			}
			b = rest
			before := r.Info()
			whole, reason := r.Input(now, 1, &h, packet)
			info := r.Info()
			require.LessOrEqual(t, info.Bytes, limit)
			require.LessOrEqual(t, info.Datagrams, 5)
			require.True(t, whole == nil || reason == ip.DropNone)
			switch {
			case whole != nil:
				got, payload, drop := ip.ParseHeader(whole)
				require.Equal(t, ip.DropNone, drop)
				require.False(t, got.IsFragment())
				require.NotEmpty(t, payload)
				require.Len(t, whole, got.TotalLen)
				held = -1 // stands for an unknown number of fragments
			case reason == ip.DropNone && info.Duplicates == before.Duplicates && held >= 0:
				held++
			}
			now += clock.Time(h.TOS) * clock.Time(5*time.Second)
			r.Advance(now)
			for _, d := range discards(r) {
				require.Positive(t, d.Count)
				require.Equal(t, 1, d.Iface)
				told += d.Count
			}
		}
		now = now.Add(time.Hour)
		r.Advance(now)
		for _, d := range discards(r) {
			told += d.Count
		}
		if held >= 0 {
			require.Equal(t, held, told, "each stored fragment is delivered or discarded")
		}
		require.Zero(t, r.Info().Bytes)
		require.Zero(t, r.Info().Datagrams)
		require.Equal(t, clock.Never, r.Deadline())
	})
}
