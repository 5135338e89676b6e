package stack_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// relay is a router between two networks. It has a default route and records the packets that it
// sends.
type relay struct {
	*stack.Stack
	batch *buffer.Batch
	sent  []string // each packet that left, by interface and next hop
	seen  []string // packets that the tap saw
}

func newRelay(tb testing.TB, tap bool) *relay {
	tb.Helper()
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), face("if1", "10.1.0.1/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.1.0.9")},
		Forwarding: true, RIP: &rip.Config{},
	})
	require.NoError(tb, err)
	r := &relay{Stack: s, batch: buffer.NewBatch()}
	if tap {
		s.SetTap(func(_ clock.Time, i int, d stack.Direction, why ip.DropReason, b [][]byte) {
			r.seen = append(r.seen, fmt.Sprint(i, d, why, slices.Concat(b...)))
		})
	}
	return r
}

// pass passes a frame to the router, and records the packets that the router sends.
func (r *relay) pass(f buffer.Frame, room int) {
	input(r, 1, f)
	r.drain(room)
}

// drain records the packets that the router sends.
func (r *relay) drain(room int) {
	for more := true; more; {
		more = r.Output(1, []int{room, room}, r.batch)
		for _, tr := range r.batch.Trains() {
			for k := range tr.Count {
				r.sent = append(r.sent,
					fmt.Sprint(tr.Iface, tr.NextHop, slices.Concat(tr.Packet(k)...)))
			}
		}
		r.batch.Reset()
	}
}

// mixedFlows returns packets of equal size from a few flows. Some have a property that the fast
// path must detect.
func mixedFlows(rng *rand.Rand, size, packets int) []byte {
	pick := func(list ...byte) byte { return list[rng.IntN(len(list))] }
	var data []byte
	h := ip.Header{TTL: 9, Protocol: ip.ProtoTest}
	for range packets {
		if rng.IntN(3) == 0 {
			h.Src = ip.V4(10, 0, 0, pick(1, 3))
			h.Dst = ip.V4(pick(10, 10, 10, 172, 224, 127), 1, 0, pick(2, 3, 1, 255))
		}
		h.TTL, h.TotalLen, h.Options = 9, size, nil
		h.TOS, h.DF = pick(0, 0, 3), pick(0, 1) == 0
		switch rng.IntN(12) {
		case 0:
			h.TTL = pick(0, 1, 2)
		case 1:
			h.TotalLen -= rng.IntN(5) // adds padding after the packet
		case 2:
			h.Options = []byte{1, 1, 1, 1}
		}
		p := make([]byte, size)
		copy(p, h.Append(nil))
		if rng.IntN(12) == 0 {
			p[rng.IntN(20)] ^= 1 << rng.IntN(8)
		}
		data = append(data, p...)
	}
	if cut := rng.IntN(size); cut > 0 && rng.IntN(2) == 0 {
		data = data[:len(data)-cut] // the last packet is shorter than its length field
	}
	return data
}

// RFC 1122 §3.2.1.3: a router that becomes a host forwards nothing, not even packets of a known
// flow.
func TestForwardingOffAndOn(t *testing.T) {
	r := newRelay(t, false)
	h := ip.Header{
		TTL: 9, Protocol: ip.ProtoTest, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 9),
		TotalLen: ip.HeaderLen,
	}
	pass := func() int {
		r.sent = nil
		p := h.Append(nil)
		r.pass(buffer.Frame{Data: p, Size: len(p)}, 10)
		return len(r.sent)
	}
	for range 3 {
		assert.Equal(t, 1, pass())
	}
	r.Routing().SetForwarding(false)
	assert.Zero(t, pass())
	assert.EqualValues(t, 1, dropsOf(r.Interfaces().Infos()[0].In)[ip.DropNotForUs.String()])
	r.Routing().SetForwarding(true)
	assert.Equal(t, 1, pass())
}

// RFC 1812 §5.2.1: the router forwards a train exactly as it forwards the packets one by one.
func TestTrainIsForwardedLikeItsPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	for round := range 400 {
		whole, single := newRelay(t, round%2 == 0), newRelay(t, round%2 == 0)
		apart := newRelay(t, round%2 == 0)
		loss := []float64{0, 0, 0.3}[rng.IntN(3)]
		whole.SetLoss(1, loss)
		single.SetLoss(1, loss)
		apart.SetLoss(1, loss)
		size := 40 + rng.IntN(100)
		for range 4 {
			data := mixedFlows(rng, size, 1+rng.IntN(90))
			var packets [][]byte
			for p := range slices.Chunk(data, size) {
				single.pass(buffer.Frame{Data: slices.Clone(p), Size: size}, 1000)
				packets = append(packets, slices.Clone(p))
			}
			apart.Input(1, 0, false, packets)
			apart.drain(1000)
			whole.pass(buffer.Frame{Data: data, Size: size}, 1000)
		}
		byHop := func(list []string) []string { slices.Sort(list); return list }
		require.Equal(t, whole.sent, apart.sent, "round %d: each packet in its own memory", round)
		require.Equal(t, whole.seen, apart.seen, "round %d", round)
		require.Equal(t, byHop(single.sent), byHop(whole.sent), "round %d", round)
		require.Equal(t, byHop(single.seen), byHop(whole.seen), "round %d: the tap", round)
		require.Equal(t, single.Interfaces().Infos(), whole.Interfaces().Infos(), "round %d", round)
	}
}

