package ip_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

func TestForwardDecrementsTTLAndKeepsTheRest(t *testing.T) {
	for _, packet := range []string{udpPacket, echoWithRecordRoute} {
		b := unhex(t, packet)
		want := unhex(t, packet)
		want[8]--
		fixChecksum(want)
		require.Equal(t, ip.DropNone, ip.Forward(b))
		assert.Equal(t, want, b)
	}
}

func TestForwardEqualsRecomputation(t *testing.T) {
	// RFC 1624 §3 fixed what RFC 1141 got wrong at the edges of one's complement,
	// so every TTL and random identifications are tried.
	rng := rand.New(rand.NewPCG(1, 2))
	b := unhex(t, udpPacket)
	for ttl := 2; ttl <= 255; ttl++ {
		for range 300 {
			b[8], b[9] = uint8(ttl), uint8(rng.Uint32())
			binary.BigEndian.PutUint16(b[4:], uint16(rng.Uint32()))
			fixChecksum(b)
			require.Equal(t, ip.DropNone, ip.Forward(b))
			h, _, drop := ip.ParseHeader(b)
			require.Equal(t, ip.DropNone, drop)
			require.Equal(t, uint8(ttl-1), h.TTL)
		}
	}
}

func TestForwardDropsAtTheLastHop(t *testing.T) {
	// RFC 1812 §5.3.1: a packet whose TTL would reach zero is not forwarded, and
	// the error has to quote it as it came.
	for _, ttl := range []uint8{0, 1} {
		b := unhex(t, udpPacket)
		b[8] = ttl
		fixChecksum(b)
		before := append([]byte(nil), b...)
		assert.Equal(t, ip.DropTTL, ip.Forward(b))
		assert.Equal(t, before, b)
	}
}

func TestForwardUntilTheTTLIsSpent(t *testing.T) {
	b := unhex(t, udpPacket) // sent with 64
	hops := 0
	for ip.Forward(b) == ip.DropNone {
		hops++
	}
	assert.Equal(t, 63, hops)
}

func TestForwardingDoesNotAllocate(t *testing.T) {
	prefixes := manyPrefixes(1000)
	table, packet := tableOf(prefixes), unhex(t, udpPacket)
	copy(packet[16:], prefixes[0].Addr().AsSlice())
	fixChecksum(packet)
	allocs := testing.AllocsPerRun(100, func() {
		packet[8] = 64
		fixChecksum(packet)
		if !forwardOne(table, packet) {
			t.Fatal("not forwarded")
		}
	})
	assert.Zero(t, allocs)
}

// forwardOne is what a router does for a packet.
func forwardOne(table *ip.Table, packet []byte) bool {
	h, _, drop := ip.ParseHeader(packet)
	if drop != ip.DropNone {
		return false
	}
	_, ok := table.Hop(h.Dst)
	return ok && ip.Forward(packet) == ip.DropNone
}

// BenchmarkForward is the whole work on one packet: the header parsed and
// verified, the route looked up among 100,000, TTL and checksum changed.
func BenchmarkForward(b *testing.B) {
	prefixes := manyPrefixes(100_000)
	table := tableOf(prefixes)
	b.Run("one-flow", func(b *testing.B) { benchForward(b, table, targetsIn(prefixes, 1)) })
	b.Run("random", func(b *testing.B) { benchForward(b, table, targetsIn(prefixes, 1<<14)) })
}

func benchForward(b *testing.B, table *ip.Table, targets []netip.Addr) {
	b.Helper()
	packets := make([][ip.HeaderLen]byte, len(targets))
	for i := range packets {
		ip.Header{TotalLen: ip.HeaderLen, TTL: 255, Dst: targets[i]}.Put(packets[i][:])
	}
	fresh := append([][ip.HeaderLen]byte(nil), packets...)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		at := i & (len(packets) - 1)
		if packets[at][8] == 1 {
			packets[at] = fresh[at]
		}
		if !forwardOne(table, packets[at][:]) {
			b.Fatal("not forwarded")
		}
		i++
	}
}

func BenchmarkForwardInPlace(b *testing.B) {
	packet := unhex(b, udpPacket)
	ttl, hi, lo := packet[8], packet[10], packet[11]
	b.ReportAllocs()
	for b.Loop() {
		packet[8], packet[10], packet[11] = ttl, hi, lo
		if ip.Forward(packet) != ip.DropNone {
			b.Fatal("not forwarded")
		}
	}
}

// RFC 1812 §5.2.2: what is taken for plain is what ParseHeader finds no fault with.
func TestIsPlainAgreesWithParseHeader(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	plain := 0
	for range 100_000 {
		b := unhex(t, udpPacket)
		if rng.IntN(8) == 0 {
			b = unhex(t, echoWithRecordRoute)
		}
		ends := ip.Ends(b)
		for range rng.IntN(3) {
			b[rng.IntN(20)] = uint8(rng.Uint32())
		}
		if rng.IntN(4) > 0 {
			fixChecksum(b)
		}
		b = b[:len(b)-max(0, rng.IntN(40)-30)]
		h, _, drop := ip.ParseHeader(b)
		want := drop == ip.DropNone && h.Options == nil && h.TotalLen == len(b) && h.TTL > 1 &&
			ip.Ends(b) == ends
		require.Equal(t, want, ip.IsPlain(b, ends), "%x", b)
		if want {
			plain++
		}
	}
	assert.Greater(t, plain, 10_000)
	assert.False(t, ip.IsPlain(make([]byte, 19), 0), "no whole header")
}
