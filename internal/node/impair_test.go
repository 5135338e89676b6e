package node

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Two nodes use a UDP link with impairments from a file: every byte arrives, and the operator sees
// what the link dropped.
func TestImpairmentsFromAFile(t *testing.T) {
	p := freePorts(t, 2)
	for _, kind := range []waiterKind{waitBest, waitFed} {
		offload := ""
		if kind == waitFed {
			offload = "plain"
		}
		text := `interface if0 10.0.0.%d/24 127.0.0.1:%d
neighbor 10.0.0.%d at 127.0.0.1:%d via if0
`
		cfg := Config{Seed: 5, waiter: kind, Offload: offload}
		t.Run(fmt.Sprint("waiter ", kind), func(t *testing.T) {
			a := start(t, cfg, "A", fmt.Sprintf(text, 1, p[0], 2, p[1])+
				"link if0 loss 3% delay 1ms jitter 200us dup 2% reorder 2% corrupt 2% rate 500mbit\n")
			b := start(t, cfg, "B", fmt.Sprintf(text, 2, p[1], 1, p[0]))
			client, server := connect(t, a, b, "10.0.0.2:80")
			exchange(t, client, server, 300_000)
			faces := ask(t, a, control.Interfaces{})
			assert.Contains(t, reasons(faces[0].Out.Drops), "lost by the link")
			assert.Contains(t, reasons(faces[0].In.Drops), "lost by the link")
			assert.NotEmpty(t, faces[0].Offload, "the underlying device still reports its offload")
			damaged := append(reasons(faces[0].In.Drops),
				reasons(ask(t, b, control.Interfaces{})[0].In.Drops)...)
			assert.Subset(t, damaged, []string{"bad tcp checksum"})
		})
	}
}

func reasons(drops []control.Drop) (list []string) {
	for _, d := range drops {
		list = append(list, d.Reason)
	}
	return list
}

func ask[T any](t *testing.T, n *Node, r control.Request[T]) T {
	t.Helper()
	answer := testenv.Ask(t, n, r)
	return answer
}

// exchange transfers bytes in both directions at once and checks their digests.
func exchange(t *testing.T, a, b *Conn, size int) {
	t.Helper()
	var wg sync.WaitGroup
	for i, way := range []struct{ from, to *Conn }{{a, b}, {b, a}} {
		text := make([]byte, size)
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for k := range text {
			text[k] = byte(r.Uint32())
		}
		wg.Go(func() {
			_, err := way.from.Write(text)
			assert.NoError(t, err)
			assert.NoError(t, way.from.CloseWrite())
		})
		wg.Go(func() {
			got, err := io.ReadAll(way.to)
			assert.NoError(t, err)
			assert.Equal(t, sha256.Sum256(text), sha256.Sum256(got))
		})
	}
	wg.Wait()
}

// echoRequest returns a ping from 10.0.0.2 to 10.0.0.1.
func echoRequest() []byte {
	b := make([]byte, 28)
	copy(b, []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 8})
	sum := checksum.Checksum(b[:20])
	b[10], b[11] = byte(sum>>8), byte(sum)
	sum = checksum.Checksum(b[20:])
	b[22], b[23] = byte(sum>>8), byte(sum)
	return b
}

// driven starts a node on a pipe and a clock, and returns the pipe's other end.
func driven(t *testing.T, c *Clock, line string) (*Node, *link.End) {
	t.Helper()
	near, far := link.Pipe(0)
	n := start(t, Config{
		Clock: c, Seed: 1, Devices: map[string]link.Device{"if0": near},
	}, "A", `interface if0 10.0.0.1/24 127.0.0.1:1
neighbor 10.0.0.2 at 127.0.0.1:2 via if0
`+line)
	return n, far
}

// A link's delay applies to each direction, is exact to the nanosecond, and wakes up the loop.
func TestLinkDelayIsExact(t *testing.T) {
	var c Clock
	_, far := driven(t, &c, "link if0 delay 50ms\n")
	_, err := far.Write(echoRequest())
	require.NoError(t, err)
	packet := make([]byte, 2000)
	for _, wait := range []time.Duration{50 * time.Millisecond, 50 * time.Millisecond} {
		next, ok := c.Next()
		require.True(t, ok)
		assert.Equal(t, wait, next)
		c.Advance(wait - 1)
		_, ok = far.TryRead(packet)
		assert.False(t, ok)
		c.Advance(1)
	}
	n, ok := far.TryRead(packet)
	require.True(t, ok)
	assert.Equal(t, []any{28, byte(0)}, []any{n, packet[20]}, "an echo reply")
	_, ok = c.Next()
	assert.False(t, ok, "no deadline is left")
}

func TestLinkLossInEachDirection(t *testing.T) {
	var c Clock
	n, far := driven(t, &c, "link if0 loss 20%\n")
	const pings = 5000
	replies, packet := 0, make([]byte, 2000)
	for range pings {
		_, err := far.Write(echoRequest())
		require.NoError(t, err)
		if _, ok := far.TryRead(packet); ok {
			replies++
		}
	}
	assert.InDelta(t, 0.64*pings, replies, 4*0.48*71,
		"loss in both directions: four standard deviations")
	f := ask(t, n, control.Interfaces{})[0]
	assert.InDelta(t, 0.2*pings, f.In.Drops[0].Packets, 4*0.4*71)
	assert.Equal(t, uint64(pings), f.In.Packets+f.In.Drops[0].Packets)
	assert.Equal(t, uint64(replies), f.Out.Packets-f.Out.Drops[0].Packets)
}

