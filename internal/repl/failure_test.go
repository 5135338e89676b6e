package repl

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestFailuresAsJSON checks that with --json a failed command prints one document, and the
// text to standard error.
func TestFailuresAsJSON(t *testing.T) {
	late := func(ctx context.Context, req any) (any, error, bool) {
		r, ok := req.(control.SendFile)
		if !ok {
			return nil, nil, false
		}
		if r.Progress != nil {
			r.Progress(control.Progress{Total: 9}) // the command continues in the background
		}
		return nil, control.ErrReset, true
	}
	silent := func(_ context.Context, req any) (any, error, bool) {
		r, ok := req.(control.Ping)
		return control.PingResult{Addr: r.Addr, Sent: 1}, nil, ok
	}
	for _, tt := range []struct {
		words string
		do    func(context.Context, any) (any, error, bool)
		out   string // start of the output
		says  string
		code  int
	}{
		{"cancel 9 --json", nil, `{"error":"cancel: 9: no such transfer`, "cancel: 9", 1},
		{"cancel 9", nil, "", "cancel: 9", 1},
		{"s --json 9 x", nil, `{"error":"s: 9: no such socket`, "s: 9", 1},
		{"bogus --json", nil, `{"error":"no command \"bogus\"`, "bogus", 2},
		{"close 1 --jsno --json", nil, `{"error":"close: unknown flag: --jsno","status":2}`, "--jsno", 2},
		{"connect 10.0 1 --json", nil, `{"error":"connect: \"10.0\" is not an IP address","status":2}`, "usage: ", 2},
		{"ping -c 99999999999999999999 10.0.0.1", nil, "", "99 is out of range: must be a whole number", 2},
		{"ping -c x 10.0.0.1", nil, "", "-c x: must be a whole number", 2},
		{"ping x --json-stream", nil, `{"event":"error","data":"ping: x: no such host`, "no such host", 2},
		{"sendfile f 10.0.0.1 9 --json", late, `{"error":"sendfile f: connection reset by peer","status":1}`, "reset", 1},
		{"sendfile f 10.0.0.1 9 --json-stream", late, `{"event":"progress",`, "reset", 1},
		{"ping 10.0.0.1 --json", silent, `{"addr":"10.0.0.1","sent":1,"received":0,`, "no reply", 1},
		{"ping 10.9.9.9 -c 1 --json", nil, `{"addr":"10.9.9.9"`, "ping: 10.9.9.9: no reply, but 1 error", 1},
	} {
		var out, talk guarded
		s, err := New(t.Context(), Config{Operator: &fake{do: tt.do}, Out: &out, Err: &talk})
		require.NoError(t, err)
		err = s.Command(t.Context(), strings.Fields(tt.words)...)
		got := out.String()
		assert.Equal(t, tt.code, ExitCode(err), "%s: %v", tt.words, err)
		assert.Contains(t, talk.String(), tt.says, tt.words)
		if tt.out == "" {
			assert.Empty(t, got, tt.words)
			continue
		}
		assert.True(t, strings.HasPrefix(got, tt.out), "%s: %s", tt.words, got)
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		for _, line := range lines {
			assert.True(t, json.Valid([]byte(line)), line)
		}
		if strings.HasSuffix(tt.words, "-stream") {
			assert.Contains(t, lines[len(lines)-1], `{"event":"error","data":"`, tt.words)
		} else {
			assert.Len(t, lines, 1, tt.words)
		}
	}
}

// TestAScriptInJSON checks that each line prints a document, even if it fails.
func TestAScriptInJSON(t *testing.T) {
	var out, talk guarded
	s, err := New(t.Context(), Config{
		Operator: &fake{}, Out: &out, Err: &talk, JSON: true, KeepGoing: true,
	})
	require.NoError(t, err)
	require.Error(t, s.Script(t.Context(), "x", strings.NewReader("cancel 9\nbogus\nset a\nshow\n")))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{`{"error":"cancel`, `{"error":"no command`, `{"error":"set: VALUE`, "["} {
		assert.True(t, strings.HasPrefix(lines[i], want), lines[i])
	}
	assert.Contains(t, talk.String(), "x:1: cancel: 9")
}

// TestEmptyArguments checks that an empty argument is not a valid path, port or name.
func TestEmptyArguments(t *testing.T) {
	for line, want := range map[string]string{
		`recvfile "" 9000`: "recvfile: PATH is empty", `sendfile '' 10.0.0.1 9`: "sendfile: PATH is empty",
		`li ""`: "li: FILE is empty", `serve 80 ""`: "serve: DIR is empty",
	} {
		s := open(t, &fake{}, Config{})
		require.EqualError(t, s.Execute(t.Context(), line), want)
		assert.Empty(t, s.node.requests())
	}
}