// frameOf returns a frame with n packets of one flow through the relay.
func frameOf(n, size int) buffer.Frame {
	h := ip.Header{
		TotalLen: size, TTL: 64, Protocol: ip.ProtoTest,
		Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	data := make([]byte, 0, n*size)
	for range n {
		data = append(data, h.Append(nil)...)
		data = append(data, make([]byte, size-ip.HeaderLen)...)
	}
	return buffer.Frame{Data: data, Size: size}
}

func TestRouterKeepsTheOrderOfAFlow(t *testing.T) {
	r := newRelay(t, false)
	f := frameOf(200, 60)
	for i := range 200 {
		f.Data[i*60+20] = byte(i)
	}
	r.pass(f, 1000)
	require.Len(t, r.sent, 200)
	for i, s := range r.sent {
		assert.Contains(t, s, fmt.Sprintf(" 10 1 0 2 %d 0 0", i), "packet %d", i)
	}
}

func TestTrainIsSplitWhenTheLinkIsFull(t *testing.T) {
	r := newRelay(t, true)
	input(r, 1, frameOf(44, 1400))
	require.True(t, r.Output(1, []int{10, 10}, r.batch), "the link may have room again")
	require.Len(t, r.batch.Trains(), 1)
	assert.Equal(t, 10, r.batch.Trains()[0].Count)
	r.batch.Reset()
	require.False(t, r.Output(1, []int{10, 0}, r.batch))
	out := r.Interfaces().Infos()[1].Out
	assert.Equal(t, uint64(10), out.Packets)
	assert.Equal(t, []control.Drop{{Reason: ip.DropQueueFull.String(), Packets: 34}}, out.Drops)
	assert.Len(t, r.seen, 44+44, "the tap sees each packet twice, even if it is dropped")
}

func TestRouterDropsPacketsForADownLink(t *testing.T) {
	r := newRelay(t, false)
	input(r, 1, frameOf(44, 1400))
	r.SetUp(1, 1, false)
	r.Output(1, []int{100, 100}, r.batch)
	assert.Empty(t, r.batch.Trains())
	out := r.Interfaces().Infos()[1].Out
	assert.Equal(t, []control.Drop{{Reason: ip.DropInterfaceDown.String(), Packets: 44}}, out.Drops)
}

// rounds returns a function that does a router's whole work for a frame without its links: input,
// route lookup, TTL, checksum, output.
func (r *relay) rounds(f buffer.Frame) (once func() (packets int)) {
	fresh, room := slices.Clone(f.Data[:ip.HeaderLen]), make([]int, 2)
	var list [][]byte
	return func() (packets int) {
		for at := 0; at < len(f.Data); at += f.Size {
			copy(f.Data[at:], fresh) // undoes the changes of the last round
		}
		list = f.Packets(list[:0])
		r.Input(1, f.Iface, f.Checked, list)
		for more := true; more; {
			room[0], room[1] = 1000, 1000
			more = r.Output(1, room, r.batch)
			for i := range r.batch.Trains() {
				packets += r.batch.Trains()[i].Count
			}
			r.batch.Reset()
		}
		return packets
	}
}

func TestForwardingDoesNotAllocate(t *testing.T) {
	for _, packets := range []int{1, 44, 400} {
		once := newRelay(t, false).rounds(frameOf(packets, 100))
		require.Equal(t, packets, once())
		assert.Zero(t, testing.AllocsPerRun(100, func() { once() }), "%d packets a frame", packets)
	}
}

// BenchmarkForward measures a router without its links, for frames of as many 1400-byte packets as
// UDP_GRO delivers, and for frames of one packet.
func BenchmarkForward(b *testing.B) {
	for _, packets := range []int{1, 44} {
		b.Run(fmt.Sprintf("frame=%d", packets), func(b *testing.B) {
			once := newRelay(b, false).rounds(frameOf(packets, 1400))
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/packet")
		})
	}
}

// BenchmarkForwardAnywhere is like BenchmarkForward, for packets without common destinations: each
// goes to a different one of 100,000 networks.
func BenchmarkForwardAnywhere(b *testing.B) {
	const networks, packets = 100_000, 44
	r := newRelay(b, false)
	network := func(i int) netip.Addr { return ip.V4(byte(20+i>>16), byte(i>>8), byte(i), 7) }
	for i := range networks {
		p := netip.PrefixFrom(network(i), 24).Masked()
		require.NoError(b, r.Routing().Add(1, stack.Route{Prefix: p, Via: addr("10.1.0.9")}))
	}
	frames := make([]buffer.Frame, 64)
	rng := rand.New(rand.NewPCG(3, 3))
	for k := range frames {
		frames[k] = frameOf(packets, 1400)
	}
	h := ip.Header{TotalLen: 1400, TTL: 64, Protocol: ip.ProtoUDP, Src: ip.V4(10, 0, 0, 1)}
	room := make([]int, 2)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		f := frames[n%len(frames)]
		for at := 0; at < len(f.Data); at += f.Size {
			h.Dst = network(rng.IntN(networks))
			h.Put(f.Data[at:])
		}
		input(r, 1, f)
		for more := true; more; {
			room[0], room[1] = 1000, 1000
			more = r.Output(1, room, r.batch)
			r.batch.Reset()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/packet")
}

// TestForwardingKeepsVerifiedChecksums checks that a packet with a verified transport checksum is
// still marked as verified when it leaves, because forwarding changes no byte that this checksum
// covers. The router's fragments and unverified packets leave without the mark.
func TestForwardingKeepsVerifiedChecksums(t *testing.T) {
	frame := func(size int) []byte {
		var data []byte
		for range 3 {
			h := ip.Header{
				TTL: 9, Protocol: ip.ProtoTest, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
				TotalLen: size,
			}
			data = append(data, append(h.Append(nil), make([]byte, size-ip.HeaderLen)...)...)
		}
		return data
	}
	r := newRelay(t, false)
	leaves := func(f buffer.Frame) (checked []bool) {
		input(r, 1, f)
		for more := true; more; {
			more = r.Output(1, []int{99, 99}, r.batch)
			for _, tr := range r.batch.Trains() {
				if tr.Iface == 1 {
					checked = append(checked, tr.Checked)
				}
			}
			r.batch.Reset()
		}
		return checked
	}
	leaves(buffer.Frame{}) // sends RIP's first messages
	assert.Equal(t, []bool{true}, leaves(buffer.Frame{Data: frame(100), Size: 100, Checked: true}))
	assert.Equal(t, []bool{false}, leaves(buffer.Frame{Data: frame(100), Size: 100}))
	for _, checked := range leaves(buffer.Frame{Data: frame(3000), Size: 3000, Checked: true}) {
		assert.False(t, checked, "a fragment")
	}
}

// TestFlowsAreForgotten checks that a cached forwarding decision is dropped when something that it
// depends on changes.
func TestFlowsAreForgotten(t *testing.T) {
	passes := func(r *relay) string {
		r.sent = nil
		r.pass(frameOf(1, 100), 1000)
		if len(r.sent) == 0 {
			return ""
		}
		return r.sent[0][:len("1 10.1.0.2")]
	}
	for name, c := range map[string]struct {
		change func(r *relay) error
		want   string
	}{
		"nothing":          {func(*relay) error { return nil }, "1 10.1.0.2"},
		"the receive path": {func(r *relay) error { r.SetUp(1, 0, false); return nil }, ""},
		// causes an ICMP error
		"the transmit path": {func(r *relay) error { r.SetUp(1, 1, false); return nil }, "0 10.0.0.1"},
		"loss":              {func(r *relay) error { r.SetLoss(0, 1); return nil }, ""},
		"a route":           {func(r *relay) error { return r.Routing().Add(1, route("10.1.0.2/32", "10.1.0.7")) }, "1 10.1.0.7"},
		"a route elsewhere": {func(r *relay) error { return r.Routing().Add(1, route("10.1.0.3/32", "10.1.0.7")) }, "1 10.1.0.2"},
		"reverse path": {func(r *relay) error {
			if err := r.Routing().Add(1, route("10.0.0.1/32", "10.1.0.7")); err != nil {
				return err
			}
			k := r.Knobs()
			k.IP.ReversePath = stack.ReverseStrict
			return r.SetKnobs(k)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, false)
			require.Equal(t, "1 10.1.0.2", passes(r))
			require.Equal(t, "1 10.1.0.2", passes(r))
			require.NoError(t, c.change(r))
			assert.Equal(t, c.want, strings.TrimSpace(passes(r)))
		})
	}
}
