package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// expect runs do, and waits for the event that a neighbor has the wanted state.
func expect(t *testing.T, n *Node, do func(), want control.NeighborState) control.NeighborChanged {
	t.Helper()
	told := make(chan control.NeighborChanged, 64)
	defer n.Watch(func(e control.Event) {
		if c, ok := e.(control.NeighborChanged); ok {
			told <- c
		}
	})()
	do()
	for {
		select {
		case c := <-told:
			if c.Neighbor.State == want {
				return c
			}
		case <-t.Context().Done():
			require.Fail(t, "no event", "want %s", want)
		}
	}
}

// eventually waits until other goroutines have made a condition true.
func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, 2*time.Millisecond, what)
}

// A router whose neighbor ends without a last RIP update gets an ICMP error from the kernel. The
// router reports that once, withdraws the routes at once although they would never expire, and sees
// the neighbor when it is back.
func TestLostNeighborWithdrawsRoutes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skip: needs Linux")
	}
	p := freePorts(t, 3)
	router := func(i, own, peer int, more string) string {
		return fmt.Sprintf(`interface if0 10.0.0.%d/24 127.0.0.1:%d
neighbor 10.0.0.%d at 127.0.0.1:%d via if0
routing rip
rip advertise-to 10.0.0.%d
rip periodic-update-rate 50
rip route-timeout-threshold 3600000
%s`, i, own, 3-i, peer, 3-i, more)
	}
	textB := router(2, p[1], p[0], fmt.Sprintf("interface if1 10.2.0.1/24 127.0.0.1:%d\n", p[2]))
	for _, keep := range []bool{false, true} {
		more := ""
		if keep {
			more = "rip withdraw-refused off\n"
		}
		a := start(t, Config{}, "A", router(1, p[0], p[1], more))
		b := start(t, Config{}, "B", textB)
		learned := func() bool { return len(ask(t, a, control.Routes{})) == 2 }
		eventually(t, learned, "B's network")
		eventually(t, func() bool {
			return ask(t, a, control.Neighbors{})[0].State == control.NeighborUp
		}, "B is up")
		c := expect(t, a, func() {
			// to the other node, the neighbor looks killed
			ask(t, b, control.Impair{Iface: "if0", Way: control.WayOut, Words: "loss 100%"})
			require.NoError(t, b.Close())
		}, control.NeighborRefused)
		assert.Equal(t, control.NeighborUp, c.Was)
		assert.Equal(t, []any{"if0", "10.0.0.2"}, []any{c.Neighbor.Iface, c.Neighbor.Addr.String()})
		if keep {
			assert.True(t, learned(), "the route stays until it expires")
		} else {
			eventually(t, func() bool { return !learned() }, "withdrawn")
		}
		expect(t, a, func() { b = start(t, Config{}, "B", textB) }, control.NeighborUp)
		eventually(t, learned, "B's network is learned again")
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// Each step changes a neighbor's counters of packets: received, sent, and refused.
func TestNeighborStates(t *testing.T) {
	const (
		unknown = control.NeighborUnknown
		up      = control.NeighborUp
		silent  = control.NeighborSilent
		refused = control.NeighborRefused
		cannot  = control.NeighborUnreachable
	)
	type step struct {
		second             int
		heard, sent, fails uint64
		want               control.NeighborState
	}
	for name, steps := range map[string][]step{
		"idle":             {{1, 0, 0, 0, unknown}, {100, 0, 0, 0, unknown}},
		"heard, then idle": {{1, 1, 0, 0, up}, {1000, 0, 0, 0, up}},
		"never answers": {{1, 0, 1, 0, unknown}, {10, 0, 1, 0, unknown}, {
			16, 0, 0, 0,
			silent,
		}, {20, 1, 0, 0, up}},
		"answers late": {{1, 1, 0, 0, up}, {2, 0, 1, 0, up}, {16, 1, 1, 0, up}, {
			40, 0, 0,
			0, up,
		}},
		"refuses, then is heard": {{1, 0, 1, 1, refused}, {2, 0, 0, 0, refused}, {9, 1, 0, 0, up}},
		"refuses, then accepts": {{1, 0, 1, 1, refused}, {9, 0, 1, 0, refused}, {
			11, 0, 0, 0,
			refused,
		}, {12, 0, 1, 0, unknown}},
		"refuses repeatedly": {{1, 1, 1, 1, refused}, {5, 0, 1, 1, refused}, {
			9, 0, 1, 1,
			refused,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var c Clock
			n, _ := driven(t, &c, "")
			w := &neighbor{state: unknown, addr: netip.MustParseAddr("10.0.0.2")}
			w.last.UDP = netip.MustParseAddrPort("127.0.0.1:1")
			for _, s := range steps {
				now := clock.Time(s.second) * clock.Time(time.Second)
				info := w.last
				info.Heard += s.heard
				info.Sent += s.sent
				info.Refused += s.fails
				n.Neighbors.update(now, w, info)
				require.Equal(t, s.want, w.state, "second %d", s.second)
			}
		})
	}
	w := &neighbor{state: up}
	w.last.UDP = netip.MustParseAddrPort("127.0.0.1:1")
	before := w.last
	w.last.Problem = errors.New("network is unreachable")
	assert.Equal(t, cannot, w.nextState(1, &before, time.Second))
	w.last.UDP = netip.AddrPort{}
	assert.Equal(t, control.NeighborUnresolved, w.nextState(1, &before, time.Second))
}

// A packet sent before a neighbor has started is refused, and the error may be read after the
// neighbor's first update. RIP then requests the neighbor's routes, because its next update may be
// a period away.
func TestLateICMPErrorKeepsTheRoutes(t *testing.T) {
	var c Clock
	n, _ := driven(t, &c, "routing rip\nrip advertise-to 10.0.0.2\n"+
		"rip periodic-update-rate 1800000\nrip route-timeout-threshold 3600000\n")
	requests := func() uint64 { return n.stack.RIPs()[0].Speaker().Counters().RequestsOut }
	c.Advance(time.Second)
	require.EqualValues(t, 1, requests())
	require.NoError(t, n.Call(func(_ *stack.Stack, now clock.Time) error {
		w := &neighbor{addr: netip.MustParseAddr("10.0.0.2")}
		w.last.UDP = netip.MustParseAddrPort("127.0.0.1:2")
		info := w.last
		info.Heard++
		n.Neighbors.update(now, w, info)
		assert.Equal(t, control.NeighborUp, w.state)
		info.Refused++
		n.Neighbors.update(now, w, info)
		assert.Equal(t, control.NeighborRefused, w.state)
		return nil
	}))
	c.Advance(time.Second)
	assert.EqualValues(t, 2, requests())
}

// A neighbor whose host name changes its address is found again. The loop never waits for the
// resolver. A name that no longer resolves keeps its address.
func TestNeighborNameChangesItsAddress(t *testing.T) {
	p := freePorts(t, 2)
	names := make(chan netip.Addr, 1)
	var last netip.Addr
	lookup := func(ctx context.Context, _, host string) (netip.Addr, error) {
		assert.Equal(t, "bee.example", host)
		select {
		case last = <-names:
		case <-ctx.Done():
			return netip.Addr{}, ctx.Err()
		default:
		}
		if !last.IsValid() {
			return last, errors.New("no such host")
		}
		return last, nil
	}
	a := start(t, Config{lookup: lookup, resolveEvery: 5 * time.Millisecond}, "A", fmt.Sprintf(
		"interface if0 10.0.0.1/24 127.0.0.1:%d\nneighbor 10.0.0.2 at bee.example:%d via if0\n", p[0], p[1]))
	nb := func() control.Neighbor { return ask(t, a, control.Neighbors{})[0] }
	eventually(t, func() bool { return nb().State == control.NeighborUnresolved },
		"the name has no address yet")
	assert.Equal(t, "host bee.example: no such host", nb().Problem)
	assert.Equal(t, "A.lnx:2", nb().Line)

	names <- netip.MustParseAddr("127.0.0.2")
	eventually(t, func() bool { return nb().UDP == fmt.Sprintf("127.0.0.2:%d", p[1]) },
		"the name resolves")
	b := start(t, Config{}, "B", fmt.Sprintf(
		"interface if0 10.0.0.2/24 127.0.0.3:%d\nneighbor 10.0.0.1 at 127.0.0.1:%d via if0\n", p[1], p[0]))
	names <- netip.MustParseAddr("127.0.0.3")
	eventually(t, func() bool { return nb().UDP == fmt.Sprintf("127.0.0.3:%d", p[1]) },
		"the new address is used")
	r := ask(t, a, control.Ping{Addr: netip.MustParseAddr("10.0.0.2"), Count: 1})
	assert.Equal(t, 1, r.Received)
	names <- netip.Addr{}
	eventually(t, func() bool { return nb().Problem != "" }, "the name no longer resolves")
	assert.Equal(t, fmt.Sprintf("127.0.0.3:%d", p[1]), nb().UDP, "the last good address")
	assert.Equal(t, control.NeighborUp, nb().State)
	require.NoError(t, b.Close())
}
