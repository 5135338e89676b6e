package stack_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// fuzzHost is a host with neighbor discovery on all interfaces: if0 configures itself, if1 has addresses,
// and if2 advertises its own.
type fuzzHost struct {
	*stack.Stack
	now   clock.Time
	sent  uint64
	batch *buffer.Batch
}

func newFuzzHost(t require.TestingT) *fuzzHost {
	known, own := dual("if1", "10.1.0.1/24", "2001:db8:1::1/64"), dual("if2", "10.2.0.1/24", "2001:db8:2::1/64")
	known.Discovery, own.Discovery = &stack.Discovery{}, &stack.Discovery{Advertise: true}
	own.MTU = 1280
	s, err := stack.New(1, stack.Config{Interfaces: []stack.Interface{auto("if0"), known, own}})
	require.NoError(t, err)
	u, err := s.Datagrams().Bind(netip.MustParseAddrPort("[::]:53"))
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, s.Datagrams().Join(u, i, addr("ff05::1234")))
	}
	_, err = s.ListenTCP(netip.MustParseAddrPort("[::]:80"), 4)
	require.NoError(t, err)
	h := &fuzzHost{Stack: s, now: 1, batch: buffer.NewBatch()}
	h.wait(t, settled)
	return h
}

// wait advances the time. It fails if the work at one instant does not end.
func (h *fuzzHost) wait(t require.TestingT, d time.Duration) {
	end := h.now.Add(d)
	for steps := 0; h.Deadline().Due(end); steps++ {
		require.Less(t, steps, 10_000, "due at %v, %v before the end", h.Deadline(), end.Sub(h.Deadline()))
		h.now = max(h.now, h.Deadline())
		h.Advance(h.now)
		h.sent += drainAll(h.Stack, h.now, h.batch)
	}
	h.now = end
}

// hear gives the host a packet, after a pause that depends on the packet.
func (h *fuzzHost) hear(t require.TestingT, b []byte, iface, how byte) {
	i := int(iface&3) % 3
	b = slices.Clone(b[:min(len(b), 2000)])
	if how&8 == 0 && len(b) >= ip.HeaderLen6 {
		copy(b[8:], []netip.Addr{
			addr("fe80::a"), addr("fe80::b"), addr("::"), addr("2001:db8:1::2"),
		}[b[23]&3].AsSlice())
		to := []netip.Addr{addr("ff02::1")}
		for _, p := range h.Interfaces().Infos()[i].IPv6 {
			to = append(to, p.Addr(), icmp.SolicitedNode(p.Addr()))
		}
		copy(b[24:], to[int(b[39])%len(to)].AsSlice())
	}
	input(h.Stack, h.now, buffer.Frame{Data: fixed6(b, how), Size: max(1, len(b)), Iface: i})
	h.sent += drainAll(h.Stack, h.now, h.batch)
	h.wait(t, []time.Duration{time.Millisecond, time.Millisecond, time.Second, 20 * time.Minute}[iface>>6])
	h.Events()
}

// bounded fails the test if discovery has stored more than a link needs.
func (h *fuzzHost) bounded(t require.TestingT) {
	for _, f := range h.Interfaces().Infos() {
		require.LessOrEqual(t, len(f.IPv6), 20, "addresses of %s", f.Name)
		require.GreaterOrEqual(t, f.MTU, ip.MinMTU6)
		require.LessOrEqual(t, len(h.Interfaces().Discovered(h.now, &f)), 512, "neighbors of %s", f.Name)
	}
	require.LessOrEqual(t, len(h.Routing().Infos()), 150)
}

