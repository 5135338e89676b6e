package node

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// steps sends the same request to several nodes.
func steps(t *testing.T, r control.Reload, list ...*Node) (changes []string) {
	t.Helper()
	for _, n := range list {
		done, err := n.Reload(r, nil)
		require.NoError(t, err)
		changes = append(changes, done.Changes...)
	}
	return changes
}

// isFree reports whether a UDP port is free.
func isFree(port int) bool {
	c, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = c.Close() // the test only checks whether it can be bound
	return true
}

// Two nodes exchange ports in two steps, and exchange them back, while a connection stays open.
func TestTwoNodesSwapPorts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg Config) {
		p := freePorts(t, 2)
		line := func(own, at, other, there int) string {
			return fmt.Sprintf("interface if0 10.0.0.%d/24 127.0.0.1:%d\n"+
				"neighbor 10.0.0.%d at 127.0.0.1:%d via if0\nlink if0 delay 1ms\n", own, at, other, there)
		}
		textA, textB := line(1, p[0], 2, p[1]), line(2, p[1], 1, p[0])
		a, b := reloadableNode(t, cfg, "A", &textA), reloadableNode(t, cfg, "B", &textB)
		client, server := connect(t, a, b, "10.0.0.2:80")
		more, stop := flow(t, client, server)
		more()
		_, err := a.Reload(control.Reload{Undo: true}, nil)
		require.ErrorIs(t, err, control.ErrUsage)
		require.ErrorContains(t, err, "no change to undo")

		textA, textB = line(1, p[1], 2, p[0]), line(2, p[0], 1, p[1])
		_, err = a.Reload(control.Reload{}, nil)
		require.ErrorContains(t, err, "address already in use")
		more()
		assert.Equal(t, []string{"released: UDP port of if0", "released: UDP port of if0"},
			steps(t, control.Reload{Release: true}, a, b))
		assert.True(t, isFree(p[0]) && isFree(p[1]))
		assert.Empty(t, steps(t, control.Reload{Release: true}, a),
			"the second request releases nothing")
		steps(t, control.Reload{}, a, b)
		more()
		udp := func(n *Node) string {
			faces := testenv.Ask(t, n, control.Interfaces{})
			return faces[0].UDP
		}
		assert.Equal(t, fmt.Sprintf("127.0.0.1:%d", p[1]), udp(a))
		assert.False(t, isFree(p[0]) || isFree(p[1]))

		t.Log("# and back")
		steps(t, control.Reload{Release: true, Undo: true}, a, b)
		steps(t, control.Reload{Undo: true}, a, b)
		more()
		assert.Equal(t, fmt.Sprintf("127.0.0.1:%d", p[0]), udp(a))
		list := testenv.Ask(t, a, control.Impairments{Iface: "if0"})
		assert.Equal(t, "delay 1ms", list[0].Words, "the impairment stays with its link")
		stop()
	})
}

// A node takes its ports back if there is no second step.
func TestReleasedPortsAreTakenBack(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		p := freePorts(t, 3)
		text := fmt.Sprintf("socket shared\ninterface if0 10.0.0.1/24 127.0.0.1:%[1]d\n"+
			"neighbor 10.0.0.2 at 127.0.0.1:%[2]d via if0\n"+
			"interface if1 10.1.0.1/24 127.0.0.1:%[1]d\n"+
			"neighbor 10.1.0.2 at 127.0.0.1:%[3]d via if1\n", p[0], p[1], p[2])
		a := reloadableNode(t, cfg, "A", &text)
		b := start(t, cfg, "B", fmt.Sprintf("interface if0 10.0.0.2/24 127.0.0.1:%d\n"+
			"neighbor 10.0.0.1 at 127.0.0.1:%d via if0\n", p[1], p[0]))
		client, server := connect(t, a, b, "10.0.0.2:80")
		more, stop := flow(t, client, server)
		more()
		open := true
		forward := func(_, now *lnx.Config) []Change {
			if len(now.Interfaces) > 0 {
				return nil
			}
			return []Change{{
				Text: "a port forward", Frees: true, Do: func() error { open = false; return nil },
				Undo: func() { open = true },
			}}
		}
		done, err := a.Reload(control.Reload{Release: true, All: true}, forward)
		require.NoError(t, err)
		assert.Equal(t, []string{
			"a port forward", "released: UDP port of if0", "released: UDP port of if1",
		}, done.Changes)
		assert.False(t, open)
		require.True(t, isFree(p[0]))
		reloaderOf(a).TakeBack()
		assert.True(t, open)
		assert.False(t, isFree(p[0]))
		more()
		reloaderOf(a).TakeBack() // there is nothing left to take back
		more()

		t.Log("# a reload of the same file is a second step, too")
		steps(t, control.Reload{Release: true, All: true}, a)
		assert.Empty(t, steps(t, control.Reload{}, a))
		more()
		for _, r := range []control.Reload{
			{All: true},
			{Try: true, Undo: true},
			{Try: true, Release: true},
			{Release: true, All: true, Undo: true},
		} {
			_, err := a.Reload(r, nil)
			require.ErrorIs(t, err, control.ErrUsage, r)
		}
		stop()
	})
}
