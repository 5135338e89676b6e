package nat_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/nat"
)

const (
	icmp = 1
	tcp  = 6
	udp  = 17

	fin = 1
	syn = 2
	rst = 4
	ack = 16
)

var (
	hostA  = at("192.168.0.2:5000")
	hostB  = at("192.168.0.3:5000")
	server = at("203.0.113.7:80")
	public = netip.MustParseAddr("198.51.100.1")
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func open(t *testing.T, cfg nat.Config) *nat.NAT {
	t.Helper()
	cfg.Addr, cfg.Rand = public, rand.New(rand.NewPCG(1, 2))
	n, err := nat.New(cfg)
	require.NoError(t, err)
	return n
}

// ipv4 returns a packet with a valid header around a transport segment.
func ipv4(src, dst netip.Addr, protocol byte, transport []byte) []byte {
	b := make([]byte, 20, 20+len(transport))
	b[0], b[8], b[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(transport)))
	s, d := src.As4(), dst.As4()
	copy(b[12:], s[:])
	copy(b[16:], d[:])
	binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b))
	return append(b, transport...)
}

func datagram(src, dst netip.AddrPort) []byte {
	t := make([]byte, 8, 13)
	binary.BigEndian.PutUint16(t, src.Port())
	binary.BigEndian.PutUint16(t[2:], dst.Port())
	t = append(t, "hello"...)
	binary.BigEndian.PutUint16(t[4:], uint16(len(t)))
	sum := checksum.PseudoHeader(src.Addr(), dst.Addr(), udp, len(t))
	binary.BigEndian.PutUint16(t[6:], ^checksum.Fold(checksum.Sum(t, sum)))
	return ipv4(src.Addr(), dst.Addr(), udp, t)
}

func segment(src, dst netip.AddrPort, flags byte) []byte {
	t := make([]byte, 20)
	binary.BigEndian.PutUint16(t, src.Port())
	binary.BigEndian.PutUint16(t[2:], dst.Port())
	t[12], t[13] = 5<<4, flags
	sum := checksum.PseudoHeader(src.Addr(), dst.Addr(), tcp, len(t))
	binary.BigEndian.PutUint16(t[16:], ^checksum.Fold(checksum.Sum(t, sum)))
	return ipv4(src.Addr(), dst.Addr(), tcp, t)
}

func message(src, dst netip.Addr, typ, code byte, id uint16, data []byte) []byte {
	t := append([]byte{typ, code, 0, 0, byte(id >> 8), byte(id), 0, 1}, data...)
	binary.BigEndian.PutUint16(t[2:], checksum.Checksum(t))
	return ipv4(src, dst, icmp, t)
}

// valid checks all checksums of a packet, and those of a packet quoted in an ICMP error.
func valid(t *testing.T, b []byte) {
	t.Helper()
	size := int(b[0]&15) * 4
	assert.True(t, checksum.Verify(b[:size], 0), "IP header")
	seg := b[size:]
	if b[9] == icmp {
		assert.True(t, checksum.Verify(seg, 0), "ICMP")
		return
	}
	src, dst := ends(b)
	sum := checksum.PseudoHeader(src.Addr(), dst.Addr(), b[9], len(seg))
	assert.True(t, checksum.Verify(seg, sum), "transport")
}

func ends(b []byte) (src, dst netip.AddrPort) {
	size := int(b[0]&15) * 4
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:])), binary.BigEndian.Uint16(b[size:])),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:])), binary.BigEndian.Uint16(b[size+2:]))
}

// out translates a packet from inside, and returns its new source.
func out(t *testing.T, n *nat.NAT, now clock.Time, b []byte) netip.AddrPort {
	t.Helper()
	m, v := n.Outbound(now, b)
	require.Equal(t, nat.Translate, v)
	m.Apply(now, b)
	valid(t, b)
	src, _ := ends(b)
	return src
}

// in translates a packet from outside, and returns its new destination.
func in(t *testing.T, n *nat.NAT, now clock.Time, b []byte) netip.AddrPort {
	t.Helper()
	m, v := n.Inbound(now, b)
	require.Equal(t, nat.Translate, v)
	m.Apply(now, b)
	valid(t, b)
	_, dst := ends(b)
	return dst
}

func verdictIn(n *nat.NAT, now clock.Time, b []byte) nat.Verdict {
	_, v := n.Inbound(now, b)
	return v
}

