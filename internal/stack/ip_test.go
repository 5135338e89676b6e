package stack_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func dropsOf(c control.Counters) map[string]uint64 {
	m := map[string]uint64{}
	for _, d := range c.Drops {
		m[d.Reason] = d.Packets
	}
	return m
}

// RFC 1812 §5.2.1: a router forwards packets to other nodes with the TTL decremented.
func TestTestPacketCrossesARouter(t *testing.T) {
	w, a, _, c := line(t)
	n, err := a.SendTest(w.now, addr("10.1.0.2"), ip.ProtoTest, []byte("hello"))
	require.NoError(t, err)
	assert.Equal(t, 25, n)
	w.run(time.Millisecond)
	events := c.Events()
	require.Len(t, events, 1)
	require.NotNil(t, events[0].Test)
	assert.Equal(t, "hello", string(events[0].Test.Data))
	assert.Equal(t, 15, events[0].Test.TTL, "16 minus one router")
	assert.Equal(t, addr("10.0.0.1"), events[0].Test.Src)
}

func TestSendErrors(t *testing.T) {
	w, a, b, _ := line(t)
	_, err := b.SendTest(w.now, addr("192.168.9.9"), 0, nil)
	require.ErrorIs(t, err, stack.ErrNoRoute)
	_, err = a.SendTest(w.now, addr("10.1.0.2"), 0, make([]byte, 1381))
	require.ErrorIs(t, err, stack.ErrTooBig)
	a.SetUp(w.now, 0, false)
	_, err = a.SendTest(w.now, addr("10.1.0.2"), 0, nil)
	require.ErrorIs(t, err, stack.ErrNoRoute, "the only interface is down, so there is no route")
}

// RFC 1812 §5.2.7.1: a router without a route reports that the network is unreachable. RFC 1122
// §3.2.1.7: the default TTL is large enough for any path.
func TestEchoAndItsErrors(t *testing.T) {
	w, a, b, _ := line(t)
	p := newPinger(t, a)
	ttl := byte(0) // TTL of the last reply on a link
	w.mangle = func(b []byte) {
		if b[20] == icmp.TypeEchoReply.Number() {
			ttl = b[8]
		}
	}
	require.NoError(t, p.send(w.now, "10.1.0.2", 1, 56, 0))
	require.NoError(t, p.send(w.now, "10.1.0.2", 2, 56, 1))
	require.NoError(t, p.send(w.now, "172.16.0.1", 3, 56, 0))
	w.run(10 * time.Millisecond)
	got := map[uint16]echo{}
	for _, e := range p.take() {
		got[e.Seq] = e
	}
	require.Len(t, got, 3)
	assert.Equal(t, icmp.TypeEchoReply, got[1].Type)
	assert.Equal(t, byte(63), ttl, "the router decremented it once")
	assert.Equal(t, 64, got[1].Bytes)
	assert.Equal(t, icmp.TypeTimeExceeded, got[2].Type)
	assert.Equal(t, addr("10.0.0.2"), got[2].From, "RFC 1812 §4.3.2.4: the interface towards the sender")
	assert.Equal(t, icmp.TypeUnreachable, got[3].Type)
	assert.Equal(t, icmp.CodeNet, got[3].Code)
	drops := dropsOf(b.Interfaces().Infos()[0].In)
	assert.Equal(t, uint64(1), drops[ip.DropTTL.String()])
	assert.Equal(t, uint64(1), drops[ip.DropNoRoute.String()])
}

func TestNodePingsItself(t *testing.T) {
	w, a, _, _ := line(t)
	p := newPinger(t, a)
	require.NoError(t, p.send(w.now, "10.0.0.1", 1, 10, 0))
	w.run(time.Millisecond)
	require.Len(t, p.take(), 1)
}

