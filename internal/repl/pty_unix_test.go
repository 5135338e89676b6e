//go:build unix

package repl

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestMain lets the tests below run this program as a session on a terminal.
func TestMain(m *testing.M) {
	if history, ok := os.LookupEnv("REPL_TEST_SESSION"); ok {
		os.Exit(ptySession(history))
	}
	os.Exit(m.Run())
}

// ptySession is the child process: a shell on a fake node. On SIGUSR1 the node reports a test
// packet. A Read blocks until it is canceled. A transfer ends with the next test packet.
func ptySession(history string) int {
	node := &fake{}
	packets := make(chan os.Signal, 1)
	signal.Notify(packets, syscall.SIGUSR1)
	moved := make(chan struct{})
	node.do = func(ctx context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.Read:
			node.emit(control.Message{Text: "reading"})
			<-ctx.Done()
			return nil, ctx.Err(), true
		case control.SendFile:
			r.Progress(control.Progress{ID: 1, Bytes: 30_000_000, Total: 100_000_000, Elapsed: 1e9})
			<-moved
			return someTransfer(r.Path, true), nil, true
		}
		return nil, nil, false
	}
	shell, err := New(context.Background(), Config{
		Operator: node, Width: wide(100), Height: wide(40), Keyboard: os.Stdin,
	})
	if err != nil {
		return 3
	}
	go func() {
		for range packets {
			node.emit(control.TestReceived{Src: netip.MustParseAddr("10.0.0.1"), Text: "above"})
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	}()
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, os.Interrupt)
	go func() {
		for range keys {
			shell.Interrupt()
		}
	}()
	editor, err := NewEditor(EditorConfig{
		In: os.Stdin, Out: os.Stdout, History: history, Complete: shell.Complete,
	})
	if err != nil {
		return 3
	}
	return ExitCode(shell.Interactive(context.Background(), editor))
}

// keyboard is the test's end of the terminal: it types keys and records the output. Like a program
// that drives a shell, it answers no terminal queries.
type keyboard struct {
	t     *testing.T
	child *exec.Cmd
	tty   *os.File

	mu   sync.Mutex
	news *sync.Cond
	seen bytes.Buffer
	from int // where the next await starts
	gone bool
}

func sitDown(t *testing.T, history string) *keyboard {
	t.Helper()
	k := &keyboard{t: t}
	k.news = sync.NewCond(&k.mu)
	k.child = exec.CommandContext(t.Context(), os.Args[0])
	k.child.Env = append(os.Environ(), "REPL_TEST_SESSION="+history, "TERM=xterm")
	var err error
	k.tty, err = pty.StartWithSize(k.child, &pty.Winsize{Rows: 40, Cols: 100})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = k.child.Process.Kill()
		_ = k.tty.Close()
	})
	go k.watch()
	k.await("B> ")
	return k
}

func (k *keyboard) watch() {
	b := make([]byte, 4096)
	for {
		n, err := k.tty.Read(b)
		k.mu.Lock()
		k.seen.Write(b[:n])
		k.gone = err != nil
		k.mu.Unlock()
		k.news.Broadcast()
		if err != nil {
			return
		}
	}
}

// await waits until text appears after the text of the previous await. It returns the output before
// that text.
func (k *keyboard) await(text string) string {
	k.t.Helper()
	stop := time.AfterFunc(20*time.Second, func() {
		k.mu.Lock()
		k.gone = true
		k.mu.Unlock()
		k.news.Broadcast()
	})
	defer stop.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		rest := k.seen.String()[k.from:]
		if i := strings.Index(rest, text); i >= 0 {
			k.from += i + len(text)
			return rest[:i]
		}
		if k.gone {
			require.Failf(k.t, "not on the screen", "%q, but %q", text, rest)
		}
		k.news.Wait()
	}
}

func (k *keyboard) press(keys string) {
	k.t.Helper()
	_, err := k.tty.WriteString(keys)
	require.NoError(k.t, err)
}

func (k *keyboard) leaves() {
	k.t.Helper()
	stop := time.AfterFunc(20*time.Second, func() { _ = k.child.Process.Kill() })
	defer stop.Stop()
	require.NoError(k.t, k.child.Wait())
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlR = "\x12"
)

func TestPromptCommandAndEnd(t *testing.T) {
	k := sitDown(t, "")
	k.press("window 1\r")
	k.await("send window 65535, receive window 4096\r\n")
	k.await("B> ")
	k.press("bogus\r")
	k.await("no command \"bogus\"; `help` lists all commands\r\n")
	k.await("B> ")
	k.press("half" + ctrlC)
	k.await("^C")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}

func TestCtrlCEndsTheCommandAndNotTheSession(t *testing.T) {
	k := sitDown(t, "")
	k.press("r 1 5\r")
	k.await("reading\r\n")
	k.press(ctrlC)
	k.await("interrupted\r\n")
	k.await("B> ")
	k.press("q\r")
	k.leaves()
}

// Control characters in a page are escaped before the page is printed.
func TestAFetchedPageStaysInItsLines(t *testing.T) {
	k := sitDown(t, "")
	k.press("fetch 10.0.0.1\r")
	k.await("<h1>H</h1>\r\n<p>\\x1b[31mhello\r\n200 OK, 26 bytes of text/html in 1.5 ms\r\n")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}

func TestEventsAppearAboveThePrompt(t *testing.T) {
	k := sitDown(t, "")
	k.press("win")
	k.await("win")
	require.NoError(t, k.child.Process.Signal(syscall.SIGUSR1))
	k.await("Received test packet: Src: 10.0.0.1, Dst: invalid IP, TTL: 0, Data: above\r\n")
	k.await("B> \x1b[0Kwin")
	k.press("dow 1\r")
	k.await("send window 65535")
	k.await("B> ")
	k.press("exit\r")
	k.leaves()
}

