package udp_test

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/udp"
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func newHost(recvBuffer int) *udp.Host {
	return udp.NewHost(udp.Config{Rand: rand.New(rand.NewPCG(1, 1)), RecvBuffer: recvBuffer})
}

func bind(t *testing.T, h *udp.Host, local string) *udp.Socket {
	t.Helper()
	s, err := h.Bind(at(local))
	require.NoError(t, err)
	return s
}

// send delivers a datagram to the host.
func send(h *udp.Host, from, to, text string) udp.Verdict {
	src, dst := at(from).Addr(), at(to).Addr()
	header := udp.Header{SrcPort: at(from).Port(), DstPort: at(to).Port()}
	return h.Input(udp.Arrival{Src: src, Dst: dst}, header.Append(nil, src, dst, []byte(text)))
}

// take reads one datagram as "source text".
func take(s *udp.Socket) string {
	p := make([]byte, 2000)
	r, ok := udp.Dequeue(s.Rx(), p)
	if !ok {
		return ""
	}
	return r.From.String() + " " + string(p[:r.Len])
}

func TestDatagramFindsItsSocket(t *testing.T) {
	h := newHost(0)
	all, one := bind(t, h, "0.0.0.0:53"), bind(t, h, "10.0.0.2:7")
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:9", "10.0.0.2:53", "to one"))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:9", "10.0.0.255:53", "to all"))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:0", "10.0.0.2:7", "RFC 768: no source port"))
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:9", "10.0.0.3:7", "another address"))
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:9", "10.0.0.2:8", "another port"))
	assert.Equal(t, "10.0.0.1:9 to one", take(all))
	assert.Equal(t, "10.0.0.1:9 to all", take(all))
	assert.Equal(t, "10.0.0.1:0 RFC 768: no source port", take(one))
	assert.Empty(t, take(all))
	assert.Equal(t, udp.Info{Received: 2, ReceivedBytes: 12}, all.Info())

	one.Close()
	one.Close()
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:9", "10.0.0.2:7", "closed"))
}

// RFC 1122 §3.2.1.3, §4.1.3.6: datagrams with invalid source addresses are dropped, with one
// exception.
func TestSourcesOfDatagrams(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "0.0.0.0:67")
	for _, no := range []string{
		"0.0.0.0:68", "0.0.0.9:68", "127.0.0.1:68", "224.0.0.1:68", "240.0.0.1:68",
		"255.255.255.255:68",
	} {
		assert.Equal(t, udp.BadSource, send(h, no, "10.0.0.2:67", ""), no)
	}
	assert.Equal(t, udp.Delivered, send(h, "0.0.0.0:68", "255.255.255.255:67", "who am I?"))
	assert.Equal(t, "0.0.0.0:68 who am I?", take(s))
}

// RFC 768 has no port 0: no socket can be bound to it, and datagrams to it find no socket.
func TestPortZero(t *testing.T) {
	h := newHost(0)
	assert.NotZero(t, bind(t, h, "0.0.0.0:0").Local().Port(), "one is chosen")
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:9", "10.0.0.2:0", ""))
}

func TestConnectedSocketReceivesOnlyFromItsPeer(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "0.0.0.0:53")
	require.NoError(t, s.Connect(at("10.0.0.1:9")))
	assert.Equal(t, at("10.0.0.1:9"), s.Remote())
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.1:8", "10.0.0.2:53", "another port"))
	assert.Equal(t, udp.NoPort, send(h, "10.0.0.3:9", "10.0.0.2:53", "another host"))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:9", "10.0.0.2:53", "the peer"))
	require.NoError(t, s.Connect(netip.AddrPort{}))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.3:9", "10.0.0.2:53", "anybody"))
	for _, to := range []string{"0.0.0.0:9", "10.0.0.1:0", "[::1]:9"} {
		assert.ErrorIs(t, s.Connect(at(to)), udp.ErrAddress, to)
	}
}

// errFar is a report about a host.
var errFar = errors.New("far away")

