package fuzz

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Our engine does only what the model of RFC 9293 allows, in all states.
func TestEngine(t *testing.T) {
	t.Parallel()
	s := Search{Stack: Engine{}, Sequences: 20_000, Seed: 1, Workers: 1}
	if testenv.Long() {
		s.Sequences = 1_000_000
	}
	f, err := s.Run(t.Context())
	require.NoError(t, err)
	for _, d := range f.Wrong {
		t.Errorf("in %s, %s (line %d of the model):\n%s", d.State, d.Wrong, d.Rule,
			strings.Join(d.Lines(), "\n"))
	}
	assert.Equal(t, s.Sequences, f.Sequences)
	assert.Equal(t, 11, f.States)
	assert.Greater(t, f.Covered, 1_500)
	t.Logf("%d events, %d combinations, %d sequences cover them", f.Events, f.Covered,
		len(f.Corpus))
}

// wrong is our engine with a bug: it changes or drops the segments that the engine sends.
type wrong struct{ change func(s *Segment) bool }

func (wrong) Name() string { return "wrong" }

func (w wrong) Start() (Trial, error) {
	t, err := Engine{}.Start()
	return &wrongTrial{t, w.change}, err
}

type wrongTrial struct {
	Trial
	change func(s *Segment) bool
}

func (t *wrongTrial) Pass(e *Event, record func(s *Segment)) error {
	return t.Trial.Pass(e, func(s *Segment) {
		if t.change(s) {
			record(s)
		}
	})
}

// The search finds bugs, and shrinks the sequences to those that a person would write.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(s *Segment) bool
		want   string
		wrong  string
	}{
		{
			"no RST", func(s *Segment) bool { return !s.Flags.Has(tcp.RST) },
			"send -", "it must send RST",
		},
		{
			"FIN not acknowledged", func(s *Segment) bool {
				if s.Flags == tcp.ACK && s.Len == 0 && s.Ack == iss+2 {
					s.Ack--
				}
				return true
			},
			"listen\nsend S mss 1000\nsend F.",
			"it must acknowledge the data and the FIN, not more and not less",
		},
		{
			"no FIN", func(s *Segment) bool { return !s.Flags.Has(tcp.FIN) },
			"connect\nsend S mss 1000\nsend .\nclose", "it must send FIN",
		},
		{
			"RST instead of a challenge ACK", func(s *Segment) bool {
				if s.Flags == tcp.ACK {
					s.Flags = tcp.RST
				}
				return true
			},
			"connect\nsend S. mss 1000", "it must not send RST",
		},
	} {
		f, err := (&Search{Stack: wrong{c.change}, Sequences: 2_000, Seed: 1}).Run(t.Context())
		require.NoError(t, err)
		found := slices.ContainsFunc(f.Wrong, func(d Difference) bool {
			return strings.Join(d.Lines(), "\n") == c.want && d.Wrong == c.wrong
		})
		assert.True(t, found, c.name)
		if !found {
			for _, d := range f.Wrong[:min(3, len(f.Wrong))] {
				t.Logf("%s: %v", d.Wrong, d.Lines())
			}
		}
	}
}

// The whole stack behaves as its engine does. A difference between two stacks becomes a check file.
// The correct stack passes the check, and the other one fails.
func TestCompare(t *testing.T) {
	t.Parallel()
	f, err := (&Search{Stack: Engine{}, Sequences: 1_000, Seed: 1}).Run(t.Context())
	require.NoError(t, err)
	const tcpHeader, flags = 20, 13
	bad := &examine.Self{Change: func() func(bool, []byte) [][]byte {
		return func(toSubject bool, p []byte) [][]byte {
			if !toSubject && p[tcpHeader+flags]&byte(tcp.FIN) != 0 {
				return nil // the stack never sends a FIN
			}
			return [][]byte{p}
		}
	}}
	stacks := []Stack{Engine{}, Subject{Subject: &examine.Self{}}, Subject{Subject: bad}}
	table, err := Compare(t.Context(), stacks, f.Corpus, 1)
	require.NoError(t, err)
	assert.Zero(t, table.Differ(-1, 0))
	assert.Zero(t, table.Differ(0, 1))
	require.Positive(t, table.Differ(1, 2))
	row := slices.IndexFunc(table.Rows, func(r Row) bool {
		return strings.Join(lines(r.Events), ", ") == "connect, send S mss 1000, send ., close"
	})
	require.GreaterOrEqual(t, row, 0, "%s", table.Markdown())
	assert.Equal(t, []string{"", "", "nothing"}, table.Rows[row].Answers)

	folder := t.TempDir()
	require.NoError(t, table.WriteChecks(folder))
	checks, err := examine.Load(os.DirFS(folder))
	require.NoError(t, err)
	require.Len(t, checks, len(table.Rows))
	right := examine.Exam{Subject: &examine.Self{}, Checks: checks, Runs: 1}
	report := right.Run(t.Context())
	for i := range report.Results {
		r := &report.Results[i]
		assert.Equal(t, examine.Pass, r.Verdict, "%s: %+v", r.Check.Name, r.Failure)
	}
	exam := examine.Exam{Subject: bad, Checks: checks[row : row+1], Runs: 1}
	assert.Equal(t, examine.Fail, exam.Run(t.Context()).Results[0].Verdict)
}

