package services_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// bears sets a long patience for the tests' flows, because the machine may be busy.
var bears = control.RDTOptions{Patience: 20 * time.Second}

// tree writes files of random bytes, and returns the folder and the files' contents.
func tree(t *testing.T, sizes map[string]int) (dir string, files map[string]string) {
	t.Helper()
	dir, files = t.TempDir(), map[string]string{}
	for name, size := range sizes {
		b := make([]byte, size)
		_, _ = rand.Read(b)
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b, 0o644))
		files[name] = string(b)
	}
	return dir, files
}

func requireFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	n := 0
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, sha256.Sum256([]byte(want)), sha256.Sum256(got), name)
		n++
	}
	assert.Equal(t, len(files), n)
}

// Each object arrives unchanged over a router whose links lose, duplicate, corrupt and reorder
// packets, with every set of options. Both ends report the transfer's statistics.
func TestRDTOverABadRouter(t *testing.T) {
	t.Parallel()
	a, b, c := operatortest.Three(t, node.Config{Seed: 3})
	dir, files := tree(t, map[string]int{
		"large": 300_000, "small": 5000, "empty": 0, "sub/folder/deep": 40_000,
	})
	for i, row := range []struct {
		words          string
		server, client control.RDTOptions
	}{
		{"loss 2%", control.RDTOptions{Cumulative: true}, control.RDTOptions{Checksum: "crc32c"}},
		{"loss 15%", control.RDTOptions{Interleave: true}, control.RDTOptions{}},
		{"dup 10%", control.RDTOptions{Compress: true, Window: 16}, control.RDTOptions{}},
		{
			"corrupt 5%",
			control.RDTOptions{Timeout: 50 * time.Millisecond, Payload: 500},
			control.RDTOptions{},
		},
		{"delay 2ms reorder 10%", control.RDTOptions{Window: 1120}, control.RDTOptions{}},
	} {
		for _, iface := range []string{"if0", "if1"} {
			testenv.Ask(t, b, control.Impair{Iface: iface, Way: control.WayOut, Words: row.words})
		}
		row.server.Patience, row.client.Patience = bears.Patience, bears.Patience
		port := uint16(9000 + i)
		at := testenv.Ask(t, a, control.RDTServe{Port: port, Paths: []string{dir}, Options: row.server})
		assert.Equal(t, control.RDTServed{
			Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port), Objects: 4, Bytes: 345_000,
		}, at)
		into := t.TempDir()
		var last control.Progress
		got := testenv.Ask(t, c, control.RDTFetch{
			Addr: netip.MustParseAddr("10.0.0.1"), Port: port, Dir: into, Options: row.client,
			Progress: func(p control.Progress) { last = p },
		})
		requireFiles(t, into, files)
		require.Len(t, got.Objects, 4)
		for _, o := range got.Objects {
			assert.Empty(t, o.Problem, row.words)
			assert.Equal(t, filepath.Join(into, filepath.FromSlash(o.Name)), o.Path)
			assert.Positive(t, o.Done)
			assert.GreaterOrEqual(t, o.Done, o.Began)
			assert.LessOrEqual(t, o.Done, got.Seconds)
		}
		assert.Equal(t, int64(345_000), got.Bytes)
		assert.Equal(t, int64(345_000), last.Bytes)
		assert.Equal(t, int64(345_000), last.Total)
		assert.Greater(t, got.Received, uint64(345_000/1400))
		assert.GreaterOrEqual(t, got.Acks, got.Received)
		assert.GreaterOrEqual(t, got.Requests, uint64(2))
	}
	var sent, again uint64
	for _, f := range testenv.Ask(t, a, control.RDTFlows{}) {
		sent, again = sent+f.Sent, again+f.Again
	}
	assert.Positive(t, again)
	assert.Greater(t, sent, again)
}

