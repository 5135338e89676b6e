package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// read reads one datagram from a socket as "source text".
func read(s *udp.Socket) string {
	p := make([]byte, 2000)
	r, ok := udp.Dequeue(s.Rx(), p)
	if !ok {
		return ""
	}
	return r.From.String() + " " + string(p[:r.Len])
}

func bindUDP(t *testing.T, s *stack.Stack, local string) *udp.Socket {
	t.Helper()
	u, err := s.Datagrams().Bind(netip.MustParseAddrPort(local))
	require.NoError(t, err)
	return u
}

func drops(s *stack.Stack, i int) map[string]uint64 {
	m := map[string]uint64{}
	f := s.Interfaces().Infos()[i]
	for _, d := range append(f.In.Drops, f.Out.Drops...) {
		m[d.Reason] += d.Packets
	}
	return m
}

func TestDatagramsInBothDirections(t *testing.T) {
	w, a, _, c := line(t)
	server := bindUDP(t, c, "0.0.0.0:53")
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:53"))
	require.NoError(t, err)
	assert.Equal(t, addr("10.0.0.1"), client.Local().Addr(), "RFC 1122 §4.1.3.5: the outgoing interface's address")
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, []byte("question")))
	w.run(time.Millisecond)
	assert.Equal(t, client.Local().String()+" question", read(server))
	require.NoError(t, c.Datagrams().Send(w.now, server, client.Local(), []byte("answer")))
	w.run(time.Millisecond)
	assert.Equal(t, "10.1.0.2:53 answer", read(client))
}

func TestDatagramsToTheNodeItself(t *testing.T) {
	w, a, _, _ := line(t)
	s := bindUDP(t, a, "0.0.0.0:53")
	require.NoError(t, a.Datagrams().Send(w.now, s, netip.MustParseAddrPort("10.0.0.1:53"), []byte("hello")))
	w.run(time.Millisecond)
	assert.Equal(t, "10.0.0.1:53 hello", read(s))
}

// RFC 1122 §4.1.3.1: a node answers a datagram to a port without a socket by a port unreachable
// message. RFC 1122 §3.2.2: it does not answer a broadcast.
func TestPortUnreachable(t *testing.T) {
	w, a, b, c := line(t)
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:53"))
	require.NoError(t, err)
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, []byte("anybody?")))
	w.run(time.Millisecond)
	s, ok := a.UDP().Next()
	require.True(t, ok)
	assert.Same(t, client, s)
	assert.ErrorIs(t, s.TakeError(), udp.ErrRefused)
	assert.Equal(t, map[string]uint64{"no udp socket": 1}, drops(c, 0))

	all := bindUDP(t, a, "0.0.0.0:0")
	all.SetOptions(udp.Options{Broadcast: true})
	require.NoError(t, a.Datagrams().Send(w.now, all, netip.MustParseAddrPort("10.0.0.255:53"), []byte("anybody?")))
	w.run(time.Millisecond)
	assert.Equal(t, map[string]uint64{"no udp socket": 1}, drops(b, 0))
	assert.Equal(t, uint64(1), b.Interfaces().Infos()[0].In.Packets-1, "b sends no error")
	_, ok = a.UDP().Next()
	assert.False(t, ok)
}

func TestTransientICMPErrorsAboutDatagrams(t *testing.T) {
	w, a, _, _ := line(t)
	// b has no route to the destination
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.7.0.2:53"))
	require.NoError(t, err)
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, []byte("anybody?")))
	w.run(time.Millisecond)
	require.NoError(t, client.TakeError())
	assert.Equal(t, uint64(1), client.Info().Errors)
}

func TestUDPSendErrors(t *testing.T) {
	w, a, _, _ := line(t)
	s := bindUDP(t, a, "0.0.0.0:53")
	to := netip.MustParseAddrPort("10.0.0.2:53")
	assert.ErrorIs(t, a.Datagrams().Send(w.now, s, netip.AddrPort{}, nil), stack.ErrNotConnected)
	s.SetOptions(udp.Options{DontFragment: true})
	assert.ErrorIs(t, a.Datagrams().Send(w.now, s, to, make([]byte, 1373)), stack.ErrTooBig)
	assert.ErrorIs(t, a.Datagrams().Send(w.now, s, to, make([]byte, 70_000)), stack.ErrTooBig)
	assert.NoError(t, a.Datagrams().Send(w.now, s, to, make([]byte, 1372)), "1400 with both headers")
	assert.ErrorIs(t, a.Datagrams().Send(w.now, s, netip.MustParseAddrPort("10.0.0.2:0"), nil), udp.ErrAddress)
	_, err := a.Datagrams().Bind(netip.MustParseAddrPort("10.0.0.9:53"))
	assert.ErrorIs(t, err, stack.ErrNotOurs)
	_, err = a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("0.0.0.0:53"))
	assert.ErrorIs(t, err, udp.ErrAddress)

	lone := w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "10.5.0.1/24")}})
	s = bindUDP(t, lone, "0.0.0.0:53")
	assert.ErrorIs(t, lone.Datagrams().Send(w.now, s, to, nil), stack.ErrNoRoute)
	_, err = lone.Datagrams().Dial(netip.AddrPort{}, to)
	assert.ErrorIs(t, err, stack.ErrNoRoute)
}