// Any sequence can become a check file, which our stack passes.
func TestChecks(t *testing.T) {
	t.Parallel()
	f, err := (&Search{Stack: Engine{}, Sequences: 2_000, Seed: 2}).Run(t.Context())
	require.NoError(t, err)
	table := &Table{}
	const rows = 99
	for i := range rows {
		table.Rows = append(table.Rows, Row{Events: f.Corpus[i*len(f.Corpus)/rows]})
	}
	folder := t.TempDir()
	require.NoError(t, table.WriteChecks(folder))
	checks, err := examine.Load(os.DirFS(folder))
	require.NoError(t, err)
	exam := examine.Exam{Subject: &examine.Self{}, Checks: checks, Runs: 1}
	report := exam.Run(t.Context())
	for i := range report.Results {
		r := &report.Results[i]
		assert.Equal(t, examine.Pass, r.Verdict, "%+v\n%s", r.Failure,
			strings.Join(lines(table.Rows[i].Events), "\n"))
	}
}

// typist is a subject that records what its user types.
type typist struct {
	examine.Subject
	examine.Run

	typed *[]examine.Command
}

func (s typist) Start(*examine.Setup) (examine.Run, error) { return s, nil }

func (s typist) Do(c examine.Command) error {
	*s.typed = append(*s.typed, c)
	return nil
}

// The user of a program types text, because a terminal would treat other bytes as control
// characters.
func TestTypedText(t *testing.T) {
	t.Parallel()
	var typed []examine.Command
	trial, err := Subject{Subject: typist{typed: &typed}}.Start()
	require.NoError(t, err)
	require.NoError(t, trial.Call(&Event{Kind: Write, Len: 100}))
	require.Len(t, typed, 1)
	assert.Regexp(t, "^[!-~]{100}$", string(typed[0].Data))
}

// timekeeper is our stack with runs that record their duration.
type timekeeper struct {
	*examine.Self

	took *time.Duration
}

type timedRun struct {
	examine.Run

	took *time.Duration
}

func (s timekeeper) Start(setup *examine.Setup) (examine.Run, error) {
	r, err := s.Self.Start(setup)
	return timedRun{r, s.took}, err
}

func (r timedRun) Close() { *r.took = time.Duration(r.Now()) }

// In a hasty run, an event ends when the stack has done what the model requires. Only the last
// event takes its full time.
func TestHastyRun(t *testing.T) {
	t.Parallel()
	var took time.Duration
	s := Subject{Subject: timekeeper{&examine.Self{}, &took}, Settle: time.Second}
	events := []Event{
		{Kind: Listen},
		{Kind: Send, Flags: tcp.SYN},
		{Kind: Send, Flags: tcp.ACK},
		{Kind: Wait},
		{Kind: Send, Flags: tcp.PSH | tcp.ACK, Len: 10},
	}
	for _, hasty := range []bool{false, true} {
		d, err := once(s, events, hasty)
		require.NoError(t, err)
		assert.Empty(t, d.Wrong)
		want := time.Duration(len(events))*s.Settle + longWait
		if hasty {
			want = s.Settle + longWait + time.Duration(len(events)-1)*quietTime
		}
		assert.InDelta(t, want, took, float64(2*quietTime), "hasty: %t", hasty)
	}
}

// Errors in a model have a position.
func TestParseRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CLOSED rst":               "line 1: \"CLOSED rst\" is not a rule",
		"# text\n\nCLOZED: -> ack": "line 3: unknown state \"CLOZED\"",
		"CLOSED: rest -> ack":      "line 1: unknown condition \"rest\"",
		"CLOSED: rst -> hack":      "line 1: unknown effect \"hack\"",
	} {
		_, err := parseRules(text)
		require.ErrorContains(t, err, want)
	}
}

// A search ends when its context ends.
func TestCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, err := (&Search{Stack: Engine{}, Sequences: 1 << 40}).Run(ctx)
	require.NoError(t, err)
	assert.Zero(t, f.Sequences)
	_, err = Compare(ctx, []Stack{Engine{}}, [][]Event{{{Kind: Listen}}}, 1)
	require.ErrorIs(t, err, context.Canceled)
}
