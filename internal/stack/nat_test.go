package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// natNetwork is A (10.0.0.1) and B (10.2.0.1) behind a router with a NAT, whose outside address is
// 10.1.0.1, and a server C (10.1.0.2) outside.
func natNetwork(t *testing.T, cfg nat.Config) (w *world, a, b, r, c *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	outside := face("if1", "10.1.0.1/24")
	outside.NAT = &cfg
	host := func(own, router string) *stack.Stack {
		return w.add(stack.Config{
			Interfaces: []stack.Interface{face("if0", own)},
			Routes:     []stack.Route{route("0.0.0.0/0", router)}, TCP: courseTCP,
		})
	}
	a, b = host("10.0.0.1/24", "10.0.0.2"), host("10.2.0.1/24", "10.2.0.2")
	r = w.add(stack.Config{
		Interfaces: []stack.Interface{
			face("if0", "10.0.0.2/24"), outside, face("if2", "10.2.0.2/24"),
		},
		Forwarding: true,
	})
	// C does not know the networks behind the NAT.
	c = w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "10.1.0.2/24")}, TCP: courseTCP})
	w.wire(end{0, 0}, end{2, 0})
	w.wire(end{1, 0}, end{2, 2})
	w.wire(end{2, 1}, end{3, 0})
	return w, a, b, r, c
}

func send(t *testing.T, w *world, s *stack.Stack, u *udp.Socket, to, text string) {
	t.Helper()
	require.NoError(t, s.Datagrams().Send(w.now, u, netip.MustParseAddrPort(to), []byte(text)))
	w.run(5 * time.Millisecond)
}

func TestDatagramsPassANAT(t *testing.T) {
	w, a, b, r, c := natNetwork(t, nat.Config{})
	server := bindUDP(t, c, "0.0.0.0:53")
	ua, ub := bindUDP(t, a, "0.0.0.0:5000"), bindUDP(t, b, "0.0.0.0:5000")
	for range 3 { // the first needs full processing, and the others use their flow's decision
		send(t, w, a, ua, "10.1.0.2:53", "a")
		assert.Equal(t, "10.1.0.1:5000 a", read(server))
		send(t, w, c, server, "10.1.0.1:5000", "to a")
		assert.Equal(t, "10.1.0.2:53 to a", read(ua))
	}
	send(t, w, b, ub, "10.1.0.2:53", "b")
	from, _, _ := cutText(read(server))
	assert.NotEqual(t, "10.1.0.1:5000", from)
	send(t, w, c, server, from, "to b")
	assert.Equal(t, "10.1.0.2:53 to b", read(ub))
	send(t, w, c, server, "10.1.0.1:5000", "to a")
	assert.Equal(t, "10.1.0.2:53 to a", read(ua),
		"after another host's packets to the same remote address")
	info := r.Interfaces().NAT(1).Info()
	assert.EqualValues(t, 4, info.Outbound)
	assert.EqualValues(t, 5, info.Inbound)
	for i := range 3 {
		assert.Empty(t, drops(r, i))
	}
}

