package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/examine/report"
	"github.com/tidepool-net/tidepool/internal/files"
)

// examined returns a report with one result for each of several verdicts.
func examined() *examine.Report {
	check := func(name, area string) *examine.Check {
		return &examine.Check{
			Name: name, Area: area, RFC: "RFC 9293 §3.5", Level: examine.LevelMust,
			Story: "A peer <sends> a SYN.", Rule: "A SYN-ACK answers it.", Bug: "No answer & no RST.",
		}
	}
	packet := []byte{
		0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 20, 0, 2, 10, 20, 0, 1,
	}
	return &examine.Report{
		Subject: "./node <x>", Began: time.Unix(1, 0).UTC(), Took: 1500 * time.Millisecond,
		Units: examine.Units{RTT: 20 * time.Millisecond, RTO: time.Second},
		Results: []examine.Result{
			{Check: check("tcp/fin-acked", "tcp closing"), Verdict: examine.Pass},
			{
				Check: check("tcp/handshake", "tcp handshake"), Verdict: examine.Fail,
				Failure: &examine.Failure{
					Line: 7, Step: "expect S.", Reason: "it did not come", Hint: "a bad <checksum>",
				},
				Runs: []examine.Verdict{examine.Fail},
				Ladder: []examine.Event{
					{Kind: examine.EventSent, Text: "S seq 0 <", Raw: packet},
					{Kind: examine.EventCommand, Text: "read 5"},
					{Kind: examine.EventExpected, Text: "S. ack 1"},
				},
				Took: time.Second, Links: []examine.Link{{Name: "if0"}},
			},
			{
				Check: check("tcp/sack", "tcp options"), Verdict: examine.Skipped, Missing: "sack",
			},
			{
				Check: check("tcp/half-close", "tcp closing"), Verdict: examine.Skipped,
				Failure: &examine.Failure{Reason: "the stack has no such command: shutdown"},
			},
			{
				Check: check("tcp/window", "tcp flow control"), Verdict: examine.Blocked,
				Failure: &examine.Failure{Reason: "on the way to ESTABLISHED: nothing came"},
			},
		},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	r := examined()
	assert.Equal(t, "pass     tcp/fin-acked                        MUST    RFC 9293 §3.5\n",
		report.Line(&r.Results[0]))
	assert.Equal(t, "fail     tcp/handshake                        MUST    RFC 9293 §3.5\n"+
		"         line 7, `expect S.`: it did not come\n"+
		"         rule: A SYN-ACK answers it.\n         likely cause: No answer & no RST.\n"+
		"         note: a bad <checksum>\n", report.Line(&r.Results[1]))
	crash := r.Results[1]
	crash.Verdict = examine.Crashed
	assert.NotContains(t, report.Line(&crash), "likely cause", "the fault that a check looks for")
	assert.Contains(t, report.Line(&r.Results[2]), "(the stack does not claim sack)\n")
	assert.Contains(t, report.Line(&r.Results[3]), "(the stack has no such command: shutdown)\n")
	assert.Equal(t, "5 checks in 1.5 s: 1 pass, 1 fail, 1 blocked, 2 skipped\n", report.Summary(r))
	one := &examine.Report{Results: r.Results[:1]}
	assert.Equal(t, "1 check in 0.0 s: 1 pass\n", report.Summary(one))
	assert.Equal(t, []string{"tcp handshake: No answer & no RST."}, report.Causes(r),
		"blocked checks are not causes")
	assert.Equal(t, "node examine --command './node {lnx}' --only tcp/sack",
		report.Rerun([]string{"node", "examine", "--command", "./node {lnx}"}, "tcp/sack"))
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report.JSON(&b, examined()))
	var got struct {
		Good   bool
		Checks []struct {
			Name, Verdict, Reason, Missing, Bug string
			Ladder                              []string
		}
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	assert.False(t, got.Good)
	require.Len(t, got.Checks, 5)
	assert.Equal(t, "line 7, `expect S.`: it did not come", got.Checks[1].Reason)
	assert.Equal(t, []string{
		"    0.000 ms -> S seq 0 <", "    0.000 ms $ read 5", "    0.000 ms missing: S. ack 1",
	}, got.Checks[1].Ladder)
	assert.Equal(t, "sack", got.Checks[2].Missing)
	assert.Empty(t, got.Checks[0].Bug, "a check that passed shows no bug")
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report.JUnit(&b, examined()))
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Type    string `xml:"type,attr"`
			} `xml:"failure"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
		} `xml:"testcase"`
	}
	require.NoError(t, xml.Unmarshal(b.Bytes(), &got))
	assert.Equal(t, []int{5, 2, 2}, []int{got.Tests, got.Failures, got.Skipped})
	assert.Equal(t, "fail", got.Cases[1].Failure.Type)
	assert.Equal(t, "the stack does not claim sack", got.Cases[2].Skipped.Message)
	assert.Equal(t, "the stack has no such command: shutdown", got.Cases[3].Skipped.Message)
	assert.Equal(t, "blocked", got.Cases[4].Failure.Type)
}

func TestGradescope(t *testing.T) {
	t.Parallel()
	type test struct {
		Name, Status, Visibility, Output string
		Score                            float64
		Max                              float64 `json:"max_score"`
	}
	grade := func(rubric *report.Rubric) (score float64, tests []test) {
		var b bytes.Buffer
		require.NoError(t, report.Gradescope(&b, examined(), rubric))
		var got struct {
			Score float64
			Tests []test
		}
		require.NoError(t, json.Unmarshal(b.Bytes(), &got))
		return got.Score, got.Tests
	}
	score, tests := grade(nil)
	assert.InDelta(t, 1, score, 0)
	assert.Len(t, tests, 5, "each check is a part")

	score, tests = grade(&report.Rubric{Parts: []report.Part{
		{Name: "share", Points: 10, Checks: []string{"tcp"}},
		{Name: "all", Points: 5, Checks: []string{"tcp/fin-*", "tcp/handshake"}, All: true},
		{Name: "hidden", Points: 2, Checks: []string{"tcp/fin-acked"}, Hidden: true},
		{Name: "skipped", Points: 2, Checks: []string{"tcp/sack"}},
	}})
	assert.InDelta(t, 3.33+0+2+0, score, 0.001)
	assert.InDelta(t, 3.33, tests[0].Score, 0, "one of three: skipped checks do not count")
	assert.Contains(t, tests[0].Output, "1 of 3 checks passed\n")
	assert.Zero(t, tests[1].Score)
	assert.Equal(t, []string{"visible", "visible", "hidden", "visible"},
		[]string{tests[0].Visibility, tests[1].Visibility, tests[2].Visibility, tests[3].Visibility})
	assert.Equal(t, "passed", tests[2].Status)
	assert.Equal(t, "failed", tests[3].Status, "a part without a check that counts")
}

func TestReadRubric(t *testing.T) {
	t.Parallel()
	checks := []*examine.Check{{Name: "tcp/fin-acked"}, {Name: "tcp/handshake-passive"}}
	const part = "parts:\n  - name: Closing\n    points: 3\n    checks: "
	for _, c := range []struct{ text, want string }{
		{part + "[tcp/fin-*]\n", ""},
		{part + "[tcp]\n", ""},
		{"parts: []\n", "the rubric has no parts"},
		{"parts:\n  - points: 3\n", "a part has no name"},
		{"parts:\n  - name: Closing\n    points: -1\n", ":2:11: the part needs points of 0 or more"},
		{part + "[tcp/fin-acket]\n", ":4:14: no check has this name (did you mean tcp/fin-acked?)"},
		{part + "[\"tcp/[\"]\n", "malformed pattern"},
		{part + "[tcp]\n    point: 4\n", ":5:5: unknown field"},
		{"parts: [\n", ":1:"},
	} {
		file := filepath.Join(t.TempDir(), "rubric.yaml")
		require.NoError(t, files.Overwrite(file, []byte(c.text), 0o644))
		rubric, err := report.ReadRubric(file, checks)
		if c.want == "" {
			require.NoError(t, err, "%s", c.text)
			assert.InDelta(t, 3, rubric.Parts[0].Points, 0)
			continue
		}
		require.Error(t, err, "%s", c.text)
		assert.Contains(t, err.Error(), c.want)
		assert.Contains(t, err.Error(), file)
	}
	_, err := report.ReadRubric(filepath.Join(t.TempDir(), "none.yaml"), checks)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report.Page(&b, examined(), []string{"node", "examine"}, true))
	text := b.String()
	for _, want := range []string{
		"Examination of <code>./node &lt;x&gt;</code>", "A peer &lt;sends&gt; a SYN.",
		"S seq 0 &lt;</text>", "S. ack 1 — expected, did not come", "user: read 5",
		`href="tcp-handshake.pcapng"`, "node examine --only tcp/handshake",
		"<li>tcp handshake: No answer &amp; no RST.</li>", "a bad &lt;checksum&gt;",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "<script")
	assert.NotContains(t, text, "ZgotmplZ", "the template rejects no value")
	b.Reset()
	require.NoError(t, report.Page(&b, examined(), nil, false))
	assert.NotContains(t, b.String(), ".pcapng")
}

// Only checks that did not pass and that sent packets have a capture.
func TestCaptures(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, report.Captures(folder, examined()))
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, report.CaptureName("tcp/handshake"), list[0].Name())
	b, err := os.ReadFile(filepath.Join(folder, list[0].Name()))
	require.NoError(t, err)
	assert.Equal(t, []byte{0x0a, 0x0d, 0x0d, 0x0a}, b[:4], "a section header of pcapng")
	assert.Equal(t, 1, strings.Count(string(b), "S seq 0 <"), "the comment of the packet")
}