// Two clients use one server at the same time. The server reports both, and lists them until it
// forgets them. Requests to a closed server are refused at once.
func TestRDTTwoClients(t *testing.T) {
	a, b, c := operatortest.Three(t, node.Config{Seed: 3})
	dir, files := tree(t, map[string]int{"one": 200_000, "two": 100_000})
	messages := make(chan string, 16)
	defer a.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok && strings.HasPrefix(m.Text, "rdt") {
			messages <- m.Text
		}
	})()
	testenv.Ask(t, a, control.RDTServe{Port: 9000, Paths: []string{
		filepath.Join(dir, "one"), filepath.Join(dir, "two"),
	}})
	into := [2]string{t.TempDir(), t.TempDir()}
	done := make(chan error, 2)
	for i, n := range []*operator.Node{b, c} {
		go func() {
			_, err := n.Do(context.Background(), control.RDTFetch{
				Addr: netip.MustParseAddr("10.0.0.1"), Port: 9000, Dir: into[i], Options: bears,
			})
			done <- err
		}()
	}
	for i := range into {
		require.NoError(t, <-done)
		assert.Contains(t, <-messages, ": 2 objects, 300000 bytes in ", i)
	}
	requireFiles(t, into[0], files)
	requireFiles(t, into[1], files)

	list := testenv.Ask(t, a, control.RDTFlows{})
	require.Len(t, list, 5, "the server, two looks at the listing, and two flows")
	assert.Equal(t, "serving", list[0].State)
	for _, f := range list[1:] {
		assert.Equal(t, "done", f.State)
	}
	assert.Equal(t, "done", testenv.Ask(t, c, control.RDTFlows{})[0].State)
	testenv.Ask(t, a, control.RDTClose{Port: 9000})
	assert.Empty(t, testenv.Ask(t, a, control.RDTFlows{}))
	_, err := a.Do(t.Context(), control.RDTClose{Port: 9000})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	to := netip.MustParseAddr("10.0.0.1")
	_, err = c.Do(t.Context(), control.RDTFetch{Addr: to, Port: 9000, Options: bears})
	require.ErrorIs(t, err, control.ErrRefused)
	_, err = c.Do(t.Context(), control.RDTList{Addr: to, Port: 9000, Options: bears})
	require.ErrorIs(t, err, control.ErrRefused)
}

// A fetch requests the named objects. With Overwrite it replaces regular files, but never a folder,
// and it never follows a link out of the folder.
func TestRDTNamesAndFiles(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	dir, files := tree(t, map[string]int{"a": 1000, "b": 2000, "sub/c": 3000})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	testenv.Ask(t, a, control.RDTServe{Port: 9000, Paths: []string{dir}})
	to := netip.MustParseAddr("10.0.0.1")
	list := testenv.Ask(t, b, control.RDTList{Addr: to, Port: 9000, Options: bears})
	require.Len(t, list, 3, "a link is no file of the folder")
	assert.Equal(t, "sub/c", list[2].Name)

	into := t.TempDir()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(into, "a"), make([]byte, 5000), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(into, "b"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(into, "sub")))
	fetch := control.RDTFetch{Addr: to, Port: 9000, Dir: into, Options: bears, Overwrite: true}
	got := testenv.Ask(t, b, fetch)
	requireFiles(t, into, map[string]string{"a": files["a"]})
	assert.Empty(t, got.Objects[0].Problem)
	assert.Contains(t, got.Objects[1].Problem, "not a regular file")
	assert.NotEmpty(t, got.Objects[2].Problem, "a link leads out")
	assert.Equal(t, int64(1000), got.Bytes)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, left)

	fetch.Dir, fetch.Names = "", []string{"sub/c", "a"}
	got = testenv.Ask(t, b, fetch)
	assert.Equal(t, "sub/c", got.Objects[0].Name)
	assert.Empty(t, got.Objects[0].Path)
	assert.Equal(t, int64(4000), got.Bytes)
	for names, want := range map[string]error{
		"a,absent,../a": control.ErrNoSuchObject, "a,a": control.ErrUsage,
	} {
		fetch.Names = strings.Split(names, ",")
		_, err = b.Do(t.Context(), fetch)
		require.ErrorIs(t, err, want)
	}
}