func verdictOut(n *nat.NAT, now clock.Time, b []byte) nat.Verdict {
	_, v := n.Outbound(now, b)
	return v
}

func TestRFC4787_4_1_MappingBehaviors(t *testing.T) {
	other, otherPort := at("203.0.113.8:80"), at("203.0.113.7:81")
	for _, c := range []struct {
		behavior           nat.Behavior
		sameAddr, samePort bool
	}{
		{nat.EndpointIndependent, true, true},
		{nat.AddressDependent, false, true},
		{nat.AddressPortDependent, false, false},
	} {
		for _, packet := range []func(src, dst netip.AddrPort) []byte{
			datagram,
			func(src, dst netip.AddrPort) []byte { return segment(src, dst, syn) }, // RFC 5382 §4.1
		} {
			n := open(t, nat.Config{Mapping: c.behavior})
			first := out(t, n, 1, packet(hostA, server))
			assert.Equal(t, first, out(t, n, 1, packet(hostA, server)))
			assert.Equal(t, c.sameAddr, first == out(t, n, 1, packet(hostA, other)), c.behavior)
			assert.Equal(t, c.samePort, first == out(t, n, 1, packet(hostA, otherPort)), c.behavior)
		}
	}
}

func TestRFC4787_5_FilteringBehaviors(t *testing.T) {
	for _, c := range []struct {
		behavior            nat.Behavior
		otherPort, stranger nat.Verdict
	}{
		{nat.EndpointIndependent, nat.Translate, nat.Translate},
		{nat.AddressDependent, nat.Translate, nat.Filtered},
		{nat.AddressPortDependent, nat.Filtered, nat.Filtered},
	} {
		n := open(t, nat.Config{Filtering: c.behavior})
		outside := out(t, n, 1, datagram(hostA, server))
		assert.Equal(t, hostA, in(t, n, 1, datagram(server, outside)))
		assert.Equal(t, c.otherPort, verdictIn(n, 1, datagram(at("203.0.113.7:99"), outside)))
		assert.Equal(t, c.stranger, verdictIn(n, 1, datagram(at("203.0.113.9:80"), outside)))
	}
}

func TestRFC4787_4_2_1_PortPreservation(t *testing.T) {
	n := open(t, nat.Config{})
	first := out(t, n, 1, datagram(hostA, server))
	assert.Equal(t, hostA.Port(), first.Port(), "preserved")
	second := out(t, n, 1, datagram(hostB, server))
	assert.NotEqual(t, first, second, "no overloading")
	assert.GreaterOrEqual(t, second.Port(), uint16(1024), "RFC 5382 §7.1: the same range")
	low := netip.AddrPortFrom(hostA.Addr(), 53)
	assert.EqualValues(t, 53, out(t, n, 1, datagram(low, server)).Port())
	low = netip.AddrPortFrom(hostB.Addr(), 53)
	assert.Less(t, out(t, n, 1, datagram(low, server)).Port(), uint16(1024))
}

func TestRFC4787_4_2_2_PortParity(t *testing.T) {
	n := open(t, nat.Config{Mapping: nat.AddressPortDependent})
	for i := range uint16(200) {
		from := netip.AddrPortFrom(hostA.Addr(), 6000+i%2)
		to := netip.AddrPortFrom(server.Addr(), 1+i)
		assert.Equal(t, from.Port()%2, out(t, n, 1, datagram(from, to)).Port()%2)
	}
}

func TestRFC4787_4_3_OnlyPacketsFromInsideRefresh(t *testing.T) {
	n := open(t, nat.Config{})
	outside := out(t, n, 1, datagram(hostA, server))
	now := clock.Time(1).Add(4 * time.Minute)
	in(t, n, now, datagram(server, outside))
	n.Advance(clock.Time(1).Add(5*time.Minute - 1))
	assert.Equal(t, 1, n.Info().Sessions)
	assert.Equal(t, clock.Time(1).Add(5*time.Minute), n.Deadline())
	n.Advance(n.Deadline())
	assert.Equal(t, nat.Info{Created: 1, Expired: 1, Outbound: 1, Inbound: 1}, n.Info())
	assert.Equal(t, clock.Never, n.Deadline())

	out(t, n, now, datagram(hostA, server))
	out(t, n, now.Add(4*time.Minute), datagram(hostA, server))
	n.Advance(now.Add(8 * time.Minute))
	assert.Equal(t, 1, n.Info().Sessions, "refreshed")
}

