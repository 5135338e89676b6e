package stack_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// internetOf is A behind the NAT of R1, B behind the NAT of R2, a router X between R1 and R2, and a
// server S at X with two addresses, 10.5.0.2 and 10.6.0.2. With a carrier, a second NAT is between
// R1 and X.
type internetOf struct {
	*world
	a, b, s  *stack.Stack
	sockets  [2][2]*udp.Socket
	answerer nat.Reflector
}

func newInternet(t *testing.T, r1, r2 nat.Config, carrier *nat.Config) *internetOf {
	t.Helper()
	w := newWorld(t)
	n := &internetOf{world: w}
	host := func(own, router string) *stack.Stack {
		return w.add(stack.Config{
			Interfaces: []stack.Interface{face("if0", own)},
			Routes:     []stack.Route{route("0.0.0.0/0", router)},
		})
	}
	router := func(cfg *nat.Config, inside, outside, via string) {
		out := face("if1", outside)
		out.NAT = cfg
		w.add(stack.Config{
			Interfaces: []stack.Interface{face("if0", inside), out}, Forwarding: true,
			Routes: []stack.Route{route("0.0.0.0/0", via)},
		})
	}
	n.a, n.b = host("10.1.0.1/24", "10.1.0.2"), host("10.4.0.1/24", "10.4.0.2")
	router(&r1, "10.1.0.2/24", "10.2.0.1/24", "10.2.0.2")
	router(&r2, "10.4.0.2/24", "10.3.0.1/24", "10.3.0.2")
	toA := "10.2.0.2/24"
	if carrier != nil {
		toA = "10.7.0.2/24"
	}
	w.add(stack.Config{Interfaces: []stack.Interface{
		face("if0", toA), face("if1", "10.3.0.2/24"), face("if2", "10.5.0.1/24"),
		face("if3", "10.6.0.1/24"),
	}, Forwarding: true})
	n.s = w.add(stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.5.0.2/24"), face("if1", "10.6.0.2/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.5.0.1")},
	})
	w.wire(end{0, 0}, end{2, 0})
	w.wire(end{1, 0}, end{3, 0})
	w.wire(end{3, 1}, end{4, 1})
	w.wire(end{4, 2}, end{5, 0})
	w.wire(end{4, 3}, end{5, 1})
	if carrier == nil {
		w.wire(end{2, 1}, end{4, 0})
	} else {
		router(carrier, "10.2.0.2/24", "10.7.0.1/24", "10.7.0.2")
		w.wire(end{2, 1}, end{6, 0})
		w.wire(end{6, 1}, end{4, 0})
	}
	n.answerer = nat.Reflector{
		Addrs: [2]netip.Addr{addr("10.5.0.2"), addr("10.6.0.2")}, Ports: [2]uint16{3478, 3479},
	}
	for i, a := range n.answerer.Addrs {
		for k, port := range n.answerer.Ports {
			n.sockets[i][k] = bindUDP(t, n.s, netip.AddrPortFrom(a, port).String())
		}
	}
	return n
}

// answer processes the requests that have arrived at the server.
func (n *internetOf) answer() {
	p := make([]byte, 2000)
	for i := range n.sockets {
		for k, s := range n.sockets[i] {
			for r, ok := udp.Dequeue(s.Rx(), p); ok; r, ok = udp.Dequeue(s.Rx(), p) {
				if b, a, port, ok := n.answerer.Answer(p[:r.Len], r.From, i, k); ok {
					_ = n.s.Datagrams().Send(n.now, n.sockets[a][port], r.From, b)
				}
			}
		}
	}
}

// probe runs a probe at a host.
func (n *internetOf) probe(h *stack.Stack) nat.Found {
	n.t.Helper()
	sockets := [2]*udp.Socket{bindUDP(n.t, h, "0.0.0.0:0"), bindUDP(n.t, h, "0.0.0.0:0")}
	p := nat.NewProbe(netip.MustParseAddrPort("10.5.0.2:3478"), rand.New(rand.NewPCG(3, 4)))
	b := make([]byte, 2000)
	for range 10_000 {
		if found, done := p.Done(); done {
			return found
		}
		if m, to, i, ok := p.Output(n.now); ok {
			require.NoError(n.t, h.Datagrams().Send(n.now, sockets[i], to, m))
		}
		n.run(time.Millisecond)
		n.answer()
		for _, u := range sockets {
			for r, ok := udp.Dequeue(u.Rx(), b); ok; r, ok = udp.Dequeue(u.Rx(), b) {
				p.Input(b[:r.Len])
			}
		}
		p.Advance(n.now)
	}
	n.t.Fatal("the probe does not end")
	return nat.Found{}
}

