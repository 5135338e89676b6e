package repl

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// counting returns a node with a socket whose send window grows by one byte at each request.
func counting() *fake {
	n := 0
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		if _, ok := req.(control.Window); !ok {
			return nil, nil, false
		}
		n++
		return control.Windows{Send: 1000 + n, Receive: 7}, nil, true
	}}
}

// TestWatch checks that a watch prints one answer after another: as text, as JSON, or in place with
// changes in reverse video. Messages of the node wait until the watch ends.
func TestWatch(t *testing.T) {
	s := open(t, counting(), Config{})
	require.NoError(t, s.Execute(t.Context(), "watch -n 0.1 -c 2 window 1"))
	assert.Equal(t, "send window 1001, receive window 7\nsend window 1002, receive window 7\n",
		s.out.String())
	assert.Contains(t, s.err.String(), "Every 0.1s: window 1    B: ")

	s = open(t, counting(), Config{})
	require.NoError(t, s.Execute(t.Context(), "watch -c 2 --json window 1 -n 0.1"))
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	require.Len(t, lines, 2)
	assert.Regexp(t, `^\{"event":"answer","data":\{"at":"[^"]+","command":"window 1",`+
		`"answer":\{"sid":0,"send":1002,"receive":7\}\}\}$`, lines[1])

	f := counting()
	s = open(t, f, Config{Height: wide(10), Width: wide(60)})
	inner := f.do
	f.do = func(ctx context.Context, req any) (any, error, bool) {
		s.env.screen.talk("somebody knocks")
		return inner(ctx, req)
	}
	require.NoError(t, s.Execute(t.Context(), "watch -n 0.1 -c 2 window 1"))
	out := s.out.String()
	assert.True(t, strings.HasPrefix(out, otherScreen))
	assert.Contains(t, out, "send window 100"+reverse+"2"+upright+", receive window 7")
	assert.Contains(t, out, firstScreen)
	assert.Equal(t, "somebody knocks\nsomebody knocks\n", s.err.String())
}

// TestWatchContinues checks that a watch continues after a failed request, but stops at a usage
// error.
func TestWatchContinues(t *testing.T) {
	n := 0
	f := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		if _, ok := req.(control.Window); !ok {
			return nil, nil, false
		}
		if n++; n == 1 {
			return nil, control.ErrNoSuchSocket, true
		}
		return control.Windows{}, nil, true
	}}
	s := open(t, f, Config{})
	require.NoError(t, s.Execute(t.Context(), "watch -n 0.1 -c 2 window 1"))
	assert.Equal(t, "window: no such socket; `ls` lists them\nsend window 0, receive window 0\n", s.out.String())
	for line, what := range map[string]string{
		"watch":                   "COMMAND is missing",
		"watch -n":                "-n needs a value",
		"watch -n 0.01 routes":    "must be 0.1 to 86400 seconds",
		"watch -n 99999999999 li": "must be 0.1 to 86400 seconds",
		"watch routes -n 0":       "must be 0.1 to 86400 seconds",
		"watch -c 0 routes":       "not a number from 1",
		"watch -x routes":         "unknown flag: -x",
		"watch bogus":             `no command "bogus"`,
		"watch events":            "events cannot be repeated",
		"watch watch routes":      "watch cannot be repeated",
		"watch capture if0":       "capture cannot be repeated",
		"watch -c 5 window here":  "not a socket number",
	} {
		err := open(t, &fake{}, Config{}).Execute(t.Context(), line)
		require.ErrorIs(t, err, control.ErrUsage, line)
		assert.Contains(t, err.Error(), what, line)
	}
}

// TestCtrlCEndsAWatch checks that Ctrl-C ends a watch without an error.
func TestCtrlCEndsAWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		if _, ok := req.(control.Window); ok {
			cancel()
		}
		return nil, nil, false
	}}
	require.NoError(t, open(t, f, Config{}).Execute(ctx, "watch window 1"))
}

func TestAFrameFits(t *testing.T) {
	var b strings.Builder
	f := frame{screen: &screen{out: &b, err: &b}, width: 10, height: 6}
	f.paint("a long title", "0123456789abc\nx\ny\nz\n")
	assert.Equal(t, topLeft+"a long tit"+eraseRight+"\r\n"+eraseRight+"\r\n0123456789"+eraseRight+
		"\r\nabc"+eraseRight+"\r\nx"+eraseRight+"\r\n"+eraseBelow, b.String())
	assert.Equal(t, "ab"+reverse+"X"+upright+"d"+reverse+"e"+upright, differing("abcd", "abXde"))
}

// brokenPipe fails every write.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestOutputThatCannotBeWritten checks that a command fails with status 1 if its output cannot be
// written.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, words := range [][]string{
		{"routes"},
		{"sockets", "--json"},
		{"capture", "-w", "-"},
		{"watch", "-n", "0.1", "routes"},
		{"trace", "1"},
	} {
		var talk strings.Builder
		s, err := New(t.Context(), Config{Operator: &fake{}, Out: brokenPipe{}, Err: &talk})
		require.NoError(t, err)
		err = s.Command(t.Context(), words...)
		assert.Equal(t, 1, ExitCode(err), words)
		assert.Contains(t, talk.String(), "no space left on device", words)
	}
}
