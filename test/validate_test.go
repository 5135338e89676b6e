package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// broken lists files with errors, and the positions of the errors, LINE:COL.
var broken = map[string]struct {
	text string
	at   []string
}{
	"word.lnx": {
		"interface if0 10.0.0.1/24 127.0.0.1:5000\nfrobnicate\nrouting rpi\n", []string{"2:1", "3:9"},
	},
	"address.lnx": {
		"interface if0 10.0.0.300/24 127.0.0.1:5000\ninterface if1 10.1.0.1/33 127.0.0.1:5001\n" +
			"interface if2 10.2.0.1/24 127.0.0.1:70000\n",
		[]string{"1:15", "2:24", "3:37"},
	},
	"twice.lnx": {
		"interface if0 10.0.0.1/24 127.0.0.1:5000\ninterface if0 10.1.0.1/24 127.0.0.1:5001\n" +
			"interface if2 10.0.0.9/16 127.0.0.1:5000\n",
		[]string{"2:11", "3:15", "3:27"},
	},
	"neighbor.lnx": {
		"interface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor 10.9.0.2 at 127.0.0.1:5001 via if0\n" +
			"neighbor 10.0.0.2 at 127.0.0.1:5001 via if7\n",
		[]string{"2:10", "3:41"},
	},
	"old.lnx": {
		"localhost 5001\nlocalhost 5000 192.168.0.2\nlocalhost fifty 192.168.0.3 192.168.0.4\n",
		[]string{"2:", "3:11"},
	},
	"empty.lnx": {"", []string{""}},
	"binary.lnx": {
		"interface if0 10.0.0.1/24 127.0.0.1:5000\n\x00\xff\x1b[31m\n", []string{"2:1"},
	},
}

func TestValidateReportsEveryError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for name, b := range broken {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(b.text), 0o644))
		files = append(files, file)
	}
	for how, args := range map[string][]string{"files": files, "folder": {dir}} {
		r := node(t, "", append([]string{"validate"}, args...)...)
		assert.Equal(t, 2, r.code, how)
		all := r.out + r.err
		assert.NotContains(t, all, "\x1b", "%s: no control characters", how)
		for name, b := range broken {
			for _, at := range b.at {
				assert.Contains(t, all, filepath.Join(dir, name)+":"+at, how)
			}
		}
	}
	t.Log("# a missing file is an error")
	r := node(t, "", "validate", filepath.Join(dir, "missing.lnx"))
	assert.NotZero(t, r.code)
	assert.Contains(t, r.err+r.out, "missing.lnx")

	t.Log("# run rejects a broken file too")
	r = node(t, "interfaces\n", "run", filepath.Join(dir, "twice.lnx"))
	assert.NotZero(t, r.code)
	assert.Contains(t, r.err, "twice.lnx:3:15")
	assert.Empty(t, r.out)
}

func TestValidateAcceptsOurNetworks(t *testing.T) {
	t.Parallel()
	r := node(t, "", "validate", Path("nets"))
	assert.Zero(t, r.code, "%s%s", r.out, r.err)
	assert.Contains(t, r.out, "0 errors")
}
