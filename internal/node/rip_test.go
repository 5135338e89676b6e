package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// Two RIPv2 routers that sign their messages exchange messages over UDP, and report their
// neighbors, routes and rejected messages.
func TestRIPv2BetweenNodes(t *testing.T) {
	p := freePorts(t, 3)
	open := func(name, format string, ports ...any) *Node {
		return start(t, Config{Seed: 1}, name, fmt.Sprintf(format, ports...))
	}
	a := open("A", `interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0
neighbor 10.0.0.3 at 127.0.0.1:%d via if0
routing rip2
rip key if0 1 md5 tide
rip originate prefix 10.7.0.0/16 metric 3 tag 9
`, p[0], p[1], p[2])
	open("C", `interface if0 10.0.0.3/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
routing rip2
rip key if0 1 md5 ebb
`, p[2], p[0])
	b := open("B", `interface if0 10.0.0.2/24 127.0.0.1:%d
neighbor 10.0.0.1 at 127.0.0.1:%d via if0
routing rip2
rip key if0 1 md5 tide
`, p[1], p[0])
	state := func(n *Node) control.RIPInfo {
		info := testenv.Ask(t, n, control.RIP{})
		return info
	}
	require.Eventually(t, func() bool {
		return len(state(b).Routes) == 2 && len(state(a).Refused) > 0
	}, 30*time.Second, time.Millisecond)
	info := state(b)
	assert.Equal(t, "rip2", info.Dialect)
	require.Len(t, info.Neighbors, 1)
	assert.Equal(t, "10.0.0.1", info.Neighbors[0].Addr.String())
	assert.Equal(t, 1, info.Neighbors[0].Routes)
	assert.Equal(t, "md5", info.Interfaces[0].Auth)
	r := info.Routes[1]
	assert.Equal(t, "10.7.0.0/16 via 10.0.0.1 from 10.0.0.1",
		r.Prefix.String()+" via "+r.NextHop.String()+" from "+r.From.String())
	assert.Equal(t, 4, r.Cost)
	assert.Equal(t, 9, r.Tag)
	assert.Equal(t, "wrong key", state(a).Refused[0].Reason)

	routes := testenv.Ask(t, b, control.Routes{})
	assert.Equal(t, control.OriginRIP, routes[1].Origin)
	assert.Equal(t, 4, routes[1].Cost)

	set := testenv.Ask(t, b, control.Set{Key: "rip.timeout", Value: "90s"})
	assert.Equal(t, "1m30s", set.Value)
	_, err := control.Ask(t.Context(), b.Operator(), control.Set{Key: "rip.timeout", Value: "9s"})
	require.ErrorIs(t, err, control.ErrUsage)
}

func TestRIPSettingsWithoutRIP(t *testing.T) {
	n := start(t, Config{}, "H", fmt.Sprintf(
		"interface if0 10.0.0.1/24 127.0.0.1:%d\n", freePorts(t, 1)[0]))
	_, err := control.Ask(t.Context(), n.Operator(), control.Set{Key: "rip.timeout", Value: "90s"})
	require.ErrorIs(t, err, control.ErrUsage)
	info := testenv.Ask(t, n, control.RIP{})
	assert.Empty(t, info.Dialect)
}