func TestRFC5382_5_TimeoutsOfConnections(t *testing.T) {
	const transitory, established = 4 * time.Minute, 124 * time.Minute
	n := open(t, nat.Config{})
	outside := out(t, n, 1, segment(hostA, server, syn))
	left := func() time.Duration { return n.Deadline().Sub(1) }
	assert.Equal(t, transitory, left())
	in(t, n, 1, segment(server, outside, syn|ack))
	assert.Equal(t, transitory, left())
	out(t, n, 1, segment(hostA, server, ack))
	assert.Equal(t, established, left())
	out(t, n, 1, segment(hostA, server, fin|ack))
	assert.Equal(t, established, left(), "half-closed connections keep the long timeout")
	in(t, n, 1, segment(server, outside, fin|ack))
	assert.Equal(t, transitory, left())
	assert.Equal(t, "closing", n.Sessions(1, 9)[0].State)
	out(t, n, 1, segment(hostA, server, syn))
	assert.Equal(t, "opening", n.Sessions(1, 9)[0].State, "the ports are reused")
	in(t, n, 1, segment(server, outside, rst))
	assert.Equal(t, transitory, left())
	n.Advance(clock.Time(1).Add(transitory))
	assert.Zero(t, n.Info().Sessions)
}

func TestRFC5382_4_2_SimultaneousOpen(t *testing.T) {
	n := open(t, nat.Config{Filtering: nat.AddressPortDependent})
	outside := netip.AddrPortFrom(public, hostA.Port())
	assert.Equal(t, nat.Held, verdictIn(n, 1, segment(server, outside, syn)))
	out(t, n, 2, segment(hostA, server, syn))
	assert.Zero(t, n.Info().Held, "RFC 5382 §4.3: the SYN is forgotten")
	assert.Equal(t, hostA, in(t, n, 3, segment(server, outside, syn)))
	out(t, n, 4, segment(hostA, server, syn|ack))
	in(t, n, 5, segment(server, outside, syn|ack))
	in(t, n, 6, segment(server, outside, ack))
	out(t, n, 6, segment(hostA, server, ack))
	assert.Equal(t, "open", n.Sessions(6, 9)[0].State)
}

func TestRFC5382_4_3_UnsolicitedSYN(t *testing.T) {
	n := open(t, nat.Config{})
	packet := segment(server, netip.AddrPortFrom(public, 99), syn)
	assert.Equal(t, nat.Held, verdictIn(n, 1, packet))
	assert.Equal(t, nat.Held, verdictIn(n, 2, packet), "a retransmission")
	n.Advance(clock.Time(1).Add(6*time.Second - 1))
	_, ok := n.Output()
	assert.False(t, ok)
	n.Advance(n.Deadline())
	b, ok := n.Output()
	assert.True(t, ok)
	assert.Equal(t, packet, b)
	assert.Equal(t, nat.Untranslated, verdictIn(n, 1, segment(server, at("198.51.100.1:99"), ack)))
	for i := range 100_000 {
		from := netip.AddrPortFrom(server.Addr(), uint16(i))
		verdictIn(n, 1, segment(from, netip.AddrPortFrom(public, 99), syn))
	}
	assert.Equal(t, 256, n.Info().Held)
}

func TestRFC5508_3_Queries(t *testing.T) {
	n := open(t, nat.Config{Mapping: nat.AddressPortDependent})
	echo := func(host, to netip.Addr) uint16 {
		b := message(host, to, 8, 0, 77, nil)
		m, v := n.Outbound(1, b)
		require.Equal(t, nat.Translate, v)
		m.Apply(1, b)
		valid(t, b)
		return binary.BigEndian.Uint16(b[24:])
	}
	first := echo(hostA.Addr(), server.Addr())
	assert.Equal(t, first, echo(hostA.Addr(), netip.MustParseAddr("203.0.113.9")), "RFC 5508 §3.1")
	second := echo(hostB.Addr(), server.Addr())
	assert.NotEqual(t, first, second)
	for id, host := range map[uint16]netip.Addr{first: hostA.Addr(), second: hostB.Addr()} {
		b := message(server.Addr(), public, 0, 0, id, []byte("x"))
		m, v := n.Inbound(1, b)
		require.Equal(t, nat.Translate, v)
		assert.Equal(t, host, m.Inside())
		m.Apply(1, b)
		valid(t, b)
		assert.EqualValues(t, 77, binary.BigEndian.Uint16(b[24:]))
	}
	assert.Equal(t, nat.Untranslated,
		verdictIn(n, 1, message(server.Addr(), public, 8, 0, first, nil)), "a query to the router")
	assert.Equal(t, time.Minute, n.Deadline().Sub(1), "RFC 5508 §3.2")
}

