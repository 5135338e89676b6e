package e2e_test

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

// Soon is the time limit for steps that take milliseconds on an idle machine. It is longer under
// the race detector.
const Soon = 20*time.Second + 40*time.Second*race

// Node is a node process whose shell reads from a pipe.
type Node struct {
	t     *testing.T
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *output
	ended chan struct{} // closed when the process has exited
	code  int           // the exit status

	mu    sync.Mutex   // locked during a command and its answer
	addrs []netip.Addr // cached
}

// Start starts a node from an .lnx file; args precede the file. The node is stopped at the end of
// the test. If the node has crashed, the test fails.
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
		_ = cmd.Wait() // the exit status is taken below
		n.code = cmd.ProcessState.ExitCode()
		close(n.ended)
	}()
	n.Fence()
	return n
}

// PID returns the process id.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// crashes are the words with which a Go program or the shell reports a crash.
var crashes = []string{"panic:", "BUG:", "fatal error:", "DATA RACE", "internal error"}

// cleanup stops the process and checks its output for crashes.
func (n *Node) cleanup() {
	if n.t.Failed() {
		n.logFailure()
	}
	n.Kill()
	for _, text := range n.Lines(0) {
		for _, sign := range crashes {
			assert.NotContains(n.t, text, sign, "node %s", n.Name)
		}
	}
}

// logFailure logs the node's last output for a failed test.
func (n *Node) logFailure() {
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
	n.t.Logf("node %s, its last output:\n%s", n.Name, n.out.last(60))
}

// Kill kills the process, like a power failure.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // the process may have exited already
	<-n.ended
}

// Command types a line into the shell without waiting for the answer.
func (n *Node) Command(format string, args ...any) {
	// If the node has exited, the wait for the answer fails.
	_, _ = io.WriteString(n.stdin, fmt.Sprintf(format, args...)+"\n")
}

// Mark is a position in the node's output.
type Mark int

// Mark returns the current end of the output.
func (n *Node) Mark() Mark { return Mark(n.out.mark()) }

// Await waits for a line after the mark that matches a regular expression, and returns the match
// with its groups.
func (n *Node) Await(from Mark, within time.Duration, pattern string) []string {
	n.t.Helper()
	re := regexp.MustCompile(pattern)
	text, ok := n.out.await(int(from), within, re.MatchString)
	if !ok {
		n.t.Fatalf("node %s did not print %q within %v", n.Name, pattern, within)
	}
	return re.FindStringSubmatch(text)
}

// Lines returns the lines after the mark.
func (n *Node) Lines(from Mark) []string { return n.out.since(int(from)) }

// fenceCommand prints a line that no other command prints.
const fenceCommand = "show tcp.options --json"

func isFence(text string) bool { return strings.HasPrefix(text, `[{"key":"tcp.options"`) }

// Fence waits until the shell has run every command typed so far.
func (n *Node) Fence() { n.FenceWithin(Soon) }

// FenceWithin is like Fence, with its own time limit.
func (n *Node) FenceWithin(within time.Duration) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	mark := n.out.mark()
	n.Command(fenceCommand)
	if _, ok := n.out.await(mark, within, isFence); !ok {
		n.t.Fatalf("node %s did not return to its prompt within %v", n.Name, within)
	}
}

// Do runs a command and returns its answers and its errors.
func (n *Node) Do(format string, args ...any) (answer, complaints []string) {
	n.t.Helper()
	mark := n.Mark()
	n.Command(format, args...)
	n.Fence()
	lines := n.Lines(mark)
	return answers(lines), Complaints(lines)
}

// MustDo is like Do, for a command that must succeed.
func (n *Node) MustDo(format string, args ...any) []string {
	n.t.Helper()
	answer, complaints := n.Do(format, args...)
	require.Empty(n.t, complaints, "node %s: %s", n.Name, fmt.Sprintf(format, args...))
	return answer
}

// Quit ends the shell's input and returns the exit status.
func (n *Node) Quit(within time.Duration) int {
	n.t.Helper()
	_ = n.stdin.Close() // a second close has no effect
	return n.Exit(within)
}

// Exit waits until the process exits, and returns the exit status.
func (n *Node) Exit(within time.Duration) int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(within):
		n.t.Fatalf("node %s did not exit within %v", n.Name, within)
	}
	return n.code
}
