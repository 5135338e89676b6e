package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// Network is a folder of .lnx files on free UDP ports, and the nodes started from them.
type Network struct {
	t     *testing.T
	Dir   string
	nodes map[string]*Node
}

// CopyNetwork copies the .lnx files of a folder of the source tree and gives them free ports.
func CopyNetwork(t *testing.T, folder ...string) *Network {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Path(folder...), "*.lnx"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no .lnx files in %s", filepath.Join(folder...))
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(file), ".lnx")] = string(text)
	}
	return NewNetwork(t, texts)
}

// NewNetwork writes .lnx files, given by the nodes' names, with free ports.
func NewNetwork(t *testing.T, texts map[string]string) *Network {
	t.Helper()
	n := &Network{t: t, Dir: t.TempDir(), nodes: map[string]*Node{}}
	ports := map[string]string{}
	for name, text := range texts {
		n.write(name, movePorts(t, text, ports))
	}
	return n
}

func (n *Network) write(name, text string) {
	n.t.Helper()
	require.NoError(n.t, os.WriteFile(n.File(name), []byte(text), 0o644))
}

// File returns the path of a node's .lnx file.
func (n *Network) File(name string) string { return filepath.Join(n.Dir, name+".lnx") }

// Append adds lines to a node's .lnx file.
func (n *Network) Append(name string, lines ...string) {
	n.t.Helper()
	text, err := os.ReadFile(n.File(name))
	require.NoError(n.t, err)
	n.write(name, string(text)+"\n"+strings.Join(lines, "\n")+"\n")
}

// Names returns the nodes that have a file.
func (n *Network) Names() []string {
	n.t.Helper()
	files, err := filepath.Glob(n.File("*"))
	require.NoError(n.t, err)
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".lnx"))
	}
	return names
}

// Start starts a node. args precede the node's file on the command line.
func (n *Network) Start(name string, args ...string) *Node {
	n.t.Helper()
	node := Start(n.t, n.File(name), args...)
	n.nodes[name] = node
	return node
}

// StartAll starts every node of the folder.
func (n *Network) StartAll(args ...string) *Network {
	n.t.Helper()
	for _, name := range n.Names() {
		n.Start(name, args...)
	}
	return n
}

// Node returns a running node.
func (n *Network) Node(name string) *Node {
	n.t.Helper()
	require.Contains(n.t, n.nodes, name, "that node was not started")
	return n.nodes[name]
}

var (
	// hostColonPort matches a UDP address in the form that all grammars except one use. hostPort
	// matches the other form, HOST PORT at the beginning of a line.
	hostColonPort = regexp.MustCompile(`\b(localhost|127\.0\.0\.1):(\d+)`)
	hostPort      = regexp.MustCompile(`(?m)^((?:localhost|127\.0\.0\.1)[ \t]+)(\d+)`)
)

// movePorts replaces every UDP port of a file with a free one, consistently.
func movePorts(t *testing.T, text string, ports map[string]string) string {
	t.Helper()
	move := func(old string) string {
		if ports[old] == "" {
			ports[old] = strconv.Itoa(int(testenv.FreePort(t)))
		}
		return ports[old]
	}
	text = hostColonPort.ReplaceAllStringFunc(text, func(s string) string {
		m := hostColonPort.FindStringSubmatch(s)
		return m[1] + ":" + move(m[2])
	})
	return hostPort.ReplaceAllStringFunc(text, func(s string) string {
		m := hostPort.FindStringSubmatch(s)
		return m[1] + move(m[2])
	})
}
