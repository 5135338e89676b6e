package repl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

func TestAScriptStopsAtTheFirstFailure(t *testing.T) {
	s := open(t, &fake{}, Config{})
	err := s.Script(t.Context(), "net.txt", strings.NewReader("# one\nwindow 1\n\ns 9 x\nroutes\n"))
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	assert.Equal(t, 1, ExitCode(err))
	assert.Equal(t, "net.txt:4: s: 9: no such socket; `ls` lists them\n", s.err.String())
	assert.Equal(t, "send window 65535, receive window 4096\n", s.out.String())
}

func TestAUsageErrorShowsTheUsage(t *testing.T) {
	s := open(t, &fake{}, Config{})
	err := s.Script(t.Context(), "stdin", strings.NewReader("up\r\n"))
	assert.Equal(t, 2, ExitCode(err))
	assert.Equal(t, "stdin:1: up: IF is missing\nusage: up IF\n", s.err.String())
}

func TestKeepGoing(t *testing.T) {
	s := open(t, &fake{}, Config{KeepGoing: true})
	err := s.Script(t.Context(), "f", strings.NewReader("up\ns 9 x\nwindow 1\n"))
	assert.Equal(t, 1, ExitCode(err), "of the last failure")
	assert.Equal(t, "f:1: up: IF is missing\nusage: up IF\nf:2: s: 9: no such socket; `ls` lists them\n", s.err.String())
	assert.NotEmpty(t, s.out.String())

	err = s.Script(t.Context(), "f", strings.NewReader("up\nquit\nup\n"))
	assert.Equal(t, 2, ExitCode(err), "quit does not hide what failed before")
	assert.Equal(t, "f:1: up: IF is missing\nusage: up IF\n", s.err.String())
}

func TestQuitEndsAScript(t *testing.T) {
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Script(t.Context(), "f", strings.NewReader("q\nbogus\n")))
	assert.Empty(t, s.err.String())
}

func TestErrorsInSourcedFilesHavePositions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	bad := write("bad", "window 1\n\nbogus\nroutes\n")
	loop := filepath.Join(dir, "loop")
	write("loop", "source '"+loop+"'\n")
	leave := write("leave", "quit\n")

	s := open(t, &fake{}, Config{})
	err := s.Script(t.Context(), "outer", strings.NewReader("source '"+bad+"'\nroutes\n"))
	assert.Equal(t, 2, ExitCode(err))
	assert.Equal(t, bad+":3: no command \"bogus\"; `help` lists all commands\n", s.err.String())

	err = s.Script(t.Context(), "outer", strings.NewReader("source '"+loop+"'\n"))
	require.Error(t, err)
	assert.Contains(t, s.err.String(), "more than 16 nested `source` commands\n")

	require.NoError(t, s.Script(t.Context(), "f", strings.NewReader("source '"+leave+"'\nbogus\n")))

	err = s.Script(t.Context(), "f", strings.NewReader("source '"+filepath.Join(dir, "none")+"'\n"))
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, 1, strings.Count(s.err.String(), "\n"))
}

func TestLongLines(t *testing.T) {
	s := open(t, &fake{}, Config{KeepGoing: true})
	err := s.Script(t.Context(), "f", strings.NewReader("routes\ns 0 "+strings.Repeat("x", longestLine)))
	require.Error(t, err)
	assert.Equal(t, "f:2: the line is longer than 1048576 bytes\n", s.err.String())
}

func TestAScriptEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	cause := errors.New("SIGTERM")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	s := open(t, &fake{}, Config{})
	require.ErrorIs(t, s.Script(ctx, "stdin", r), cause)
	assert.Empty(t, s.err.String())
}

// transfers is a node whose transfers run until the test ends them.
type transfers struct {
	fake
	end   chan error    // the result of the next transfer that ends
	asked chan struct{} // receives a value at a request for Window, when all earlier lines are done
}