func TestLossyForwardDropsItsShare(t *testing.T) {
	w, a, b, c := line(t)
	b.SetLoss(1, 0.25)
	const packets = 20000
	got := 0
	for range packets {
		_, err := a.SendTest(w.now, addr("10.1.0.2"), 0, []byte("x"))
		require.NoError(t, err)
		w.run(250 * time.Microsecond)
		got += len(c.Events())
	}
	lost := dropsOf(b.Interfaces().Infos()[1].Out)[ip.DropLossy.String()]
	assert.Equal(t, uint64(packets-got), lost, "every drop is counted")
	assert.InDelta(t, packets/4, lost, 4*61, "4 sigma of the binomial")
}

// RFC 1122 §3.2.1.3: a host silently discards packets to other nodes.
func TestHostsDoNotForward(t *testing.T) {
	w, a, _, c := line(t)
	_, err := a.SendTest(w.now, addr("10.1.0.9"), 0, nil)
	require.NoError(t, err)
	w.run(time.Millisecond)
	assert.Empty(t, c.Events())
	assert.Empty(t, a.Events(), "no error is sent")
	assert.Equal(t, uint64(1), dropsOf(c.Interfaces().Infos()[0].In)[ip.DropNotForUs.String()])
}

func TestDownInterfaceDropsSilently(t *testing.T) {
	w, a, b, c := line(t)
	b.SetUp(w.now, 1, false)
	_, err := a.SendTest(w.now, addr("10.1.0.2"), 0, nil)
	require.NoError(t, err)
	_, err = c.SendTest(w.now, addr("10.0.0.1"), 0, nil)
	require.NoError(t, err)
	w.run(time.Millisecond)
	assert.Empty(t, c.Events())
	assert.Empty(t, a.Events())
	assert.Equal(t, uint64(1), dropsOf(b.Interfaces().Infos()[1].In)[ip.DropInterfaceDown.String()])
	b.SetUp(w.now, 1, true)
	_, err = a.SendTest(w.now, addr("10.1.0.2"), 0, nil)
	require.NoError(t, err)
	w.run(time.Millisecond)
	assert.Len(t, c.Events(), 1, "the interface forwards again when it is up")
}

func TestInvalidPacketsAreCountedByReason(t *testing.T) {
	w, _, b, _ := line(t)
	good := ip.Header{TotalLen: 20, TTL: 9, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 0, 0, 2)}.Append(nil)
	bad := map[ip.DropReason][]byte{
		ip.DropShort:          {1, 2, 3, 4, 5},
		ip.DropVersion:        append([]byte{0x75}, good[1:]...),
		ip.DropHeaderLength:   append([]byte{0x4f}, good[1:]...),
		ip.DropHeaderChecksum: append(good[:19:19], good[19]^1),
	}
	for _, p := range bad {
		input(b, w.now, buffer.Frame{Data: p, Size: len(p), Iface: 0})
	}
	drops := dropsOf(b.Interfaces().Infos()[0].In)
	for reason := range bad {
		assert.Equal(t, uint64(1), drops[reason.String()], reason.String())
	}
}

func TestForwardingKeepsATrainAndAllocatesNothing(t *testing.T) {
	_, _, b, _ := line(t)
	h := ip.Header{
		TotalLen: 1400, TTL: 60, Protocol: ip.ProtoTCP,
		Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2),
	}
	packet := append(h.Append(nil), make([]byte, 1380)...)
	var data []byte
	for range 40 {
		data = append(data, packet...)
	}
	fresh := append([]byte(nil), data...)
	list := (&buffer.Frame{Data: data, Size: 1400}).Packets(nil)
	batch, room := buffer.NewBatch(), make([]int, 2)
	forward := func() {
		copy(data, fresh)
		b.Input(5, 0, false, list)
		room[0], room[1] = 1000, 1000
		batch.Reset()
		b.Output(5, room, batch)
	}
	forward()
	require.Len(t, batch.Trains(), 1)
	assert.Equal(t, 40, batch.Trains()[0].Count)
	assert.Equal(t, byte(59), batch.Trains()[0].Pieces[7][8], "the TTL")
	assert.Zero(t, testing.AllocsPerRun(100, forward))
}