// RFC 1122 §4.1.3.3: ICMP errors reach the application.
func TestICMPErrorsReachConnectedSockets(t *testing.T) {
	h := newHost(0)
	s, other := bind(t, h, "10.0.0.2:53"), bind(t, h, "0.0.0.0:54")
	h.Report(at("10.0.0.2:53"), at("10.0.0.1:9"), udp.ErrRefused)
	assert.NoError(t, s.TakeError(), "not connected")
	require.NoError(t, s.Connect(at("10.0.0.1:9")))
	require.NoError(t, other.Connect(at("10.0.0.1:9")))
	h.Report(at("10.0.0.2:53"), at("10.0.0.1:10"), udp.ErrRefused)
	assert.NoError(t, s.TakeError(), "about another's datagram")
	h.Report(at("10.0.0.2:53"), at("10.0.0.1:9"), udp.ErrRefused)
	h.Report(at("10.0.0.2:54"), at("10.0.0.1:9"), errFar)
	h.Report(at("10.0.0.2:55"), at("10.0.0.1:9"), errFar)

	news := map[*udp.Socket]bool{}
	for {
		s, ok := h.Next()
		if !ok {
			break
		}
		assert.False(t, news[s], "once each")
		news[s] = true
	}
	assert.Equal(t, map[*udp.Socket]bool{s: true, other: true}, news)
	assert.ErrorIs(t, s.TakeError(), udp.ErrRefused)
	assert.NoError(t, s.TakeError(), "once")
	assert.ErrorIs(t, other.TakeError(), errFar)
	h.Report(at("10.0.0.2:53"), at("10.0.0.1:9"), nil)
	_, ok := h.Next()
	assert.False(t, ok, "counted alone")
	assert.Equal(t, uint64(2), s.Info().Errors)
}

func TestPortInUse(t *testing.T) {
	h := newHost(0)
	one := bind(t, h, "10.0.0.2:53")
	bind(t, h, "10.0.0.3:53")
	all := bind(t, h, "0.0.0.0:54")
	for _, taken := range []string{"10.0.0.2:53", "0.0.0.0:53", "10.0.0.2:54", "0.0.0.0:54"} {
		_, err := h.Bind(at(taken))
		assert.ErrorIs(t, err, udp.ErrPortInUse, taken)
	}
	one.Close()
	bind(t, h, "10.0.0.2:53")
	all.Close()
	bind(t, h, "0.0.0.0:54")
	_, err := h.Bind(netip.AddrPort{})
	assert.ErrorIs(t, err, udp.ErrAddress)
}

// RFC 6056 §3.3.1: ephemeral ports are unpredictable, and every free one can be found. RFC 6335 §6:
// all are dynamic ports, from 49152.
func TestEphemeralPorts(t *testing.T) {
	h := newHost(0)
	const ports = 65536 - 49152
	seen := map[uint16]bool{}
	inRow, last := 0, uint16(0)
	for range ports {
		s := bind(t, h, "0.0.0.0:0")
		p := s.Local().Port()
		require.GreaterOrEqual(t, p, uint16(49152))
		require.False(t, seen[p], "port %d twice", p)
		seen[p] = true
		if len(seen) < 1000 && p == last+1 {
			inRow++
		}
		last = p
	}
	assert.Less(t, inRow, 100, "of the first thousand")
	_, err := h.Bind(at("10.0.0.2:0"))
	assert.ErrorIs(t, err, udp.ErrNoPorts)
}

func TestReceiveBufferIsBounded(t *testing.T) {
	h := newHost(8192)
	s := bind(t, h, "10.0.0.2:53")
	tiny := 0
	for send(h, "10.0.0.1:9", "10.0.0.2:53", "") == udp.Delivered {
		tiny++
	}
	assert.Equal(t, 8192/256, tiny, "an empty datagram counts, too")
	assert.Equal(t, uint64(1), s.Info().Dropped)
	for range tiny {
		assert.Equal(t, "10.0.0.1:9 ", take(s))
	}
	large := string(make([]byte, 1000))
	n := 0
	for send(h, "10.0.0.1:9", "10.0.0.2:53", large) == udp.Delivered {
		n++
	}
	assert.Equal(t, 8192/1016, n)
	assert.Equal(t, udp.Full, send(h, "10.0.0.1:9", "10.0.0.2:53", large))
	assert.Equal(t, "10.0.0.1:9 "+large, take(s))
	assert.Equal(t, udp.Delivered, send(h, "10.0.0.1:9", "10.0.0.2:53", large), "room again")
}

