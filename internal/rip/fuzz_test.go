package rip_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// FuzzInput runs a Speaker for a day. Each step of the script is a kind, a length and that many
// bytes. For any input, every sent message is well-formed, costs are at most 16, the table does not
// exceed its limit, and all learned routes are deleted at the end.
func FuzzInput(f *testing.F) {
	f.Add([]byte{0, 4, 0, 1, 0, 0, 1, 16, 0, 2, 0, 1, 0, 0, 0, 1, 10, 5, 0, 0, 255, 255, 0, 0, 3, 1, 200})
	f.Add([]byte{0, 12, 0, 2, 0, 1, 0, 0, 0, 1, 10, 5, 0, 1, 4, 1, 0, 2, 12, 0, 2, 0, 1, 0, 0, 0, 16, 10, 5, 0, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		const maxRoutes = 8
		x := newBench(t, rip.Config{MaxRoutes: maxRoutes})
		routes := map[netip.Prefix]int{}
		for len(script) >= 2 {
			kind, n := script[0], min(int(script[1]), len(script)-2)
			step := script[2 : 2+n]
			script = script[2+n:]
			x.play(kind, step)
			x.check(routes)
			require.LessOrEqual(t, len(routes), maxRoutes)
		}
		for range 40 {
			x.wait(time.Second)
			x.check(routes)
		}
		require.Empty(t, routes)
	})
}

// play executes one step of a script.
func (x *bench) play(kind byte, step []byte) {
	var first byte
	if len(step) > 0 {
		first = step[0]
	}
	switch kind % 6 {
	case 0:
		x.Input(x.now, b, 0, step)
	case 1:
		x.Input(x.now, c, 1, step)
	case 2:
		x.Input(x.now, d, 1, step)
	case 3:
		x.wait(time.Duration(first) * 100 * time.Millisecond)
	case 4:
		x.local("10.0.1.0/24", 1, first&1 == 0)
	case 5:
		x.local("10.5.0.0/16", int(first%3)-1, first&4 == 0)
	}
}

// check drains the Speaker and applies its changes.
func (x *bench) check(routes map[netip.Prefix]int) {
	x.tb.Helper()
	for ch, ok := x.NextChange(); ok; ch, ok = x.NextChange() {
		if ch.Gone {
			require.Contains(x.tb, routes, ch.Prefix)
			delete(routes, ch.Prefix)
			continue
		}
		require.True(x.tb, 1 <= ch.Cost && ch.Cost < rip.Infinity, "cost %d", ch.Cost)
		require.Equal(x.tb, ch.Prefix.Masked(), ch.Prefix)
		routes[ch.Prefix] = ch.Cost
	}
	var m rip.Message
	for x.Output(x.now, &m) {
		p, ok := rip.ParsePacket(m.Payload, nil)
		require.True(x.tb, ok)
		require.Zero(x.tb, p.Rejected)
		for i, e := range p.Entries {
			require.LessOrEqual(x.tb, e.Cost, uint32(rip.Infinity))
			require.True(x.tb, i == 0 || p.Entries[i-1].Prefix.Compare(e.Prefix) < 0,
				"entries are sorted and distinct")
		}
	}
	require.NotEqual(x.tb, clock.Never, x.Deadline())
	require.Greater(x.tb, x.Deadline(), x.now)
}