func cutText(s string) (from, text string, ok bool) {
	for i := range s {
		if s[i] == ' ' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func TestConnectionThroughANAT(t *testing.T) {
	w, a, _, r, c := natNetwork(t, nat.Config{})
	w.loss = 0.02
	s := newStream(w, a, c, netip.MustParseAddrPort("10.1.0.2:80"), 1<<20)
	assert.Equal(t, addr("10.1.0.1"), s.server.Tuple().RemoteAddr)
	until := w.now.Add(time.Minute)
	for !s.pump() {
		require.True(t, w.step(until))
	}
	list := r.Interfaces().NAT(1).Sessions(w.now, 10)
	require.Len(t, list, 1)
	assert.Equal(t, "open", list[0].State)
	assert.Equal(t, s.server.Tuple().Remote(), list[0].Outside)
	assert.Equal(t, s.client.Tuple().Local(), list[0].Inside)
}

func TestPortForwardToAnInsideHost(t *testing.T) {
	to := netip.MustParseAddrPort("10.0.0.1:80")
	w, a, _, _, c := natNetwork(t, nat.Config{
		Filtering: nat.AddressPortDependent,
		Forwards:  []nat.Forward{{TCP: true, Port: 8080, To: to}},
	})
	l, err := a.TCP().Listen(to, 8)
	require.NoError(t, err)
	_, err = c.TCP().Connect(w.now, netip.MustParseAddrPort("10.1.0.1:8080"), 0)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	conn, ok := l.Accept()
	require.True(t, ok)
	assert.Equal(t, addr("10.1.0.2"), conn.Tuple().RemoteAddr, "the client's own address")
}

func TestPingAndTracerouteThroughANAT(t *testing.T) {
	w, a, b, r, c := natNetwork(t, nat.Config{})
	p, q := newPinger(t, a), newPinger(t, b)
	for seq := range uint16(2) {
		require.NoError(t, p.send(w.now, "10.1.0.2", seq, 56, 0))
		require.NoError(t, q.send(w.now, "10.1.0.2", seq, 56, 0)) // uses the same identifier
		w.run(10 * time.Millisecond)
	}
	for _, list := range [][]echo{p.take(), q.take()} {
		require.Len(t, list, 2)
		assert.Equal(t, icmp.TypeEchoReply, list[0].Type)
	}
	require.NoError(t, p.send(w.now, "10.1.0.2", 1, 56, 1))
	u, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:9"))
	require.NoError(t, err)
	require.NoError(t, a.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("x")))
	w.run(10 * time.Millisecond)
	assert.ErrorIs(t, u.TakeError(), udp.ErrRefused, "RFC 5508 §4.2.1: a port unreachable of C")
	expired := p.take()
	require.NotEmpty(t, expired)
	assert.Equal(t, icmp.TypeTimeExceeded, expired[0].Type)
	assert.Equal(t, addr("10.0.0.2"), expired[0].From)
	assert.Equal(t, map[string]uint64{"ttl exceeded": 1}, drops(r, 0))

	// The router's own packets are not translated, and outside nodes can ping it.
	out, back := newPinger(t, r), newPinger(t, c)
	require.NoError(t, out.send(w.now, "10.1.0.2", 1, 56, 0))
	require.NoError(t, back.send(w.now, "10.1.0.1", 1, 56, 0))
	w.run(10 * time.Millisecond)
	assert.Len(t, out.take(), 1)
	assert.Len(t, back.take(), 1)
}

// RFC 4787 §6: inside hosts reach each other by their outside addresses.
func TestRFC4787_6_HairpinsBetweenInsideHosts(t *testing.T) {
	w, a, b, _, c := natNetwork(t, nat.Config{})
	bindUDP(t, c, "0.0.0.0:53")
	ua, ub := bindUDP(t, a, "0.0.0.0:5000"), bindUDP(t, b, "0.0.0.0:6000")
	send(t, w, a, ua, "10.1.0.2:53", "open")
	send(t, w, b, ub, "10.1.0.2:53", "open")
	for range 2 {
		send(t, w, a, ua, "10.1.0.1:6000", "hello")
		assert.Equal(t, "10.1.0.1:5000 hello", read(ub))
		send(t, w, b, ub, "10.1.0.1:5000", "welcome")
		assert.Equal(t, "10.1.0.1:6000 welcome", read(ua))
	}
}

// RFC 4787 §10, §11: fragments of both directions pass, also out of order.
func TestRFC4787_11_FragmentsPassANAT(t *testing.T) {
	w, a, _, r, c := natNetwork(t, nat.Config{})
	server, ua := bindUDP(t, c, "0.0.0.0:53"), bindUDP(t, a, "0.0.0.0:5000")
	long := make([]byte, 1900)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	send(t, w, a, ua, "10.1.0.2:53", string(long))
	assert.Equal(t, "10.1.0.1:5000 "+string(long), read(server))
	send(t, w, c, server, "10.1.0.1:5000", string(long))
	assert.Equal(t, "10.1.0.2:53 "+string(long), read(ua))
	assert.EqualValues(t, 1, r.Interfaces().NAT(1).Info().Outbound)
}

// RFC 6864 §5.3.1: the NAT chooses identifications that are unique for the outside address.
func TestRFC6864_5_3_1_NATChoosesIdentifications(t *testing.T) {
	w, a, b, _, c := natNetwork(t, nat.Config{})
	server := bindUDP(t, c, "0.0.0.0:53")
	seen := map[uint16]int{}
	w.mangle = func(p []byte) {
		if p[19] == 2 && p[13] == 1 && p[6]&0x40 == 0 {
			seen[uint16(p[4])<<8|uint16(p[5])]++
		}
	}
	ua, ub := bindUDP(t, a, "0.0.0.0:5000"), bindUDP(t, b, "0.0.0.0:5000")
	for range 50 {
		send(t, w, a, ua, "10.1.0.2:53", "a")
		send(t, w, b, ub, "10.1.0.2:53", "b")
	}
	assert.NotEmpty(t, read(server))
	for id, n := range seen {
		assert.Equal(t, 1, n, id)
	}
}

// RFC 5508 §6: the router sends an ICMP error to a host whose packets the NAT refuses.
func TestRFC5508_6_AFullTableIsReported(t *testing.T) {
	w, a, _, r, c := natNetwork(t, nat.Config{MaxPerHost: 1})
	bindUDP(t, c, "0.0.0.0:53")
	ua := bindUDP(t, a, "0.0.0.0:5000")
	send(t, w, a, ua, "10.1.0.2:53", "first")
	p := newPinger(t, a)
	require.NoError(t, p.send(w.now, "10.1.0.2", 1, 56, 0))
	w.run(10 * time.Millisecond)
	got := p.take()
	require.Len(t, got, 1)
	assert.Equal(t, icmp.TypeUnreachable, got[0].Type)
	assert.Equal(t, icmp.CodeAdminProhibited, got[0].Code)
	assert.Equal(t, map[string]uint64{"nat host limit": 1}, drops(r, 1))
	w.run(5 * time.Minute)
	require.NoError(t, p.send(w.now, "10.1.0.2", 2, 56, 0))
	w.run(10 * time.Millisecond)
	assert.Equal(t, icmp.TypeEchoReply, p.take()[0].Type, "the session has timed out")
}

func TestPacketsFromOutsideMustBeTranslated(t *testing.T) {
	w, a, _, r, c := natNetwork(t, nat.Config{})
	require.NoError(t, c.Routing().Add(w.now, route("10.0.0.0/8", "10.1.0.1")))
	p := newPinger(t, c)
	require.NoError(t, p.send(w.now, "10.0.0.1", 1, 56, 0))
	w.run(10 * time.Millisecond)
	assert.Empty(t, p.take())
	assert.Equal(t, map[string]uint64{"no nat mapping": 1}, drops(r, 1))
	_, err := a.SendTest(w.now, addr("10.1.0.2"), ip.ProtoTest, []byte("x"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	assert.Equal(t, 1, int(drops(r, 1)["not translatable by nat"]))
	require.NoError(t, r.SetNAT(1, nil))
	require.NoError(t, p.send(w.now, "10.0.0.1", 1, 56, 0))
	w.run(10 * time.Millisecond)
	assert.Len(t, p.take(), 1, "the node is a router again")
}

// RFC 5382 §4.3: a SYN to a port without a mapping is refused after 6 s.
func TestRFC5382_4_3_ASYNFromOutsideIsRefusedLate(t *testing.T) {
	w, _, _, r, c := natNetwork(t, nat.Config{})
	_, err := c.TCP().Connect(w.now, netip.MustParseAddrPort("10.1.0.1:99"), 0)
	require.NoError(t, err)
	var reported time.Duration
	w.mangle = func(p []byte) {
		if p[9] == ip.ProtoICMP && reported == 0 {
			reported = w.now.Sub(1)
			assert.Equal(t, icmp.CodePort, p[21])
		}
	}
	w.run(10 * time.Second)
	assert.InDelta(t, 6*time.Second, reported, float64(10*time.Millisecond))
	assert.NotZero(t, drops(r, 1)["no nat mapping"])
	require.ErrorContains(t, r.SetNAT(1, &nat.Config{MaxSessions: -1}), "if1")
}

// BenchmarkForwardNAT forwards 32 full packets of one connection, without and with a NAT.
func BenchmarkForwardNAT(b *testing.B) {
	for name, cfg := range map[string]*nat.Config{"plain": nil, "nat": {}} {
		b.Run(name, func(b *testing.B) {
			outside := face("if1", "10.1.0.1/24")
			outside.NAT = cfg
			s, err := stack.New(1, stack.Config{
				Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), outside}, Forwarding: true,
			})
			require.NoError(b, err)
			h := ip.Header{
				TTL: 64, Protocol: ip.ProtoTCP, DF: true, TotalLen: 1400,
				Src: addr("10.0.0.1"), Dst: addr("10.1.0.2"),
			}
			one := make([]byte, 1400)
			copy(one, h.Append(nil))
			one[32] = 5 << 4
			packets := make([][]byte, 32)
			for i := range packets {
				packets[i] = make([]byte, 1400)
			}
			batch := buffer.NewBatch()
			b.SetBytes(32 * 1400)
			for b.Loop() {
				for _, p := range packets {
					copy(p[:40], one)
				}
				s.Input(1, 0, true, packets)
				for s.Output(1, []int{64, 64}, batch) {
					batch.Reset()
				}
				batch.Reset()
			}
		})
	}
}