// When a link accepts no packets, the queue of UDP datagrams in the stack is bounded, and other
// packets still have room.
func TestDatagramQueueIsBounded(t *testing.T) {
	w, a, b, _ := line(t)
	s, far := bindUDP(t, a, "0.0.0.0:53"), bindUDP(t, b, "0.0.0.0:53")
	to := netip.MustParseAddrPort("10.0.0.2:53")
	n := 0
	for ; n < 1_000_000; n++ {
		if err := a.Datagrams().Send(w.now, s, to, make([]byte, 1000)); err != nil {
			assert.ErrorIs(t, err, stack.ErrQueueFull)
			break
		}
	}
	assert.InDelta(t, (1<<19)/1028, n, 2)
	assert.False(t, a.Datagrams().HasRoom())
	_, err := a.SendTest(w.now, to.Addr(), ip.ProtoTest, []byte("this matters"))
	assert.NoError(t, err)
	assert.Empty(t, drops(a, 0))
	w.run(time.Millisecond)
	assert.True(t, a.Datagrams().HasRoom())
	assert.Equal(t, uint64(256<<10/1016), far.Info().Received)
	assert.Equal(t, uint64(n)-far.Info().Received, drops(b, 0)["udp receive buffer full"])
}

func TestCorruptDatagramsAreCounted(t *testing.T) {
	w, a, _, _ := line(t)
	bindUDP(t, a, "0.0.0.0:53")
	src, dst := ip.V4(10, 0, 0, 2), ip.V4(10, 0, 0, 1)
	arrive := func(change func(b []byte)) {
		h := ip.Header{Protocol: ip.ProtoUDP, TTL: 9, Src: src, Dst: dst, TotalLen: 32}
		b := udp.Header{SrcPort: 9, DstPort: 53}.Append(h.Append(nil), src, dst, []byte("text"))
		change(b)
		input(a, w.now, frame(b))
	}
	arrive(func([]byte) {})
	arrive(func(b []byte) { b[30] ^= 1 })
	arrive(func(b []byte) { b[25] = 3 })
	assert.Equal(t, map[string]uint64{"bad udp checksum": 1, "bad udp header": 1}, drops(a, 0))
	w.run(time.Millisecond)
	assert.Zero(t, a.Interfaces().Infos()[0].Out.Packets, "RFC 1122 §4.1.3.4: silently")
}

func TestUDPSocketsAreListed(t *testing.T) {
	_, a, _, _ := line(t)
	s := bindUDP(t, a, "0.0.0.0:53")
	k := a.Sockets().AddUDP(s)
	list := a.Sockets().Infos(true, 1)
	require.Len(t, list, 1)
	assert.Equal(t, "UDP", list[0].State)
	assert.Equal(t, k, list[0].SID)
	assert.Equal(t, "0.0.0.0:53 0.0.0.0:0", list[0].Local.String()+" "+list[0].Remote.String())
}

// sends returns a function that sends a datagram of n bytes from a host to the edge of its link.
func sends(tb testing.TB, n int) (once func()) {
	tb.Helper()
	s, err := stack.New(1, stack.Config{Interfaces: []stack.Interface{
		{Name: "if0", Addr: netip.MustParsePrefix("10.0.0.1/24")},
	}})
	require.NoError(tb, err)
	u, err := s.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.2:53"))
	require.NoError(tb, err)
	batch, room, payload := buffer.NewBatch(), []int{0}, make([]byte, n)
	return func() {
		if s.Datagrams().Send(1, u, netip.AddrPort{}, payload) != nil {
			tb.Fatal("no room")
		}
		room[0] = 10
		s.Output(1, room, batch)
		if t := batch.Trains(); len(t) != 1 || t[0].Bytes != n+28 || !t[0].Checked {
			tb.Fatal("not sent")
		}
		batch.Reset()
	}
}

func TestSendingDatagramsDoesNotAllocate(t *testing.T) {
	for _, n := range []int{0, 50, 1300} {
		once := sends(t, n)
		assert.Zero(t, testing.AllocsPerRun(100, once), "%d bytes", n)
	}
}

// BenchmarkSendUDP measures a datagram's path from its socket to the link.
func BenchmarkSendUDP(b *testing.B) {
	once := sends(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}