// discoveries are packets from routers, hosts and queriers. The host accepts each or refuses it for
// one reason.
func discoveries() (list [][]byte) {
	for _, lifetime := range []time.Duration{0, time.Second, time.Hour} {
		for _, prefix := range []string{"2001:db8:a::/64", "2001:db8:b::/60", "fe80::/64", "ff02::/64"} {
			list = append(list, advert("fe80::a", prefix, lifetime, lifetime, 2*lifetime))
		}
	}
	for _, a := range []string{"fe80::a", "2001:db8:1::1", "2001:db8:1::2"} {
		for _, kind := range []icmp.Type{icmp.TypeNeighborSolicit, icmp.TypeNeighborAdvert, icmp.TypeRedirect6} {
			d := icmp.Discovery{Type: kind, Target: addr(a), Destination: addr(a), Override: true, Router: true}
			list = append(list, discover("fe80::a", "ff02::1", d))
			d.Solicited = true
			list = append(list, discover("fe80::a", "fe80::1", d), discover("::", "ff02::1:ff00:1", d))
		}
	}
	// these headers are misplaced in a first fragment
	for _, next := range []byte{ip.NextHopByHop, ip.NextFragment} {
		list = append(list, packet6("fe80::a", "ff02::1", ip.Header{Protocol: next, ID: 5, MF: true}, make([]byte, 32)))
	}
	list = append(list, discover("fe80::b", "ff02::2", icmp.Discovery{Type: icmp.TypeRouterSolicit6}))
	for _, kind := range []icmp.Type{icmp.TypeListenerQuery, icmp.TypeListenerReport, icmp.TypeListenerDone} {
		b := message6("fe80::b", "ff02::1", 1, icmp.Message{Type: kind, Rest: [4]byte{3}, Body: make([]byte, 20)})
		list = append(list, b, withRouterAlert(slices.Clone(b)))
	}
	return list
}

// TestEveryDiscoveryPacketIsCounted is like TestEveryPacketIsCounted, for a host that uses
// router advertisements. The state and the memory of discovery stay bounded.
func TestEveryDiscoveryPacketIsCounted(t *testing.T) {
	h := newFuzzHost(t)
	rng, correct := rand.New(rand.NewPCG(13, 14)), append(discoveries(), valid6()...)
	packets := 20_000
	if testenv.Long() {
		packets = 200_000
	}
	var early uint64
	addresses, states := 0, map[string]bool{}
	for k := range packets {
		b := mutated(rng, correct)
		if k == packets*2/3 {
			early = heapBytes()
		}
		h.hear(t, b, byte(rng.Uint32())&byte(rng.Uint32()|3), byte(rng.Uint32())&^(2|4)|1|16)
		if k%100 == 0 {
			h.bounded(t)
			f := h.Interfaces().Infos()[0]
			addresses = max(addresses, len(f.IPv6))
			h.Interfaces().Discovered(h.now, &f)
			for _, a := range f.Addresses {
				states[a.State] = true
			}
		}
	}
	accounted(t, h.Stack, h.sent)
	assert.Less(t, heapBytes(), early+1<<20, "bytes in use, %d before", early)
	require.Greater(t, addresses, 2, "if0 has configured its addresses")
	require.Greater(t, len(states), 1, "%v", states)
	drops := h.Interfaces().Infos()[0].In.Drops
	for _, name := range []string{
		"bad neighbor discovery", "neighbor discovery from off-link", "mld without router alert",
	} {
		assert.True(t, slices.ContainsFunc(drops, func(d control.Drop) bool { return d.Reason == name }), name)
	}
}

// FuzzDiscovery passes packets to a host that uses router advertisements. Each packet is counted
// once, none makes the host work without end, and the state of discovery stays bounded.
func FuzzDiscovery(f *testing.F) {
	for k, b := range append(discoveries(), valid6()...) {
		f.Add(b, byte(k%3), byte(1|16|8))
		f.Add(b, byte(k%3|k<<6), byte(1|16))
	}
	h := newFuzzHost(f)
	f.Fuzz(func(t *testing.T, b []byte, iface, how byte) {
		h.hear(t, b, iface, how)
		h.bounded(t)
		accounted(t, h.Stack, h.sent)
	})
}