// A node that closes delivers its last packets, however long the link's delay is.
func TestCloseSendsPacketsOnTheLink(t *testing.T) {
	var c Clock
	n, far := driven(t, &c, "link if0 delay 1m\n")
	_, err := far.Write(echoRequest())
	require.NoError(t, err)
	c.Advance(time.Minute)
	packet := make([]byte, 2000)
	_, ok := far.TryRead(packet)
	require.False(t, ok)
	require.NoError(t, n.Close())
	size, ok := far.TryRead(packet)
	require.True(t, ok)
	assert.Equal(t, []any{28, byte(0)}, []any{size, packet[20]}, "the echo reply")
}

// Without impairments, a link uses the device itself.
func TestUnimpairedLinkUsesTheDeviceItself(t *testing.T) {
	var c Clock
	n, _ := driven(t, &c, "link if0 mtu 900\n")
	assert.IsType(t, &link.End{}, n.Devices.list[0])
	assert.Empty(t, n.Devices.impaired)
}

// Impairments that are added at run time apply from then on, to each direction separately. Nothing
// is left of them when they are removed.
func TestImpairAtRunTime(t *testing.T) {
	var c Clock
	n, far := driven(t, &c, "")
	base := n.Devices.list[0]
	ping := func() bool {
		packet := make([]byte, 2000)
		_, err := far.Write(echoRequest())
		require.NoError(t, err)
		_, ok := far.TryRead(packet)
		return ok
	}
	require.True(t, ping())
	list := ask(t, n, control.Impair{Iface: "0", Way: control.WayIn, Words: "drop 1,3-4"})
	require.Len(t, list, 1)
	assert.Equal(t, control.Impairment{
		Iface: "if0", Way: control.WayIn, Words: "drop 1,3-4",
	}, list[0])
	var got []bool
	for range 6 {
		got = append(got, ping())
	}
	assert.Equal(t, []bool{false, true, false, false, true, true}, got)
	list = ask(t, n, control.Impairments{Iface: "if0"})
	assert.Equal(t, []uint64{6, 3, 3}, []uint64{list[1].Seen, list[1].Passed, list[1].Lost})

	ask(t, n, control.Impair{Words: "delay 1s"})
	require.False(t, ping())
	ask(t, n, control.Impair{Words: "off"})
	assert.NotEqual(t, base, n.Devices.list[0], "a packet is in transit")
	c.Advance(time.Second)
	assert.True(t, ping())
	assert.Same(t, base, n.Devices.list[0], "packets bypass the impairment")
	list = ask(t, n, control.Impairments{})
	assert.Equal(t, []string{"nothing", "nothing"}, []string{list[0].Words, list[1].Words})
	assert.Equal(t, uint64(7), list[1].Seen, "the counters are kept")
	assert.Contains(t, reasons(ask(t, n, control.Interfaces{})[0].In.Drops), "lost by the link")

	require.NoError(t, control.Order(t.Context(), n, control.ClearCounters{Iface: "if0"}))
	f := ask(t, n, control.Interfaces{})[0]
	assert.Empty(t, f.In.Drops)
	assert.Zero(t, f.In.Packets+f.Out.Packets)

	for words, want := range map[string]string{
		"delay 1s lss 2%":            "did you mean loss?",
		"rate 1mbit codel target 1s": "a target below the interval",
	} {
		_, err := n.Do(t.Context(), control.Impair{Iface: "if0", Words: words})
		require.ErrorIs(t, err, control.ErrUsage)
		assert.ErrorContains(t, err, want)
	}
	_, err := n.Do(t.Context(), control.Impair{Iface: "if7", Words: "off"})
	require.ErrorIs(t, err, control.ErrNoSuchInterface)
	assert.ErrorContains(t, err, `"if7": no such interface: this node has if0`)
	_, err = n.Do(t.Context(), control.Impair{Iface: "if0", Way: "up", Words: "off"})
	require.ErrorIs(t, err, control.ErrUsage)
}

// The same seed and the same packets cause the same drops, whatever else the node does.
func TestImpairmentsAreRepeatable(t *testing.T) {
	fates := func(nodeSeed uint64, words string) (list []bool) {
		var c Clock
		n, far := driven(t, &c, "")
		n.cfg.Seed = nodeSeed
		ask(t, n, control.Impair{Iface: "if0", Words: words})
		packet := make([]byte, 2000)
		for range 200 {
			_, err := far.Write(echoRequest())
			require.NoError(t, err)
			_, ok := far.TryRead(packet)
			list = append(list, ok)
		}
		return list
	}
	first := fates(1, "loss 20% seed 5")
	assert.Equal(t, first, fates(2, "loss 20% seed 5"))
	assert.NotEqual(t, first, fates(1, "loss 20% seed 6"))
	first = fates(3, "loss gemodel 5% 30%")
	assert.Equal(t, first, fates(3, "loss gemodel 5% 30%"))
}

func TestImpairLinesOfAFile(t *testing.T) {
	var c Clock
	n, far := driven(t, &c, "impair if0 out delay 50ms\nimpair if0 in drop 1\n")
	list := ask(t, n, control.Impairments{})
	assert.Equal(t, []string{"delay 50ms", "drop 1"}, []string{list[0].Words, list[1].Words})
	packet := make([]byte, 2000)
	for range 2 {
		_, err := far.Write(echoRequest())
		require.NoError(t, err)
	}
	c.Advance(50 * time.Millisecond)
	_, ok := far.TryRead(packet)
	assert.True(t, ok)
	_, ok = far.TryRead(packet)
	assert.False(t, ok)
}