func TestDatagramIsTruncatedToTheReadersBuffer(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "10.0.0.2:53")
	send(h, "10.0.0.1:9", "10.0.0.2:53", "a long one")
	send(h, "10.0.0.1:9", "10.0.0.2:53", "next")
	p := make([]byte, 6)
	r, ok := udp.Dequeue(s.Rx(), p)
	require.True(t, ok)
	assert.Equal(t, "a long", string(p))
	assert.Equal(t, udp.Received{From: at("10.0.0.1:9"), To: at("10.0.0.2:1").Addr(), Len: 10}, r)
	assert.Equal(t, "10.0.0.1:9 next", take(s), "the rest of the first is lost")
}

// Datagrams of every size pass through the ring many times its size, so records and padding meet
// every boundary of its storage.
func TestQueueKeepsDatagramsWhole(t *testing.T) {
	h := newHost(300 << 10)
	s := bind(t, h, "10.0.0.2:53")
	rng := rand.New(rand.NewPCG(3, 4))
	var want []string
	for i := range 20_000 {
		b := make([]byte, rng.IntN(3)*rng.IntN(1400))
		for k := range b {
			b[k] = byte(i + k)
		}
		if send(h, "10.0.0.1:9", "10.0.0.2:53", string(b)) == udp.Delivered {
			want = append(want, "10.0.0.1:9 "+string(b))
		}
		for len(want) > 0 && rng.IntN(3) == 0 {
			p := make([]byte, 3000)
			r, ok := udp.Dequeue(s.Rx(), p)
			require.True(t, ok)
			require.Equal(t, want[0], r.From.String()+" "+string(p[:r.Len]))
			want = want[1:]
		}
	}
}

func TestBadDatagrams(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "0.0.0.0:53")
	good := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, hostA, hostB, []byte("text"))
	assert.Equal(t, udp.BadHeader, h.Input(udp.Arrival{Src: hostA, Dst: hostB}, good[:7]))
	// RFC 1122 §4.1.3.4: a datagram with a wrong checksum is discarded silently.
	damaged := append([]byte(nil), good...)
	damaged[9] ^= 4
	assert.Equal(t, udp.BadChecksum, h.Input(udp.Arrival{Src: hostA, Dst: hostB}, damaged))
	// RFC 1122 §4.1.3.6: a datagram with an invalid source address is also discarded.
	for _, src := range []string{"224.0.0.1:9", "255.255.255.255:9", "127.0.0.1:9", "0.0.0.0:9"} {
		assert.Equal(t, udp.BadSource, send(h, src, "10.0.0.2:53", "x"), src)
	}
	assert.Equal(t, udp.Info{}, s.Info())
	_, ok := h.Next()
	assert.False(t, ok)
}

func TestReceivingAllocatesNothing(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "10.0.0.2:53")
	b := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, hostA, hostB, make([]byte, 1000))
	p := make([]byte, 2000)
	for range 1000 { // the ring has allocated its chunks by now
		h.Input(udp.Arrival{Src: hostA, Dst: hostB}, b)
		udp.Dequeue(s.Rx(), p)
		h.Next()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		h.Input(udp.Arrival{Src: hostA, Dst: hostB}, b)
		udp.Dequeue(s.Rx(), p)
		h.Next()
	}))
}

// A datagram that the link has already verified is not verified again, and its receiver can see
// that.
func TestCheckedDatagramIsNotVerified(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "0.0.0.0:53")
	src, dst := hostA, hostB
	b := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, src, dst, []byte("text"))
	b[7] ^= 1
	a := udp.Arrival{Src: src, Dst: dst}
	require.Equal(t, udp.BadChecksum, h.Input(a, b))
	a.Checked = true
	require.Equal(t, udp.Delivered, h.Input(a, b))
	b[7] ^= 1
	a.Checked = false
	require.Equal(t, udp.Delivered, h.Input(a, b))
	for _, want := range []bool{true, false} {
		r, ok := udp.Dequeue(s.Rx(), make([]byte, 10))
		require.True(t, ok)
		assert.Equal(t, want, r.Checked)
	}
}
