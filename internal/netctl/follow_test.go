package netctl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFollowReportsChanges checks that Follow reports every change of the nodes, and nothing else.
func TestFollowReportsChanges(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A", "B"}})
	synctest.Test(t, func(t *testing.T) {
		n, err := s.Network("one")
		require.NoError(t, err)
		var told [][]Member
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Follow(ctx, n, func(n *Network) { told = append(told, n.Members()) })
		see := func(want ...[]Member) {
			t.Helper()
			time.Sleep(2 * followTime) // virtual time: the test does not wait
			synctest.Wait()
			assert.Equal(t, want, told)
			told = nil
		}
		see()
		now, err := s.load("one")
		require.NoError(t, err)
		require.NoError(t, now.save(now.manifest))
		see() // the record is unchanged
		now.Nodes = append(now.Nodes, Member{Name: "C"})
		require.NoError(t, now.save(now.manifest))
		see(now.Nodes)
		now.Nodes[0].SHA256 = "another"
		require.NoError(t, now.save(now.manifest))
		see(now.Nodes)
		require.NoError(t, os.Remove(filepath.Join(now.dir, manifestName)))
		see() // the network is down
		now.Nodes = now.Nodes[:1]
		require.NoError(t, now.save(now.manifest))
		see(now.Nodes)
	})
}
