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

// RFC 1812 §5.3.1: a router decrements the TTL by one, and changes nothing else but the checksum.
func TestDecrementTTLKeepsTheRest(t *testing.T) {
	for _, packet := range []string{udpPacket, echoWithRecordRoute} {
		b := unhex(t, packet)
		want := unhex(t, packet)
		want[8]--
		fixChecksum(want)
		ip.DecrementTTL(b)
		assert.Equal(t, want, b)
	}
}

func TestDecrementTTLEqualsRecomputedChecksum(t *testing.T) {
	// RFC 1624 §3 corrects errors of RFC 1141 with special values of one's complement, so the test
	// tries every TTL and random identifications.
	rng := rand.New(rand.NewPCG(1, 2))
	b := unhex(t, udpPacket)
	for ttl := 2; ttl <= 255; ttl++ {
		for range 300 {
			b[8], b[9] = uint8(ttl), uint8(rng.Uint32())
			binary.BigEndian.PutUint16(b[4:], uint16(rng.Uint32()))
			fixChecksum(b)
			ip.DecrementTTL(b)
			h, _, drop := ip.ParseHeader(b)
			require.Equal(t, ip.DropNone, drop)
			require.Equal(t, uint8(ttl-1), h.TTL)
		}
	}
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

// forwardOne forwards one packet as a router does.
func forwardOne(table *ip.Table, packet []byte) bool {
	h, _, drop := ip.ParseHeader(packet)
	if drop != ip.DropNone {
		return false
	}
	_, ok := table.Hop(h.Dst)
	ip.DecrementTTL(packet)
	return ok
}

// BenchmarkForward measures all the work on one packet: parsing and verifying the header, looking
// up the route among 100,000, and updating TTL and checksum.
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
		ip.DecrementTTL(packet)
	}
}

// RFC 1812 §5.2.2: IsPlain accepts packets that ParseHeader accepts, that have no options that
// every router reads, and whose TTL permits forwarding.
func TestIsPlainAgreesWithParseHeader(t *testing.T) {
	packets := [][]byte{
		unhex(t, udpPacket), unhex(t, echoWithRecordRoute), packet6(ip.ProtoUDP, make([]byte, 8)),
		packet6(ip.NextRouting, make([]byte, 8)), packet6(ip.NextHopByHop, make([]byte, 8)),
	}
	rng := rand.New(rand.NewPCG(3, 9))
	plain := map[bool]int{}
	for range 200_000 {
		whole := packets[rng.IntN(len(packets))]
		addresses, size := 12, 20
		if whole[0]>>4 == 6 {
			addresses, size = 8, 40
		}
		b := append([]byte(nil), whole...)
		for range rng.IntN(3) {
			b[rng.IntN(addresses)] = uint8(rng.Uint32() >> rng.IntN(30))
		}
		if size == 20 && rng.IntN(4) > 0 {
			fixChecksum(b)
		}
		b = b[:max(size, len(b)-rng.IntN(20)*rng.IntN(2))]
		h, _, drop := ip.ParseHeader(b)
		want := drop == ip.DropNone && h.Options == nil && h.TotalLen == len(b) && h.TTL > 1
		require.Equal(t, want, ip.IsPlain(b), "%x", b)
		if want {
			plain[h.Is6()]++
		}
	}
	assert.Greater(t, min(plain[false], plain[true]), 10_000)
}
