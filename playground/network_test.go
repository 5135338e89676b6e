package playground

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder returns the files of a network of nets/ as one text.
func folder(t *testing.T, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "nets", name, "*.lnx"))
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		b.WriteString("-- " + filepath.Base(f) + " --\n" + string(text))
	}
	return b.String()
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"nat-home": "ping -c 1 10.3.0.2", "a-b-c": "ping -c 1 10.1.0.2",
		"ring": "ping -c 1 10.5.0.2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, Config{Name: name, Network: folder(t, name)}, func(t *testing.T, w *World, out *output) {
				w.Advance(20 * time.Second)
				require.NoError(t, w.Do(&Input{Node: "A", Line: line}, nil))
				w.Advance(22 * time.Second)
				assert.Contains(t, out.of("A"), "1 received")
			})
		})
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	const a = "-- A.lnx --\ninterface if0 10.0.0.1/24 127.0.0.1:1\n"
	for text, want := range map[string]string{
		"x\n" + a:                           "n:1: this text is before the first file",
		"-- a/b.lnx --\n":                   `n:1: "a/b" cannot name a node`,
		a + a:                               "n:3: A.lnx is in the network already",
		a + "-- B.lnx --\ninterfac if0\n":   "B.lnx:4:1: ",
		a + strings.ReplaceAll(a, "A", "B"): "B.lnx:4:15: 10.0.0.1 is also the address of if0 of A",
		a:                                   "n: the link of A's if0 has 1 ends",
		a + "publish 8080 10.0.0.2:80\n": "n: a browser has no real sockets: remove " +
			"`publish 8080 10.0.0.2:80` from A.lnx",
		"-- A.lnx --\ninterface t 10.0.0.1/24 tun:x\n": "n: a page has no TUN devices: remove A's t",
	} {
		require.ErrorContains(t, Check("n", text), want, "%s", text)
	}
}