func slowNode() *transfers {
	n := &transfers{end: make(chan error), asked: make(chan struct{})}
	n.do = func(ctx context.Context, req any) (any, error, bool) {
		r, ok := req.(control.SendFile)
		if _, marker := req.(control.Window); marker {
			n.asked <- struct{}{}
		}
		if !ok {
			return nil, nil, false
		}
		r.Progress(control.Progress{Bytes: 5, Total: 10, Elapsed: 1e9})
		select {
		case err := <-n.end:
			return someTransfer(r.Path, true), err, true
		case <-ctx.Done():
			return nil, ctx.Err(), true
		}
	}
	return n
}

// run runs a script on the node. At the script's `window` command, it ends one transfer with each
// error of errs.
func (n *transfers) run(t *testing.T, cfg Config, script string, errs ...error) (*session, error) {
	t.Helper()
	s := open(t, &n.fake, cfg)
	done := make(chan error)
	go func() { done <- s.Script(t.Context(), "f", strings.NewReader(script)) }()
	<-n.asked
	for _, err := range errs {
		n.end <- err
	}
	return s, <-done
}

func TestAScriptWaitsForItsTransfers(t *testing.T) {
	for _, end := range []string{"", "q\n", "wait\n"} {
		s, err := slowNode().run(t, Config{}, "sf a 10.0.0.1 80\nwindow 1\n"+end, nil)
		require.NoError(t, err)
		text := s.out.String()
		assert.Contains(t, text, "Sent 1048576 total bytes (a) in 25 ms, 41.94 MB/s\n")
	}
}

func TestAFailedTransferFailsItsScript(t *testing.T) {
	s, err := slowNode().run(t, Config{},
		"sf a 10.0.0.1 80\nsf b 10.0.0.1 80\nwindow 1\nwait\n", control.ErrReset, control.ErrReset)
	require.ErrorIs(t, err, control.ErrReset)
	assert.Equal(t, 1, ExitCode(err))
	assert.Equal(t, "sendfile b: connection reset by peer\n"+
		"f:4: sendfile a: connection reset by peer\n", s.err.String())

	for _, end := range []string{"", "q\n"} {
		s, err = slowNode().run(t, Config{}, "sf a 10.0.0.1 80\nwindow 1\n"+end, control.ErrTimeout)
		require.ErrorIs(t, err, control.ErrTimeout)
		assert.Equal(t, "sendfile a: connection timed out\n", s.err.String())
	}
}

func TestATransferThatFailsAtOnceFailsItsLine(t *testing.T) {
	node := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		_, ok := req.(control.SendFile)
		return nil, os.ErrNotExist, ok
	}}
	s := open(t, node, Config{})
	err := s.Script(t.Context(), "f", strings.NewReader("routes\nsf a 10.0.0.1 80\nroutes\n"))
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, "f:2: sendfile a: file does not exist\n", s.err.String())
}

// TestTransfersOfANode checks that transfers belong to the node, whichever session started them.
func TestTransfersOfANode(t *testing.T) {
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Execute(t.Context(), "transfers"))
	assert.Equal(t, "3  sendfile big to 10.0.0.1:80: 50%    5 B/s 0:01 left\n"+
		"4  recvfile got\\x1b: waits for a connection on port 9000\n"+
		"5  sendfile far: connecting\n", s.out.String())
	assert.Equal(t, []string{"3", "4", "5", "all"}, sorted(s.Complete("cancel ")))
	s.node.requests()
	require.NoError(t, s.Execute(t.Context(), "cancel 3"))
	assert.Equal(t, []any{control.StopTransfer{ID: 3}}, s.node.requests())
	err := s.Execute(t.Context(), "cancel 4")
	require.ErrorIs(t, err, control.ErrNoSuchTransfer)
	require.EqualError(t, err, "cancel: 4: no such transfer; `transfers` lists them")
	require.NoError(t, s.Execute(t.Context(), "cancel all"), "the others have ended meanwhile")
	require.ErrorIs(t, s.Execute(t.Context(), "cancel x"), control.ErrUsage)

	idle := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		_, ok := req.(control.Transfers)
		return []control.Underway{}, nil, ok
	}}
	s = open(t, idle, Config{})
	require.NoError(t, s.Execute(t.Context(), "transfers"))
	assert.Empty(t, s.out.String())
	assert.Equal(t, "no transfers\n", s.err.String())
	require.NoError(t, s.Execute(t.Context(), "transfers --json"))
	assert.Equal(t, "[]\n", s.out.String())
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