// RFC 5780 §4.3, §4.4: the probe identifies each kind of NAT.
func TestRFC5780_4_TheProbeSeesWhatANATDoes(t *testing.T) {
	for mapping := range nat.Behavior(3) {
		for filtering := range nat.Behavior(3) {
			n := newInternet(t, nat.Config{Mapping: mapping, Filtering: filtering}, nat.Config{}, nil)
			found := n.probe(n.a)
			assert.Equal(t, addr("10.2.0.1"), found.Outside.Addr())
			assert.Equal(t, mapping, found.Mapping)
			assert.Equal(t, filtering, found.Filtering)
			assert.False(t, found.Failed)
		}
	}
}

func TestTwoNATsInSeries(t *testing.T) {
	n := newInternet(t, nat.Config{Filtering: nat.AddressPortDependent}, nat.Config{},
		&nat.Config{Mapping: nat.AddressDependent})
	found := n.probe(n.a)
	assert.Equal(t, addr("10.7.0.1"), found.Outside.Addr())
	assert.Equal(t, nat.AddressDependent, found.Mapping)
	assert.Equal(t, nat.AddressPortDependent, found.Filtering)
}

func TestProbeWithoutAServer(t *testing.T) {
	n := newInternet(t, nat.Config{}, nat.Config{}, nil)
	n.answerer.Addrs[1] = n.answerer.Addrs[0]
	found := n.probe(n.a)
	assert.True(t, found.Single)
	n.s.SetUp(n.now, 0, false)
	assert.True(t, n.probe(n.a).Failed)
}

// TestUDPHolePunching checks hole punching between two hosts. They learn their outside endpoints
// from the server, and each sends to the other's (RFC 5128 §3.3). It must fail only if both
// mappings depend on the remote host, or if one does and the other side's filter checks ports.
func TestUDPHolePunching(t *testing.T) {
	kinds := []nat.Config{
		{},
		{Filtering: nat.AddressDependent},
		{Filtering: nat.AddressPortDependent},
		{Mapping: nat.AddressDependent, Filtering: nat.AddressDependent},
		{Mapping: nat.AddressPortDependent, Filtering: nat.AddressPortDependent},
	}
	for i, r1 := range kinds {
		for k, r2 := range kinds {
			blocks := func(mapped, filters nat.Config) bool {
				return mapped.Mapping != nat.EndpointIndependent &&
					filters.Filtering == nat.AddressPortDependent
			}
			want := !blocks(r1, r2) && !blocks(r2, r1)
			if r1.Mapping != nat.EndpointIndependent && r2.Mapping != nat.EndpointIndependent {
				want = false // neither side knows the port to send to
			}
			got := newInternet(t, r1, r2, nil).holePunch()
			assert.Equal(t, want, got, fmt.Sprint(i, k, r1.Mapping, r1.Filtering, r2.Mapping,
				r2.Filtering))
		}
	}
}

// holePunch reports whether A and B reach each other in both directions.
func (n *internetOf) holePunch() bool {
	n.t.Helper()
	server := n.sockets[0][0]
	hosts := []*stack.Stack{n.a, n.b}
	var sockets []*udp.Socket
	var peers []netip.AddrPort
	p := make([]byte, 2000)
	for _, h := range hosts {
		u := bindUDP(n.t, h, "0.0.0.0:0")
		sockets = append(sockets, u)
		require.NoError(n.t, h.Datagrams().Send(n.now, u, server.Local(),
			[]byte("report my address")))
		n.run(10 * time.Millisecond)
		r, ok := udp.Dequeue(server.Rx(), p)
		require.True(n.t, ok)
		peers = append(peers, r.From)
	}
	peers[0], peers[1] = peers[1], peers[0]
	heard := [2]bool{}
	for range 10 {
		for i, h := range hosts {
			_ = sockets[i].TakeError() // ignores a port unreachable that the other NAT sent
			_ = h.Datagrams().Send(n.now, sockets[i], peers[i], []byte("hello"))
		}
		n.run(10 * time.Millisecond)
		for i := range hosts {
			for r, ok := udp.Dequeue(sockets[i].Rx(), p); ok; r, ok = udp.Dequeue(sockets[i].Rx(), p) {
				heard[i] = true
				peers[i] = r.From // the endpoint from which the other host really sends
			}
		}
	}
	return heard[0] && heard[1]
}
