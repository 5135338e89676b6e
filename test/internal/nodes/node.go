package nodes

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Soon is how long something may take that takes milliseconds on a machine with nothing else to do.
// Under the race detector it is more.
const Soon = 20*time.Second + 40*time.Second*race

// Node is a node process whose shell reads from a pipe.
type Node struct {
	t     *testing.T
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *output
	ended chan struct{} // closed when the process has ended
	code  int           // its exit status then

	mu   sync.Mutex // one question at a time
	addr netip.Addr // once asked for
}

// Start starts a node from an .lnx file; args go in front of it. The test's end ends the node, and
// a node that crashed fails the test.
func Start(t *testing.T, file string, args ...string) *Node {
	t.Helper()
	args = append([]string{"run", "--keep-going"}, args...)
	cmd := Command(append(args, file)...)
	n := &Node{
		t: t, Name: strings.TrimSuffix(filepath.Base(file), ".lnx"),
		cmd: cmd, out: newOutput(), ended: make(chan struct{}),
	}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	n.stdin, cmd.Stdout, cmd.Stderr = stdin, w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(n.cleanup)
	go func() {
		n.out.collect(r)
		_ = r.Close()
		_ = cmd.Wait() // the status says it all
		n.code = cmd.ProcessState.ExitCode()
		close(n.ended)
	}()
	n.Fence()
	return n
}

// PID is the process's number.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// crashes are the words with which a Go program, or the shell, tells of one.
var crashes = []string{"panic:", "BUG:", "fatal error:", "DATA RACE", "internal error"}

// cleanup ends the process and looks at what it leaves behind.
func (n *Node) cleanup() {
	if n.t.Failed() {
		n.autopsy()
	}
	n.Kill()
	for _, text := range n.Lines(0) {
		for _, sign := range crashes {
			assert.NotContains(n.t, text, sign, "node %s", n.Name)
		}
	}
}

// autopsy logs what a failed test's reader wants to know of the node.
func (n *Node) autopsy() {
	select {
	case <-n.ended:
		n.t.Logf("node %s had ended with status %d", n.Name, n.code)
	default:
		n.Command("sockets -i")
		n.Command("interfaces -s")
		n.Command("routes")
		mark := n.out.mark()
		n.Command(fenceCommand)
		n.out.await(mark, 2*time.Second, isFence)
	}
	n.t.Logf("node %s, the last it said:\n%s", n.Name, n.out.last(60))
}

// Kill ends the process at once, as a power cut does.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended by itself
	<-n.ended
}

// Command types a line into the shell.
func (n *Node) Command(format string, args ...any) {
	// A node that has ended cannot read; whoever waits for the answer will see that.
	_, _ = io.WriteString(n.stdin, fmt.Sprintf(format, args...)+"\n")
}

// Mark is a place in the node's output: all that was printed so far is before it.
type Mark int

// Mark marks the present end of the output.
func (n *Node) Mark() Mark { return Mark(n.out.mark()) }

// Await waits for a line behind the mark that matches a regular expression and returns the match
// with its groups.
func (n *Node) Await(from Mark, within time.Duration, pattern string) []string {
	n.t.Helper()
	re := regexp.MustCompile(pattern)
	text, ok := n.out.await(int(from), within, re.MatchString)
	if !ok {
		n.t.Fatalf("node %s did not say %q within %v", n.Name, pattern, within)
	}
	return re.FindStringSubmatch(text)
}

// Lines returns the lines behind the mark.
func (n *Node) Lines(from Mark) []string { return n.out.since(int(from)) }

// fenceCommand is a question whose answer nothing else looks like.
const fenceCommand = "show tcp.options --json"

func isFence(text string) bool { return strings.HasPrefix(text, `[{"key":"tcp.options"`) }

// Fence waits until the shell has carried out every line that was typed so far.
func (n *Node) Fence() { n.FenceWithin(Soon) }

// FenceWithin is Fence with a time limit of its own.
func (n *Node) FenceWithin(within time.Duration) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	mark := n.out.mark()
	n.Command(fenceCommand)
	if _, ok := n.out.await(mark, within, isFence); !ok {
		n.t.Fatalf("node %s did not come back to its shell within %v", n.Name, within)
	}
}

// Do types a line, waits until it is carried out and returns what was answered and what was
// complained of.
func (n *Node) Do(format string, args ...any) (answer, complaints []string) {
	n.t.Helper()
	mark := n.Mark()
	n.Command(format, args...)
	n.Fence()
	lines := n.Lines(mark)
	return answers(lines), Complaints(lines)
}

// MustDo is Do for a line that must not fail.
func (n *Node) MustDo(format string, args ...any) []string {
	n.t.Helper()
	answer, complaints := n.Do(format, args...)
	require.Empty(n.t, complaints, "node %s: %s", n.Name, fmt.Sprintf(format, args...))
	return answer
}

// Quit ends the shell's input and returns the exit status.
func (n *Node) Quit(within time.Duration) int {
	n.t.Helper()
	_ = n.stdin.Close() // a second time is no harm
	return n.Exit(within)
}

// Exit waits for the node's end and returns the exit status.
func (n *Node) Exit(within time.Duration) int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(within):
		n.t.Fatalf("node %s did not end within %v", n.Name, within)
	}
	return n.code
}
