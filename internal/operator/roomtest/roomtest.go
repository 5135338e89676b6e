// Package roomtest has a node with one room on top, for the tests of rooms: package operator has
// them all, and so cannot be had by any of them.
package roomtest

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/requests"
)

// Room answers the requests that it knows, and control.ErrUnsupported to all others.
type Room interface {
	Do(ctx context.Context, req any) (any, error)
}

// Host is a node with one room on top. It is a control.Operator.
type Host struct {
	*node.Node
	room, requests Room
}

// Build makes a node's room.
type Build func(n *node.Node, name string) Room

// Start opens the node of a file, which ends with the test, and makes its room.
func Start(tb testing.TB, cfg node.Config, file *lnx.Config, build Build) *Host {
	tb.Helper()
	cfg.LNX = file
	n, err := node.Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close()) })
	return &Host{n, build(n, file.Name), requests.New(n)}
}

// Two starts 10.0.0.1 and 10.0.0.2.
func Two(tb testing.TB, cfg node.Config, build Build) (a, b *Host) {
	tb.Helper()
	fa, fb := testenv.TwoNodes(tb)
	return Start(tb, cfg, fa, build), Start(tb, cfg, fb, build)
}

// Three starts A - B - C: 10.0.0.1, a router, 10.1.0.2.
func Three(tb testing.TB, cfg node.Config, build Build) (a, b, c *Host) {
	tb.Helper()
	fa, fb, fc := testenv.ThreeNodes(tb)
	return Start(tb, cfg, fa, build), Start(tb, cfg, fb, build), Start(tb, cfg, fc, build)
}

// Do has the node answer what is not for the room.
func (h *Host) Do(ctx context.Context, req any) (any, error) {
	answer, err := h.room.Do(ctx, req)
	if errors.Is(err, control.ErrUnsupported) {
		return h.requests.Do(ctx, req)
	}
	return answer, err
}

// TheHost is the second of two nodes.
var TheHost = netip.MustParseAddr("10.0.0.2")

// NoSockets waits until the host has none but listeners.
func (h *Host) NoSockets(tb testing.TB) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		for _, s := range testenv.Ask(tb, h, control.Sockets{}) {
			if s.State != "LISTEN" && s.State != "TIME_WAIT" {
				return false
			}
		}
		return len(testenv.Ask(tb, h, control.RCPSockets{})) == 0
	}, time.Minute, 10*time.Millisecond)
}