// quoted returns an ICMP error about a packet.
func quoted(from, to netip.Addr, packet []byte) []byte {
	return message(from, to, 3, 3, 0, packet)
}

func TestRFC5508_4_ErrorsOfBothSides(t *testing.T) {
	router := netip.MustParseAddr("203.0.113.100")
	for name, packet := range map[string]func(src, dst netip.AddrPort) []byte{
		"udp": datagram,
		"tcp": func(src, dst netip.AddrPort) []byte { return segment(src, dst, syn) },
		"ping": func(src, dst netip.AddrPort) []byte {
			if src.Addr() == server.Addr() {
				return message(src.Addr(), dst.Addr(), 0, 0, dst.Port(), nil)
			}
			return message(src.Addr(), dst.Addr(), 8, 0, src.Port(), nil)
		},
	} {
		n := open(t, nat.Config{})
		sent := packet(hostA, server)
		b := packet(hostA, server)
		out(t, n, 1, b)
		deadline, outside := n.Deadline(), n.Sessions(1, 1)[0].Outside

		e := quoted(router, public, b)
		m, v := n.Inbound(2, e) // RFC 5508 §4.2.1: an error from outside
		require.Equal(t, nat.Translate, v, name)
		m.Apply(2, e)
		valid(t, e)
		assert.Equal(t, quoted(router, hostA.Addr(), sent), e, name)

		reply := packet(server, outside)
		in(t, n, 1, reply)
		e = quoted(hostB.Addr(), server.Addr(), reply)
		m, v = n.Outbound(2, e) // RFC 5508 §4.2.2: an error from another inside host
		require.Equal(t, nat.Translate, v, name)
		m.Apply(2, e)
		valid(t, e)
		assert.Equal(t, quoted(public, server.Addr(), packet(server, outside)),
			e, name)
		assert.Equal(t, deadline, n.Deadline(), "RFC 5508 §4.3: an error does not refresh")
	}
}

func TestRFC5508_4_1_InvalidErrors(t *testing.T) {
	n := open(t, nat.Config{})
	b := datagram(hostA, server)
	out(t, n, 1, b)
	good := quoted(server.Addr(), public, b)
	require.Equal(t, nat.Translate, verdictIn(n, 1, good))

	bad := quoted(server.Addr(), public, b)
	bad[22]++
	assert.Equal(t, nat.Malformed, verdictIn(n, 1, bad), "checksum of the message")
	b[10]++
	assert.Equal(t, nat.Malformed, verdictIn(n, 1, quoted(server.Addr(), public, b)),
		"checksum of the quoted header")
	b[10]--
	assert.Equal(t, nat.Malformed, verdictIn(n, 1, quoted(server.Addr(), public, b[:16])))
	other := datagram(at("198.51.100.1:1"), server)
	assert.Equal(t, nat.Untranslated, verdictIn(n, 1, quoted(server.Addr(), public, other)))
}

// RFC 5382 §7.2, RFC 5508 §5: inside hosts exchange packets and errors through the outside address.
func TestRFC4787_6_Hairpinning(t *testing.T) {
	n := open(t, nat.Config{})
	outsideB := out(t, n, 1, datagram(hostB, server))
	b := datagram(hostA, outsideB)
	require.True(t, n.Hairpins(b))
	outsideA := out(t, n, 1, b)
	assert.Equal(t, hostB, in(t, n, 1, b))
	src, _ := ends(b)
	assert.Equal(t, outsideA, src, "the source is the outside one")

	reply := datagram(hostB, outsideA)
	require.True(t, n.Hairpins(reply))
	assert.Equal(t, outsideB, out(t, n, 1, reply))
	assert.Equal(t, hostA, in(t, n, 1, reply))

	// RFC 5508 §5: B reports A's datagram.
	e := quoted(hostB.Addr(), public, b)
	require.True(t, n.Hairpins(e))
	m, v := n.Outbound(1, e)
	require.Equal(t, nat.Translate, v)
	m.Apply(2, e)
	m, v = n.Inbound(1, e)
	require.Equal(t, nat.Translate, v)
	m.Apply(2, e)
	valid(t, e)
	assert.Equal(t, quoted(public, hostA.Addr(), datagram(hostA, outsideB)), e)
	assert.False(t, n.Hairpins(datagram(hostA, netip.AddrPortFrom(public, 9))))
}