// A fetch creates a missing folder and reports that. It removes the folder again if no object
// arrived. It neither replaces a file by a folder nor creates missing parents.
func TestRDTCreatesTheFolder(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	dir, files := tree(t, map[string]int{"a": 1000, "sub/b": 10})
	testenv.Ask(t, a, control.RDTServe{Port: 9000, Paths: []string{dir}})
	room := t.TempDir()
	into := filepath.Join(room, "new")
	fetch := control.RDTFetch{
		Addr: netip.MustParseAddr("10.0.0.1"), Port: 9000, Dir: into, Options: bears,
		Names: []string{"none"},
	}
	_, err := b.Do(t.Context(), fetch)
	require.ErrorIs(t, err, control.ErrNoSuchObject)
	assert.NoDirExists(t, into, "nothing came")

	fetch.Names = nil
	got := testenv.Ask(t, b, fetch)
	requireFiles(t, into, files)
	assert.Equal(t, into, got.Made)
	got = testenv.Ask(t, b, fetch)
	assert.Empty(t, got.Made, "it was there")

	fetch.Dir = filepath.Join(into, "a")
	_, err = b.Do(t.Context(), fetch)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	requireFiles(t, into, files)
	fetch.Dir = filepath.Join(room, "neither", "nor")
	_, err = b.Do(t.Context(), fetch)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "create "+filepath.Join(room, "neither")+" first")
	assert.NoDirExists(t, filepath.Join(room, "neither"))
}

// An object whose name ends in .part is stored like any other and leaves no partial file. An
// existing file with the name of a partial file is kept.
func TestRDTStoresNamesEndingInPart(t *testing.T) {
	dir := t.TempDir()
	root, err := files.OpenFolder(dir)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.part"), []byte("mine"), 0o600))
	want := map[string]string{"a.part": "1", "a": "2", "b": "3"}
	for _, name := range []string{"a.part", "a", "b"} {
		require.NoError(t, services.Store(root, name, []byte(want[name]), false))
	}
	require.ErrorIs(t, services.Store(root, "b", []byte("4"), false), fs.ErrExist)
	want["b.part"] = "mine"
	requireFiles(t, dir, want)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	require.Error(t, services.Store(root, "d", nil, true))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, len(want)+1)
}

// Names that lead out of the folder are rejected, in a fetch and in a listing.
func TestRDTStoresOnlyInTheFolder(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "dir")
	require.NoError(t, os.Mkdir(dir, 0o755))
	root, err := files.OpenFolder(dir)
	require.NoError(t, err)
	defer root.Close()
	for _, name := range []string{"../up", "/abs", "a/../../up"} {
		require.Error(t, services.Store(root, name, []byte("x"), true), name)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	a, _ := operatortest.Two(t, node.Config{})
	_, err = services.ServeRDT(a.Node, netip.MustParseAddrPort("0.0.0.0:0"), rdt.Config{},
		[]rdt.Object{services.NewObject("../up", nil)}, nil)
	require.ErrorIs(t, err, control.ErrUsage)
}

func TestRDTRequestsThatFail(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	dir, _ := tree(t, map[string]int{"a": 10})
	same := filepath.Join(dir, "a")
	to := netip.MustParseAddr("10.0.0.2")
	for _, req := range []any{
		control.RDTServe{Port: 9000},
		control.RDTServe{Port: 9000, Paths: []string{t.TempDir()}},
		control.RDTServe{Port: 9000, Paths: []string{same, same}},
		control.RDTServe{Port: 9000, Paths: []string{dir}, Options: control.RDTOptions{Window: -1}},
		control.RDTServe{Port: 9000, Paths: []string{dir}, Options: control.RDTOptions{Payload: 70_000}},
		control.RDTFetch{Addr: to, Port: 9000, Options: control.RDTOptions{Checksum: "sha1"}},
		control.RDTFetch{Addr: to, Options: bears},
		control.RDTFetch{Addr: netip.MustParseAddr("10.0.0.255"), Port: 9000, Options: bears},
		control.RDTList{Addr: to, Port: 9000, Options: control.RDTOptions{Patience: -1}},
	} {
		_, err := a.Do(t.Context(), req)
		require.ErrorIs(t, err, control.ErrUsage, "%+v", req)
	}
	_, err := a.Do(t.Context(), control.RDTServe{Port: 9000, Paths: []string{dir + "/absent"}})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = a.Do(t.Context(), control.RDTServe{Port: 9000, Paths: []string{os.DevNull}})
	require.ErrorContains(t, err, "not a regular file")
	testenv.Ask(t, b, control.RDTServe{Port: 9000, Paths: []string{dir}})
	_, err = b.Do(t.Context(), control.RDTServe{Port: 9000, Paths: []string{dir}})
	require.ErrorIs(t, err, control.ErrPortInUse)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Do(canceled, control.RDTFetch{Addr: to, Port: 9000, Options: bears})
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.Do(canceled, control.RDTServe{Port: 9001, Paths: []string{dir}})
	require.ErrorIs(t, err, context.Canceled)
}