func TestPromptShowsTransfers(t *testing.T) {
	k := sitDown(t, "")
	k.press("sf big.bin 10.0.0.1 80\r")
	k.await("sendfile big.bin to 10.0.0.1:80, in the background as transfer 1\r\n" +
		"  `transfers` shows its progress, `cancel 1` stops it\r\n")
	k.await("B [###-------  30% 30.0 MB/s 0:02 left]> ")
	k.press("quit\r")
	k.await("transfers are still running (1): `wait` for them, or quit again to stop them\r\n")
	k.await("left]> ")
	k.press("wait\r")
	k.await("sendfile big.bin ######--------------  30% 30.0 MB/s 0:02 left")
	require.NoError(t, k.child.Process.Signal(syscall.SIGUSR1))
	k.await("Sent 1048576 total bytes (big.bin)")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}

// Pasted text is plain input. Tabs complete nothing, each line is a command, and no control
// character reaches the editor or the terminal.
func TestPaste(t *testing.T) {
	k := sitDown(t, "")
	k.press("\x1b[200~s 1 a\tb\x01c\x1b[31m\x03\x04\x1a\u009bd\x1b[20")
	k.press("1~\r")
	k.await("B> \x1b[0Ks 1 a bc[31md")
	k.await("Sent 9 bytes\r\n")
	k.press("\x1b[200~window 1\r\nwindow 2\nbogus\r\x1b[201~")
	k.await("window 1")
	k.await("send window 65535")
	k.await("window 2")
	k.await("send window 65535")
	assert.NotContains(t, k.await("no command \"bogus\""), "B> \x1b[0K\r\n", "\\r\\n is one end")
	k.await("B> ")
	k.press("\x1b[D\x1b\x1b[Da" + ctrlC) // other sequences keep their meaning
	k.await("a^C")
	k.await("B> ")
	k.press("\x1a\x0f\u009bquit\r") // without a parent shell Ctrl-Z does nothing; the others are not keys
	assert.NotContains(t, k.await("quit"), "\u009b")
	k.await(marksOff)
	k.leaves()
}

// TestCompletionListStaysDuringTransfers checks that the list of completions stays visible while a
// transfer's bar changes.
func TestCompletionListStaysDuringTransfers(t *testing.T) {
	k := sitDown(t, "")
	k.press("sf big.bin 10.0.0.1 80\r")
	k.await("left]> ")
	k.press("w\t\t")
	k.await("watch")
	require.NoError(t, k.child.Process.Signal(syscall.SIGUSR1)) // the transfer ends
	k.await("Sent 1048576 total bytes (big.bin)")
	k.await("B> \x1b[0Kw")
	k.await("watch")
	k.press(ctrlC + ctrlC + "quit\r")
	k.leaves()
}

func TestTabAndHistory(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history")
	k := sitDown(t, history)
	k.press("neigh\t")
	k.await("neighbors ")
	k.press("\r")
	k.await("if0     10.0.0.1   127.0.0.1:5000")
	k.await("B> ")
	k.press("s\t")
	k.await("sendfile")
	k.press(ctrlC + ctrlC)
	k.await("^C")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
	kept, err := os.ReadFile(history)
	require.NoError(t, err)
	assert.Equal(t, "neighbors \n", string(kept))

	k = sitDown(t, history)
	k.press(ctrlR + "nei")
	k.await("neighbors")
	k.press("\r")
	k.await("if0     10.0.0.1")
	k.await("B> ")
	k.press("\x1b[A\r") // the up arrow
	k.await("if0     10.0.0.1")
	k.await("B> ")
	k.press("history\r")
	k.await("    1  neighbors\r\n    2  history\r\n")
	k.await("B> ")
	k.press("history 1\r")
	k.await("    3  history 1\r\n")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}

// TestQEndsAWatch checks that q and Ctrl-C end a watch, as q ends top and less. Afterward the
// terminal has its old modes: typed characters are echoed once, and input is read line by line.
func TestQEndsAWatch(t *testing.T) {
	k := sitDown(t, "")
	for _, key := range []string{"q", "Q", ctrlC} {
		k.press("watch -n 60 window 1\r")
		k.await(otherScreen)
		k.await("send window 65535")
		k.press("x" + key) // unknown keys do nothing
		k.await(firstScreen)
		k.await("B> ")
		k.press("neighbors\r")
		k.await("if0     10.0.0.1")
		k.await("B> ")
	}
	k.press(ctrlD)
	k.leaves()
}

// TestCtrlDTypedAhead checks that Ctrl-D ends the session even if it was typed while a command ran
// and the editor did not have the terminal.
func TestCtrlDTypedAhead(t *testing.T) {
	k := sitDown(t, "")
	k.press("sf big.bin 10.0.0.1 80\r")
	k.await("left]> ")
	k.press("wait\r")
	k.await("sendfile big.bin ######")
	k.press(ctrlD)
	require.NoError(t, k.child.Process.Signal(syscall.SIGUSR1))
	k.await("Sent 1048576 total bytes (big.bin)")
	k.leaves()

	k = sitDown(t, "")
	k.press("\x00neighbors\r") // Ctrl-Space is not Ctrl-D
	k.await("if0     10.0.0.1")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}

// TestCtrlCDuringCompletion checks that Ctrl-C cancels the line even while a list is shown below
// it.
func TestCtrlCDuringCompletion(t *testing.T) {
	k := sitDown(t, "")
	k.press("s\t\t")
	k.await("sendfile")
	k.press(ctrlC)
	k.await("^C")
	k.await("B> ")
	k.press("neighbors\r")
	k.await("if0     10.0.0.1")
	k.await("B> ")
	k.press(ctrlD)
	k.leaves()
}
