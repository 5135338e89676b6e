package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func prefixOf(a netip.Addr, bits int) netip.Prefix {
	return netip.PrefixFrom(a, bits)
}

// ofFragments are the reasons for which reassembly drops fragments.
var ofFragments = func() map[string]bool {
	m := map[string]bool{}
	for r := ip.DropFragmentEmpty; r <= ip.DropFragmentTimeout; r++ {
		m[r.String()] = true
	}
	return m
}()

// accounted fails the test unless every received packet was accepted by a protocol, forwarded, or
// dropped for a reason. The fragments of a datagram count as one packet.
func accounted(t require.TestingT, s *stack.Stack, sent uint64) {
	var forwarded, out uint64
	for i, f := range s.Interfaces().Infos() {
		var dropped uint64
		for _, d := range f.In.Drops {
			if !ofFragments[d.Reason] {
				dropped += d.Packets
			}
		}
		require.Equal(t, f.In.Packets+f.In.Fragmented, f.In.Delivered+f.In.Forwarded+f.In.Fragments+dropped,
			"interface %d: %+v", i, f.In)
		forwarded += f.In.Forwarded
		for _, d := range f.Out.Drops {
			if d.Reason != ip.DropICMPRate.String() {
				out += d.Packets
			}
		}
	}
	require.LessOrEqual(t, forwarded, out+sent, "every forwarded packet is sent or dropped")
}

// fuzzRouter returns a router of both families with sockets, a group, a listener, a lossy link and
// RIP. Its if2 has IPv4 alone, with the smallest MTU.
func fuzzRouter(t require.TestingT, dialect rip.Dialect) *stack.Stack {
	small := face("if2", "10.2.0.1/24")
	small.MTU = 68
	known := dual("if1", "10.1.0.1/24", "2001:db8:1::1/64")
	known.Neighbors = []netip.Addr{addr("10.1.0.2"), addr("10.1.0.3"), addr("2001:db8:1::2"), addr("fe80::2")}
	known.MTU = 1280
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{dual("if0", "10.0.0.2/24", "2001:db8::2/64"), known, small},
		Routes: []stack.Route{
			route("172.16.0.0/12", "10.1.0.2"), route("2001:db8:f::/48", "fe80::2%if1"),
		},
		Forwarding: true, RIP: &rip.Config{Dialect: dialect}, RIPng: &rip.Config{Dialect: rip.RIPng},
		Knobs: stack.Knobs{ICMP: stack.ICMPKnobs{EchoBroadcast: true}},
	})
	require.NoError(t, err)
	s.SetLoss(2, 0.1)
	u, err := s.Datagrams().Bind(netip.MustParseAddrPort("[::]:53"))
	require.NoError(t, err)
	require.NoError(t, s.Datagrams().Join(u, 0, ripGroup))
	_, err = s.ListenTCP(netip.MustParseAddrPort("[::]:80"), 4)
	require.NoError(t, err)
	return s
}

// drainAll drains a stack's output and returns the number of packets.
func drainAll(s *stack.Stack, now clock.Time, batch *buffer.Batch) (packets uint64) {
	for {
		batch.Reset()
		more := s.Output(now, []int{1000, 1000, 1000}, batch)
		for _, tr := range batch.Trains() {
			packets += uint64(tr.Count)
		}
		if !more {
			return packets
		}
	}
}

// fixSome corrects the lengths and checksums of about half of the packets, so that more of the
// code sees them.
func fixSome(b []byte, how byte) []byte {
	if how&1 == 0 || len(b) < ip.HeaderLen {
		return b
	}
	b[0] = 0x40 | max(5, b[0]&15)
	if how&32 != 0 || int(b[0]&15)*4 > len(b) {
		b[0] = 0x45
	}
	ihl := int(b[0]&15) * 4
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	if how&2 != 0 {
		b[6], b[7] = b[6]&0x40, 0 // makes the packet a whole packet and not a fragment
	}
	if how&4 != 0 {
		b[9] = []byte{0, 1, 6, 17, 200}[int(b[9])%5]
	}
	near := []netip.Addr{
		ip.V4(10, 0, 0, 2),
		ip.V4(10, 1, 0, 1),
		ip.V4(10, 1, 0, 2),
		ip.V4(10, 2, 0, 9),
		ip.V4(10, 1, 0, 255),
		ip.V4(224, 0, 0, 9),
		ip.V4(172, 16, 0, 1),
		ip.V4(255, 255, 255, 255),
	}
	if how&8 != 0 {
		copy(b[12:], []byte{10, 0, 0, 1})
		copy(b[16:], near[int(b[19])%len(near)].AsSlice())
	}
	if how&16 != 0 {
		fixPayload(b[ihl:], netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])), b[9])
	}
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b[:ihl]))
	return b
}

