package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// A link of the ring goes down during a transfer: RIP finds another path, and no byte is lost.
func TestRIPRoutesAroundABrokenLink(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "ring").StartAll()
	a, b, r1 := net.Node("A"), net.Node("B"), net.Node("R1")
	awaitRoutes(t, a, b)
	for _, r := range []string{"R1", "R2", "R3", "R4"} {
		net.Node(r).AwaitRoute(a.Addr())
		net.Node(r).AwaitRoute(b.Addr())
	}
	before, ok := r1.Route(b.Addr())
	require.True(t, ok)
	require.Equal(t, control.OriginRIP, before.Origin)

	size := int64(150 * megabyte)
	if !ci.Long() {
		size = 15 * megabyte
	}
	r1.MustDo("impair %s out rate 40mbit", before.Iface) // the transfer must still run when the link goes down
	d := startTransfer(t, a, b, size, 9000)
	d.started(1)
	t.Logf("# %s on %s goes down", r1.Name, before.Iface)
	r1.MustDo("down %s", before.Iface)
	cut := time.Now()
	r1.Eventually(Soon, "another path", func() bool {
		now, ok := r1.Route(b.Addr())
		return ok && now.NextHop != before.NextHop
	})
	t.Logf("# R1 has another path after %v", time.Since(cut))
	assert.Less(t, time.Since(cut), 9*time.Second, "the next periodic update is due after 5 s")
	d.done(patience)

	t.Log("# the link comes up again")
	r1.MustDo("up %s", before.Iface)
	for _, i := range r1.Interfaces() {
		if i.Name != before.Iface {
			continue
		}
		assert.True(t, i.Up)
		for _, r := range []string{"R2", "R3", "R4"} {
			net.Node(r).AwaitRoute(i.Addr.Masked().Addr())
		}
	}
	again := startTransfer(t, b, a, megabyte, 9001)
	again.done(patience)
}

// A link of the only path goes down and up again and again. No byte is lost.
func TestFlappingLink(t *testing.T) {
	t.Parallel()
	a, b, c := line(t)
	b.MustDo("impair if1 out rate 40mbit") // the transfer must still run when the link goes down
	back := startTransfer(t, c, a, 10*megabyte, 9001)
	d := startTransfer(t, a, c, 10*megabyte, 9000)
	d.started(1)
	for range 20 {
		b.MustDo("down if1")
		b.MustDo("up if1")
		b.MustDo("sleep 5ms") // run in the shell, so that the link carries data in between
	}
	d.done(patience)
	back.done(patience)
	t.Logf("# dropped: %v", b.Dropped())
}

// When an interface goes down, a node withdraws its network at once. A router two hops away loses
// the route long before it would expire, 12 s after the last update.
func TestDownInterfaceIsWithdrawnAtOnce(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "line-5").StartAll()
	a, b, c, e := net.Node("A"), net.Node("B"), net.Node("C"), net.Node("E")
	awaitRoutes(t, a, e)
	b.AwaitRoute(e.Addr())
	net.Node("D").AwaitRoute(a.Addr())

	towardsE, ok := c.Route(e.Addr())
	require.True(t, ok)
	mark := a.Mark()
	a.MustDo("ping -c 1 %s", e.Addr())
	assert.True(t, has(a.Lines(mark), "1 received"))

	c.MustDo("down %s", towardsE.Iface)
	cut := time.Now()
	b.Eventually(Soon, "withdrawal", func() bool {
		_, there := b.Route(e.Addr())
		return !there
	})
	gone := time.Since(cut)
	t.Logf("# B has lost the route after %v", gone)
	assert.Less(t, gone, 3*time.Second)
	for _, i := range c.Interfaces() {
		assert.Equal(t, i.Name != towardsE.Iface, i.Up, i.Name)
	}
	for _, n := range c.Neighbors() {
		assert.NotEqual(t, towardsE.Iface, n.Iface, "neighbors of a down interface are not listed")
	}

	t.Log("# packets to it are answered by ICMP now")
	talk := fails(t, a, Soon, "ping -c 1 -i 0.1 %s", e.Addr())
	assert.Regexp(t, "[Uu]nreachable", talk)
	assert.NotContains(t, talk, "no reply")

	c.MustDo("up %s", towardsE.Iface)
	b.AwaitRoute(e.Addr())
	net.Node("D").AwaitRoute(a.Addr())
	a.MustDo("ping -c 1 %s", e.Addr())
}

// The course's demonstration: the router on the short path of the loop loses both links. It has no
// link left on which to announce that, so the long path is used only when the routes expire.
func TestLoopWithoutItsShortPath(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "old", "loop").StartAll()
	src, dst, short := net.Node("src"), net.Node("dst"), net.Node("short")
	awaitRoutes(t, src, dst)
	costIs := func(cost int) func() bool {
		return func() bool {
			r, ok := src.Route(dst.Addr())
			return ok && r.Cost == cost
		}
	}
	src.Eventually(Soon, "path over short", costIs(4))
	reach(t, src, dst)
	t.Log("# both links of short go down")
	short.MustDo("down 0")
	short.MustDo("down 1")
	assert.Empty(t, short.Neighbors())
	cut := time.Now()
	src.Eventually(time.Minute, "path over long1 and long2", costIs(5))
	t.Logf("# another path after %v", time.Since(cut))
	assert.Less(t, time.Since(cut), 20*time.Second, "12 s of silence and an update")
	reach(t, src, dst)
	t.Log("# the links come up again")
	short.MustDo("up 0")
	short.MustDo("up 1")
	src.Eventually(Soon, "path over short", costIs(4))
	reach(t, dst, src)
}
