package repl

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestOneCommandFromArguments runs a command whose line the system's shell has already split into
// words without quotes.
func TestOneCommandFromArguments(t *testing.T) {
	for _, tt := range []struct {
		words []string
		asked any
		out   string
		code  int
	}{
		{
			[]string{"s", "1", "two  words", "# more"},
			control.Write{SID: 1, Data: []byte("two  words # more")},
			"Sent 17 bytes\n", 0,
		},
		{
			[]string{"send", "10.0.0.1", "hello"},
			control.SendTest{Addr: netip.MustParseAddr("10.0.0.1"), Text: "hello"},
			"Sent 25 bytes\n", 0,
		},
		{
			[]string{"send 10.0.0.1 hello  you"},
			control.SendTest{Addr: netip.MustParseAddr("10.0.0.1"), Text: "hello  you"},
			"Sent 30 bytes\n", 0,
		},
		{
			[]string{"serve", "80", "a folder"},
			control.Serve{Port: 80, Dir: "a folder"},
			"Serving the files of a folder on port 80, socket 2\n", 0,
		},
		{
			[]string{"connect", "x", "80"},
			control.Resolve{Name: "x"},
			"connect: x: no such host; give a name of the network, or an address like 10.1.0.2 or 2001:db8::2\n", 2,
		},
		{
			[]string{"s", "9", "x"},
			control.Write{SID: 9, Data: []byte("x")},
			"s: 9: no such socket; `ls` lists them\n", 1,
		},
		{[]string{"bogus"}, nil, "no command \"bogus\"; `help` lists all commands\n", 2},
		{[]string{"quit"}, nil, "", 0},
		{nil, nil, "", 0},
	} {
		f := &fake{}
		var out guarded
		s, err := New(t.Context(), Config{Operator: f, Out: &out, Err: &out})
		require.NoError(t, err)
		err = s.Command(t.Context(), tt.words...)
		assert.Equal(t, tt.code, ExitCode(err), "%q: %v", tt.words, err)
		assert.Equal(t, tt.out, out.String(), "%q", tt.words)
		if tt.asked != nil {
			assert.Equal(t, []any{tt.asked}, f.requests())
		}
		assert.Empty(t, f.watchers)
	}
}

// TestEventsUntilCtrlC checks that events are printed as text, or as one JSON document per line.
func TestEventsUntilCtrlC(t *testing.T) {
	for _, words := range [][]string{{"events"}, {"events", "--json"}} {
		f := &watchedFake{fake: &fake{}, watched: make(chan struct{}, 1)}
		var out guarded
		s, err := New(t.Context(), Config{Operator: f, Out: &out, Err: &out})
		require.NoError(t, err)
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Command(ctx, words...) }()
		<-f.watched
		f.emit(control.Message{Text: "the tide turns"})
		stop(ErrInterrupted)
		require.ErrorIs(t, <-ended, ErrInterrupted)
		want := "the tide turns\n"
		if len(words) > 1 {
			want = `{"event":"message","data":{"text":"the tide turns"}}` + "\n"
		}
		assert.Equal(t, want, out.String())
	}
}

// watchedFake signals when a watcher subscribes.
type watchedFake struct {
	*fake
	watched chan struct{}
}

func (f *watchedFake) Watch(g func(control.Event)) (stop func()) {
	defer func() { f.watched <- struct{}{} }()
	return f.fake.Watch(g)
}

// TestLinesOfJSON checks that partial results are printed one per line, as the HTTP API sends them.
func TestLinesOfJSON(t *testing.T) {
	for _, tt := range []struct {
		words  []string
		events []string
	}{
		{[]string{"ping", "10.0.0.1", "-c", "2", "--json-stream"}, []string{"each", "each", "result"}},
		{[]string{"traceroute", "10.0.0.9", "--json-stream"}, []string{"each", "each", "each", "result"}},
	} {
		s := open(t, &fake{}, Config{})
		require.NoError(t, s.Command(t.Context(), tt.words...))
		var events []string
		for line := range strings.Lines(s.out.String()) {
			var l struct {
				Event string
				Data  json.RawMessage
			}
			require.NoError(t, json.Unmarshal([]byte(line), &l), line)
			assert.NotEmpty(t, l.Data)
			events = append(events, l.Event)
		}
		assert.Equal(t, tt.events, events)
		assert.Empty(t, s.err.String())
	}
}