func TestZeroUDPChecksumStaysZero(t *testing.T) {
	n := open(t, nat.Config{})
	b := datagram(hostA, server)
	b[26], b[27] = 0, 0
	m, v := n.Outbound(1, b)
	require.Equal(t, nat.Translate, v)
	m.Apply(1, b)
	assert.Equal(t, []byte{0, 0}, b[26:28])
}

func TestWrongChecksumStaysWrong(t *testing.T) {
	n := open(t, nat.Config{})
	b := segment(hostA, server, syn)
	b[36] ^= 0x55
	m, v := n.Outbound(1, b)
	require.Equal(t, nat.Translate, v)
	m.Apply(1, b)
	sum := checksum.PseudoHeader(public, server.Addr(), tcp, 20)
	assert.False(t, checksum.Verify(b[20:], sum))
}

func TestRFC1624_3_EveryPortKeepsChecksumsValid(t *testing.T) {
	n := open(t, nat.Config{MaxSessions: 1 << 16, MaxPerHost: 1 << 16})
	for i := range 40_000 {
		from := netip.AddrPortFrom(hostA.Addr(), uint16(1+i))
		out(t, n, 1, datagram(from, server))
		if t.Failed() {
			t.Fatal(from)
		}
	}
}

func TestForwards(t *testing.T) {
	n := open(t, nat.Config{
		Filtering: nat.AddressPortDependent,
		Forwards:  []nat.Forward{{TCP: true, Port: 8080, To: hostA}, {Port: 53, To: hostB}},
	})
	door := at("198.51.100.1:8080")
	assert.Equal(t, hostA, in(t, n, 1, segment(server, door, syn)))
	assert.Equal(t, door, out(t, n, 1, segment(hostA, server, syn|ack)))
	assert.Equal(t, "unconfirmed", n.Sessions(1, 9)[0].State)
	in(t, n, 1, segment(server, door, ack))
	assert.Equal(t, "open", n.Sessions(1, 9)[0].State)
	assert.Equal(t, hostB, in(t, n, 1, datagram(server, at("198.51.100.1:53"))))
	assert.Equal(t, at("198.51.100.1:53"), out(t, n, 1, datagram(hostB, at("203.0.113.9:9"))),
		"other packets of the forward's host")
	assert.Equal(t, 3, n.Clear())
	assert.Equal(t, hostA, in(t, n, 1, segment(server, door, syn)))
}

func TestFloodAtAPortForward(t *testing.T) {
	n := open(t, nat.Config{Forwards: []nat.Forward{{TCP: true, Port: 80, To: hostA}}})
	door := at("198.51.100.1:80")
	honest := at("203.0.113.200:4000")
	in(t, n, 1, segment(honest, door, syn))
	out(t, n, 1, segment(hostA, honest, syn|ack))
	in(t, n, 1, segment(honest, door, ack))
	for i := range 100_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{9, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		in(t, n, 2, segment(from, door, syn))
		out(t, n, 2, segment(hostA, from, syn|ack))
	}
	info := n.Info()
	assert.Equal(t, 4097, info.Sessions)
	assert.EqualValues(t, 100_001-4097, info.Evicted)
	assert.Equal(t, door, out(t, n, 3, segment(hostA, honest, ack)), "the session is still open")
	late := at("203.0.113.201:4000")
	in(t, n, 3, segment(late, door, syn))
	assert.Equal(t, door, out(t, n, 3, segment(hostA, late, syn|ack)))
	in(t, n, 3, segment(late, door, ack))
	assert.Equal(t, 2, count(n, "open"))
}

func count(n *nat.NAT, state string) (k int) {
	for _, s := range n.Sessions(1, 1<<20) {
		if s.State == state {
			k++
		}
	}
	return k
}