func fixPayload(p []byte, src, dst netip.Addr, protocol uint8) {
	sum := checksum.PseudoHeader(src, dst, protocol, len(p))
	switch {
	case protocol == ip.ProtoICMP && len(p) >= 4:
		p[2], p[3] = 0, 0
		binary.BigEndian.PutUint16(p[2:], checksum.Checksum(p))
	case protocol == ip.ProtoICMPv6 && len(p) >= 8:
		if p[1] > 6 {
			p[0], p[1] = []byte{1, 2, 3, 4, 128, 129, 130, 133, 134, 135, 136, 137}[p[0]%12], 0
		}
		p[2], p[3] = 0, 0
		binary.BigEndian.PutUint16(p[2:], ^checksum.Fold(checksum.Sum(p, sum)))
	case protocol == ip.ProtoUDP && len(p) >= 8:
		routing := byte(8)
		if src.Is6() {
			routing = 9
		}
		// RIP's port, or the socket's
		p[2], p[3] = []byte{2, 0}[p[3]&1], []byte{routing, 53}[p[3]&1]
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)))
		p[6], p[7] = 0, 0
		binary.BigEndian.PutUint16(p[6:], ^checksum.Fold(checksum.Sum(p, sum)))
	case protocol == ip.ProtoTCP && len(p) >= 20:
		p[16], p[17] = 0, 0
		binary.BigEndian.PutUint16(p[16:], ^checksum.Fold(checksum.Sum(p, sum)))
	}
}

// TestEveryPacketIsCounted sends random packets of both families, many with corrected lengths and
// checksums, and mutations of correct ones. It checks that each packet is counted exactly once, and
// that the stack's memory stops growing after a while.
func TestEveryPacketIsCounted(t *testing.T) {
	for _, dialect := range []rip.Dialect{rip.Course, rip.RIPv2} {
		everyPacket(t, fuzzRouter(t, dialect))
	}
}

func everyPacket(t *testing.T, s *stack.Stack) {
	t.Helper()
	rng, batch := rand.New(rand.NewPCG(11, 12)), buffer.NewBatch()
	now, sent, correct := clock.Time(1), uint64(0), valid6()
	var early uint64
	packets := 60_000
	if testenv.Long() {
		packets = 300_000
	}
	for k := range packets {
		b := make([]byte, rng.IntN(rng.IntN(1500)+1)+rng.IntN(100))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		switch how := byte(rng.Uint32() | rng.Uint32()); rng.IntN(3) {
		case 0:
			b = fixSome(b, how)
		case 1:
			b = fixed6(b, how)
		case 2:
			b = mutated(rng, correct)
		}
		if k == packets*2/3 {
			early = heapBytes()
		}
		now = now.Add(1_000_000)
		if s.Deadline().Due(now) {
			s.Advance(now)
		}
		input(s, now, buffer.Frame{Data: b, Size: max(1, len(b)), Iface: rng.IntN(3)})
		sent += drainAll(s, now, batch)
		s.Events()
	}
	accounted(t, s, sent)
	assert.Less(t, heapBytes(), early+1<<20, "bytes in use, %d before", early)
	assert.LessOrEqual(t, s.Fragments().Bytes, 4<<20)
	infos := s.Interfaces().Infos()
	require.NotZero(t, infos[0].In.Delivered)
	require.NotZero(t, infos[0].In.Forwarded)
	require.NotZero(t, infos[0].In.Fragments)
	require.Greater(t, len(infos[0].In.Drops), 15, "%v", infos[0].In.Drops)
}

// heapBytes returns the number of bytes in use.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func FuzzInput(f *testing.F) {
	f.Add(packetTo(hostA, routerA, 7, 7, 4, 0, 0, 0, 0, 0), byte(0), byte(31))
	f.Add(echoTo(routerA, ip.Header{Options: []byte{68, 8, 5, 1, 0, 0, 0, 0}}, nil), byte(0), byte(31))
	f.Add(datagramTo(hostA, hostC, ip.Header{MF: true, FragOff: 8}, make([]byte, 64)), byte(1), byte(1))
	f.Add(datagramTo(hostA, ip.V4(224, 0, 0, 9), ip.Header{}, nil), byte(0), byte(0))
	for _, b := range valid6() {
		f.Add(b, byte(128), byte(1|16))
	}
	s, batch := fuzzRouter(f, rip.RIPv2), buffer.NewBatch()
	now, sent := clock.Time(1), uint64(0)
	f.Fuzz(func(t *testing.T, b []byte, iface, how byte) {
		now = now.Add(1_000_000)
		b = append([]byte(nil), b[:min(len(b), 2000)]...)
		if six := iface&128 != 0; six {
			b = fixed6(b, how)
		} else {
			b = fixSome(b, how)
		}
		input(s, now, buffer.Frame{Data: b, Size: max(1, len(b)), Iface: int(iface&127) % 3})
		if s.Deadline().Due(now) {
			s.Advance(now)
		}
		sent += drainAll(s, now, batch)
		s.Events()
		accounted(t, s, sent)
	})
}
