package netctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The processes themselves are tested in test/, with the program that they run.

func state(t *testing.T, networks map[string][]string) *State {
	t.Helper()
	s, err := OpenState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	for name, nodes := range networks {
		n := &Network{dir: filepath.Join(s.Root(), name)}
		n.manifest.Name = name
		for _, node := range nodes {
			n.manifest.Nodes = append(n.manifest.Nodes, Member{Name: node})
		}
		require.NoError(t, os.MkdirAll(n.dir, 0o700))
		require.NoError(t, n.save())
	}
	return s
}

func TestNodesAreFoundByName(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A", "B"}, "two": {"A", "C"}})
	for ref, want := range map[string]string{"B": "one", "C": "two", "two/A": "two", "one/A": "one"} {
		got, err := s.Find(ref)
		require.NoError(t, err, ref)
		assert.Equal(t, want, got.Network)
		assert.Equal(t, filepath.Join(s.Root(), want, got.Node+".sock"), got.Socket)
	}
	_, err := s.Find("A")
	require.ErrorIs(t, err, ErrAmbiguous)
	require.EqualError(t, err, "A: which one: one/A, two/A")
	_, err = s.Find("one/C")
	require.ErrorIs(t, err, ErrNoNode)
	require.EqualError(t, err, "one/C: no such node: there is one/A, one/B, two/A, two/C")
	_, err = state(t, nil).Find("A")
	require.ErrorContains(t, err, "no network is up; `node net up FOLDER` brings one up")
}

func TestNetworksAreFoundByName(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A"}, "two": {"A"}})
	n, err := s.Network("two")
	require.NoError(t, err)
	assert.Equal(t, "two", n.Name())
	_, err = s.Network("")
	require.ErrorIs(t, err, ErrAmbiguous)
	_, err = s.Network("three")
	require.EqualError(t, err, "no such network as three: there is one, two")
	only, err := state(t, map[string][]string{"one": {"A"}}).Network("")
	require.NoError(t, err)
	assert.Equal(t, "one", only.Name())
	_, err = state(t, nil).Network("")
	require.ErrorIs(t, err, ErrNoNetwork)
}

// TestWhatIsNoNetwork: other things in the folder are passed over, a broken one is told.
func TestWhatIsNoNetwork(t *testing.T) {
	s := state(t, map[string][]string{"one": {"A"}})
	require.NoError(t, os.MkdirAll(filepath.Join(s.Root(), "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Root(), ".x.lock"), nil, 0o600))
	list, err := s.Networks()
	require.NoError(t, err)
	assert.Len(t, list, 1)
	path := filepath.Join(s.Root(), "one", manifestName)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = s.Networks()
	require.ErrorContains(t, err, path+": ")
	require.ErrorContains(t, err, "remove the folder if its nodes have ended")
}

func TestNames(t *testing.T) {
	for _, name := range []string{"A", "R1-2", "a.b", "_x", "9"} {
		require.NoError(t, CheckName(name), name)
	}
	for _, name := range []string{"", ".", "..", ".x", "-x", "a/b", "a b", "é", "a\n"} {
		require.ErrorIs(t, CheckName(name), ErrUsage, "%q", name)
	}
}

// TestOneCommandAtATime works on a network.
func TestOneCommandAtATime(t *testing.T) {
	s := state(t, nil)
	leave, err := s.enter(t.Context(), "one")
	require.NoError(t, err)
	if locks {
		_, err = s.enter(t.Context(), "one")
		require.ErrorIs(t, err, ErrBusy)
	}
	other, err := s.enter(t.Context(), "two")
	require.NoError(t, err)
	other()
	leave()
	leave, err = s.enter(t.Context(), "one")
	require.NoError(t, err)
	leave()
}

// TestAFolderOfOthers is refused.
func TestAFolderOfOthers(t *testing.T) {
	if !locks {
		return // this system has other ways to say whose a folder is
	}
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777)) //nolint:gosec // that is the point
	_, err := OpenState(open)
	require.ErrorIs(t, err, ErrUsage)
	require.ErrorContains(t, err, "others may write to it; choose another with --state")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	_, err = OpenState(link)
	require.ErrorContains(t, err, "it is no folder")
}

// TestTheEndOfALog has so many lines and no more, however long the log is.
func TestTheEndOfALog(t *testing.T) {
	n := &Network{dir: t.TempDir()}
	assert.Empty(t, n.lastWords("A", 3, 0))
	require.NoError(t, os.WriteFile(n.Log("A"), []byte("one\ntwo\nthree\nfour\n\n"), 0o600))
	assert.Equal(t, []string{"two", "three", "four"}, n.lastWords("A", 3, 0))
	assert.Equal(t, []string{"four"}, n.lastWords("A", 3, 14), "of what came later")
	long := make([]byte, 3*logTail)
	for i := range long {
		long[i] = 'x'
	}
	require.NoError(t, os.WriteFile(n.Log("A"), append(long, "\nend\n"...), 0o600))
	last := n.lastWords("A", 3, 0)
	assert.Len(t, last, 2)
	assert.Equal(t, "end", last[1])
	assert.Less(t, len(last[0]), logTail)
}