func TestFloodFromOneHost(t *testing.T) {
	n := open(t, nat.Config{})
	refused := 0
	for i := range 100_000 {
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{9, byte(i >> 16), byte(i >> 8), byte(i)}), 7)
		from := netip.AddrPortFrom(hostA.Addr(), uint16(1+i%60_000))
		if verdictOut(n, 1, datagram(from, to)) == nat.HostFull {
			refused++
		}
	}
	assert.Equal(t, 100_000-1<<13, refused)
	assert.Equal(t, 1<<13, n.Info().Sessions)
	assert.EqualValues(t, refused, n.Info().Refused)
	out(t, n, 1, datagram(hostB, server))
	for i := range 4 {
		host := netip.AddrFrom4([4]byte{192, 168, 1, byte(i)})
		for k := range 1 << 13 {
			verdictOut(n, 1, datagram(netip.AddrPortFrom(host, uint16(1024+k)), server))
		}
	}
	assert.Equal(t, nat.Full, verdictOut(n, 1, datagram(at("192.168.9.9:99"), server)))
	assert.True(t, out(t, n, 1, datagram(hostB, server)).IsValid(), "open sessions stay")
	in(t, n, 1, datagram(server, out(t, n, 1, datagram(hostB, server))))
	assert.Equal(t, 1<<15, n.Info().Sessions)
	n.Advance(clock.Time(1).Add(5 * time.Minute))
	assert.Zero(t, n.Info().Mappings, "no mapping is left")
	out(t, n, 1, datagram(at("192.168.9.9:99"), server))
}

func TestRouterKeepsItsOwnPorts(t *testing.T) {
	own := func(protocol uint8, port uint16, remote netip.AddrPort) bool {
		return port == 5000 || port == 6000 && remote == server
	}
	n := open(t, nat.Config{Own: own})
	assert.NotEqual(t, uint16(5000), out(t, n, 1, datagram(hostA, server)).Port())
	assert.Equal(t, nat.Untranslated, verdictIn(n, 1, segment(server, at("198.51.100.1:6000"), syn)))
}

func TestPacketsThatAreNotTranslated(t *testing.T) {
	n := open(t, nat.Config{})
	gre := ipv4(hostA.Addr(), server.Addr(), 47, make([]byte, 20))
	assert.Equal(t, nat.Unsupported, verdictOut(n, 1, gre))
	assert.Equal(t, nat.Untranslated, verdictIn(n, 1, gre))
	assert.Equal(t, nat.Malformed, verdictOut(n, 1, segment(hostA, server, syn)[:38]))
	b := datagram(hostA, server)
	b[6] = 0x20
	assert.Equal(t, nat.Malformed, verdictOut(n, 1, b), "a fragment")
	assert.Equal(t, nat.Unsupported, verdictOut(n, 1, message(hostA.Addr(), server.Addr(), 17, 0, 1, nil)))
	assert.Equal(t, nat.Untranslated,
		verdictOut(n, 1, quoted(hostA.Addr(), server.Addr(), datagram(server, hostA))))
}

func TestInvalidConfigs(t *testing.T) {
	for want, cfg := range map[string]nat.Config{
		"outside address ::1 must be IPv4": {Addr: netip.IPv6Loopback()},
		"timeouts must be positive":        {Timeouts: nat.Timeouts{UDP: -1}},
		"sessions: must be 1 to":           {MaxSessions: -1},
		"is forwarded twice": {Forwards: []nat.Forward{
			{Port: 1, To: hostA}, {Port: 1, To: hostB},
		}},
		"must lead from a port": {Forwards: []nat.Forward{{To: hostA}}},
		"unknown behavior":      {Mapping: 3},
	} {
		_, err := nat.New(cfg)
		require.ErrorIs(t, err, nat.ErrConfig)
		assert.Contains(t, err.Error(), want, fmt.Sprint(cfg))
	}
}

func TestTranslationDoesNotAllocate(t *testing.T) {
	n := open(t, nat.Config{})
	a, b := datagram(hostA, server), datagram(server, netip.AddrPortFrom(public, 5000))
	verdictOut(n, 1, a)
	now := clock.Time(1)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		now++
		verdictOut(n, now, a)
		verdictIn(n, now, b)
	}))
}

func BenchmarkOutbound(b *testing.B) {
	n, err := nat.New(nat.Config{Addr: public, Rand: rand.New(rand.NewPCG(1, 2))})
	require.NoError(b, err)
	p := datagram(hostA, server)
	now := clock.Time(1)
	for b.Loop() {
		now++
		m, v := n.Outbound(now, p)
		if v != nat.Translate {
			b.Fatal(v)
		}
		_ = m
	}
}

func addrAt(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b)) }