// A capture with a limit may end inside a train.
func TestTapEndsInsideATrain(t *testing.T) {
	w, _, b, _ := line(t)
	p := ip.Header{TotalLen: 20, TTL: 9, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2)}.Append(nil)
	left := 4 // number of packets: three arrive, and one is sent
	b.SetTap(func(clock.Time, int, stack.Direction, ip.DropReason, [][]byte) {
		if left--; left == 0 {
			b.SetTap(nil)
		}
	})
	input(b, w.now, buffer.Frame{Data: slices.Concat(p, p, p), Size: 20, Iface: 0})
	batch := buffer.NewBatch()
	assert.False(t, b.Output(clock.Time(5), []int{9, 9}, batch))
	require.Len(t, batch.Trains(), 1)
	assert.Equal(t, 3, batch.Trains()[0].Count)
	assert.Zero(t, left)
}

func TestRouterDropsPacketsForAFullLink(t *testing.T) {
	w, _, b, _ := line(t)
	p := ip.Header{TotalLen: 20, TTL: 9, Src: ip.V4(10, 0, 0, 1), Dst: ip.V4(10, 1, 0, 2)}.Append(nil)
	data := append(append(append([]byte(nil), p...), p...), p...)
	input(b, w.now, buffer.Frame{Data: data, Size: 20, Iface: 0})
	batch := buffer.NewBatch()
	assert.True(t, b.Output(clock.Time(5), []int{9, 2}, batch), "the rest needs another call")
	assert.Empty(t, dropsOf(b.Interfaces().Infos()[1].Out))
	require.Len(t, batch.Trains(), 1)
	assert.Equal(t, 2, batch.Trains()[0].Count)
	batch.Reset()
	assert.False(t, b.Output(clock.Time(5), []int{9, 0}, batch))
	assert.Equal(t, uint64(1), dropsOf(b.Interfaces().Infos()[1].Out)[ip.DropQueueFull.String()])
	assert.Empty(t, batch.Trains())
}

func TestLossAppliesToBothDirections(t *testing.T) {
	w, a, b, c := line(t)
	b.SetLoss(1, 1)
	_, err := a.SendTest(w.now, addr("10.1.0.2"), 0, nil)
	require.NoError(t, err)
	_, err = c.SendTest(w.now, addr("10.0.0.1"), 0, nil)
	require.NoError(t, err)
	w.run(time.Millisecond)
	assert.Empty(t, a.Events())
	assert.Empty(t, c.Events())
}

func TestUnknownAddressOnTheLink(t *testing.T) {
	w := newWorld(t)
	known := func(prefix string, neighbors ...string) stack.Interface {
		f := face("if"+prefix[3:4], prefix)
		for _, n := range neighbors {
			f.Neighbors = append(f.Neighbors, addr(n))
		}
		return f
	}
	a := w.add(stack.Config{
		Interfaces: []stack.Interface{known("10.0.0.1/24", "10.0.0.2")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.0.0.2")},
	})
	b := w.add(stack.Config{
		Interfaces: []stack.Interface{known("10.0.0.2/24", "10.0.0.1"), known("10.1.0.1/24", "10.1.0.2")},
		Forwarding: true,
	})
	w.wire(end{0, 0}, end{1, 0})
	p := newPinger(t, a)
	require.ErrorIs(t, p.send(w.now, "10.0.0.9", 1, 0, 0), stack.ErrNoNeighbor)
	own := dropsOf(a.Interfaces().Infos()[0].Out)
	assert.Equal(t, uint64(1), own[ip.DropUnknownNeighbor.String()], "the unsent packet is counted")
	_, err := a.TCP().Connect(w.now, addrPort(addr("10.0.0.9"), 80), 0)
	require.ErrorIs(t, err, tcp.ErrUnreachable)
	require.NoError(t, p.send(w.now, "10.1.0.9", 1, 0, 0))
	w.run(time.Millisecond)
	got := p.take()
	require.Len(t, got, 1)
	assert.Equal(t, icmp.TypeUnreachable, got[0].Type)
	assert.Equal(t, icmp.CodeHost, got[0].Code, "RFC 1812 §5.2.7.1: the network is reachable")
	drops := dropsOf(b.Interfaces().Infos()[1].Out)
	assert.Equal(t, uint64(1), drops[ip.DropUnknownNeighbor.String()])
}
