package playground

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJoin connects two worlds, each of which has one node.
func TestJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &output{}
		worlds := map[string]*World{}
		packets := make(chan func(), 100)
		begin := func(node, network, peer string) {
			w, err := New(Config{
				Name: node, Network: network, Files: t.TempDir(), Joined: true, Print: out.print,
				Send: func(iface int, packet []byte) {
					assert.Zero(t, iface)
					packet = append([]byte{}, packet...)
					packets <- func() { assert.NoError(t, worlds[peer].Receive(0, packet)) }
				},
			})
			require.NoError(t, err)
			t.Cleanup(w.Close)
			worlds[node] = w
		}
		begin("A", "-- A.lnx --\ninterface if0 10.0.0.1/24 127.0.0.1:1\n"+
			"neighbor 10.0.0.2 at 127.0.0.1:2 via if0\n", "B")
		begin("B", "-- B.lnx --\ninterface if0 10.0.0.2/24 127.0.0.1:2\n"+
			"neighbor 10.0.0.1 at 127.0.0.1:1 via if0\n", "A")
		go func() {
			for deliver := range packets {
				deliver()
			}
		}()
		defer close(packets)
		require.NoError(t, worlds["A"].Do(&Input{Node: "A", Line: "ping 10.0.0.2 -c 2"}, nil))
		worlds["A"].Advance(3 * time.Second)
		synctest.Wait() // because the race detector does not know virtual time
		assert.Contains(t, out.of("A"), "2 received")
		require.ErrorContains(t, worlds["A"].Receive(1, []byte("x")), "interface 1")
		require.ErrorContains(t, worlds["A"].Receive(0, nil), "interface 0: ")
	})
}

func TestBadJoin(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Name: "n", Network: "link A B\n", Joined: true})
	require.ErrorContains(t, err, "n has 2 nodes: a page joins as one node")
}