// stoppable returns a node whose requests return their progress when they are stopped, as a real
// node's do.
func stoppable(begun chan<- struct{}) *fake {
	return &fake{do: func(ctx context.Context, req any) (any, error, bool) {
		verb := ""
		switch r := req.(type) {
		case control.SendFile:
			r.Progress(control.Progress{ID: 7, Bytes: 5, Total: 10, Elapsed: 1e9})
			verb = "sendfile a"
		case control.Fetch:
			verb = "fetch " + r.URL
		case control.RDTFetch:
			verb = "10.0.0.1:80"
		default:
			return nil, nil, false
		}
		begun <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("%s: %w (5 of 10)", verb, control.ErrStopped), true
	}}
}

// TestCtrlCPrintsTheProgress checks that Ctrl-C prints the progress of the command that it stops:
// alone, in a script, and in a session.
func TestCtrlCPrintsTheProgress(t *testing.T) {
	for line, want := range map[string]string{
		"sendfile a 10.0.0.1 80": "sendfile a: stopped (5 of 10)\n",
		"http get 10.0.0.1/x":    "http get 10.0.0.1/x: stopped (5 of 10)\n",
		"http get 10.0.0.1 -o x": "http get 10.0.0.1: stopped (5 of 10)\n",
		"fetch 10.0.0.1/x":       "fetch 10.0.0.1/x: stopped (5 of 10)\n",
		"rdt fetch 10.0.0.1 80":  "rdt fetch: 10.0.0.1:80: stopped (5 of 10)\n",
	} {
		for name, run := range map[string]func(context.Context, *session) error{
			"command": func(ctx context.Context, s *session) error {
				return s.Command(ctx, strings.Fields(line)...)
			},
			"script": func(ctx context.Context, s *session) error {
				return s.Script(ctx, "f", strings.NewReader(line+"\n"))
			},
		} {
			begun := make(chan struct{}, 1)
			s := open(t, stoppable(begun), Config{})
			ctx, stop := context.WithCancelCause(t.Context())
			ended := make(chan error)
			go func() { ended <- run(ctx, s) }()
			<-begun
			stop(ErrInterrupted)
			err := <-ended
			require.ErrorIs(t, err, ErrInterrupted, "%s: %s", name, line)
			assert.Equal(t, 130, ExitCode(err))
			assert.Equal(t, want, s.err.String(), "%s: %s", name, line)
			assert.Empty(t, s.out.String())
		}
	}
	begun := make(chan struct{}, 1)
	s := open(t, stoppable(begun), Config{})
	ended := make(chan error)
	go func() { ended <- s.run(t.Context(), "fetch 10.0.0.1/x") }()
	<-begun
	s.Interrupt()
	err := <-ended
	require.ErrorIs(t, err, ErrInterrupted)
	s.complain(err)
	assert.Equal(t, "fetch 10.0.0.1/x: stopped (5 of 10)\n", s.err.String())
}

func TestProgressBarIsBelowTheOutput(t *testing.T) {
	s, err := slowNode().run(t, Config{Width: wide(80)}, "sf a 10.0.0.1 80\nwindow 1\n", nil)
	require.NoError(t, err)
	bar := "sendfile a ##########----------  50%    5 B/s 0:01 left"
	assert.Equal(t, eraseLine+bar, s.err.String()[:len(eraseLine+bar)])
	assert.NotContains(t, s.out.String(), "#")
}

func TestSourceOfAFolder(t *testing.T) {
	s := open(t, &fake{}, Config{})
	folder := t.TempDir()
	err := s.Execute(t.Context(), "source '"+folder+"'")
	require.EqualError(t, err, "source: "+folder+": not a regular file: it is a folder")
}
