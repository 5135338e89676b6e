// Package report writes the result of an examination: as text, as a page, as JSON, as JUnit XML, as
// Gradescope's results.json, and as pcapng files of the failed checks.
package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Line returns a result as a line of text. Further lines give the reason of a failure.
func Line(r *examine.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %-36s %-7s %s", r.Verdict, r.Check.Name, r.Check.Level, r.Check.RFC)
	if r.Verdict == examine.Skipped {
		fmt.Fprintf(&b, " (%s)", skipped(r))
	}
	b.WriteByte('\n')
	if f := r.Failure; f != nil && r.Verdict != examine.Skipped {
		fmt.Fprintf(&b, "         %s\n         rule: %s\n", reason(r), r.Check.Rule)
		if r.Verdict == examine.Fail || r.Verdict == examine.Flaky {
			fmt.Fprintf(&b, "         likely cause: %s\n", r.Check.Bug)
		}
		if f.Hint != "" {
			fmt.Fprintf(&b, "         note: %s\n", f.Hint)
		}
	}
	return b.String()
}

// skipped returns why a check was skipped.
func skipped(r *examine.Result) string {
	if r.Failure != nil {
		return r.Failure.Reason
	}
	if r.Missing == examine.FeatureLong {
		return "it takes minutes; --long includes it"
	}
	return "the stack does not claim " + string(r.Missing)
}

// reason returns the position and the reason of a failure.
func reason(r *examine.Result) string {
	f := r.Failure
	if f.Line == 0 {
		return f.Reason
	}
	return fmt.Sprintf("line %d, `%s`: %s", f.Line, f.Step, f.Reason)
}

// Summary returns the last line of the text.
func Summary(r *examine.Report) string {
	var parts []string
	for v := examine.Pass; v <= examine.Void; v++ {
		if n := r.Count(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	checks := "checks"
	if len(r.Results) == 1 {
		checks = "check"
	}
	return fmt.Sprintf("%d %s in %.1f s: %s\n", len(r.Results), checks, r.Took.Seconds(),
		strings.Join(parts, ", "))
}

// Causes returns what to look at first: each area with failures, with the most common bug behind
// its first failed check.
func Causes(r *examine.Report) []string {
	seen := map[string]bool{}
	var list []string
	for i := range r.Results {
		if x := &r.Results[i]; bad(x.Verdict) && !seen[x.Check.Area] {
			seen[x.Check.Area] = true
			list = append(list, x.Check.Area+": "+x.Check.Bug)
		}
	}
	return list
}

// bad reports whether a verdict means that the subject violates the check's requirement.
func bad(v examine.Verdict) bool {
	return v != examine.Pass && v != examine.Skipped && v != examine.Blocked && v != examine.Void
}

type jsonReport struct {
	Subject  string            `json:"subject"`
	Began    time.Time         `json:"began"`
	Took     float64           `json:"took_s"`
	RTT      float64           `json:"rtt_s"`
	RTO      float64           `json:"rto_s"`
	Features []examine.Feature `json:"features"`
	Good     bool              `json:"good"`
	Checks   []jsonCheck       `json:"checks"`
}

type jsonCheck struct {
	Name    string            `json:"name"`
	Verdict examine.Verdict   `json:"verdict"`
	RFC     string            `json:"rfc"`
	Level   string            `json:"level"`
	Area    string            `json:"area"`
	Story   string            `json:"story"`
	Rule    string            `json:"rule"`
	Bug     string            `json:"bug,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Hint    string            `json:"hint,omitempty"`
	Missing examine.Feature   `json:"missing,omitempty"`
	Runs    []examine.Verdict `json:"runs"`
	Took    float64           `json:"took_s"`
	Ladder  []string          `json:"ladder,omitempty"`
}

// JSON writes the whole result.
func JSON(w io.Writer, r *examine.Report) error {
	out := jsonReport{
		Subject: r.Subject, Began: r.Began, Took: r.Took.Seconds(), RTT: r.Units.RTT.Seconds(),
		RTO: r.Units.RTO.Seconds(), Features: r.Features, Good: r.Good(),
	}
	for i := range r.Results {
		x := &r.Results[i]
		c := jsonCheck{
			Name: x.Check.Name, Verdict: x.Verdict, RFC: x.Check.RFC, Level: x.Check.Level,
			Area: x.Check.Area, Story: x.Check.Story, Rule: x.Check.Rule, Missing: x.Missing,
			Runs: x.Runs, Took: x.Took.Seconds(),
		}
		if x.Failure != nil && x.Verdict != examine.Skipped {
			c.Bug, c.Reason, c.Hint = x.Check.Bug, reason(x), x.Failure.Hint
			for j := range x.Ladder {
				c.Ladder = append(c.Ladder, rung(&x.Ladder[j]))
			}
		}
		out.Checks = append(out.Checks, c)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

// rung returns a line of a ladder as text.
func rung(e *examine.Event) string {
	marks := map[string]string{
		examine.EventSent: "->", examine.EventReceived: "<-", examine.EventCommand: "$",
		examine.EventExpected: "missing:", examine.EventUnwanted: "<- unwanted:",
	}
	s := fmt.Sprintf("%9.3f ms %s %s", e.At.Seconds()*1e3, marks[e.Kind], e.Text)
	if e.Note != "" {
		s += " (" + e.Note + ")"
	}
	return s
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the result as JUnit XML.
func JUnit(w io.Writer, r *examine.Report) error {
	suite := junitSuite{
		Name: "examine " + r.Subject, Tests: len(r.Results), Skipped: r.Count(examine.Skipped),
		Failures: len(r.Results) - r.Count(examine.Pass) - r.Count(examine.Skipped),
		Time:     fmt.Sprintf("%.3f", r.Took.Seconds()),
	}
	for i := range r.Results {
		x := &r.Results[i]
		c := junitCase{
			Class: x.Check.Area, Name: x.Check.Name,
			Time: fmt.Sprintf("%.3f", x.Took.Seconds()),
		}
		switch {
		case x.Verdict == examine.Skipped:
			c.Skipped = &junitText{Message: skipped(x)}
		case x.Verdict != examine.Pass:
			c.Failure = &junitText{Message: reason(x), Type: x.Verdict.String(), Text: Line(x)}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Captures writes pcapng files into a folder: one for each check that did not pass, named after the
// check. Each packet has its direction and a comment in the notation of check files.
func Captures(folder string, r *examine.Report) error {
	for i := range r.Results {
		x := &r.Results[i]
		if x.Failure == nil || x.Verdict == examine.Skipped || len(x.Ladder) == 0 {
			continue
		}
		file := filepath.Join(folder, CaptureName(x.Check.Name))
		if err := writeCapture(file, r.Began, x); err != nil {
			return err
		}
	}
	return nil
}

// CaptureName returns the file name of a check's capture.
func CaptureName(check string) string { return strings.ReplaceAll(check, "/", "-") + ".pcapng" }

func writeCapture(file string, began time.Time, x *examine.Result) error {
	var faces []capture.Interface
	for _, l := range x.Links {
		faces = append(faces, capture.Interface{Name: l.Name, Addr: l.Addr.String()})
	}
	var b bytes.Buffer
	w, err := capture.New(&b, faces, 0)
	if err != nil {
		return err
	}
	for j := range x.Ladder {
		e := &x.Ladder[j]
		if e.Raw == nil {
			continue
		}
		direction := capture.Outbound // as the subject sees it
		if e.Kind == examine.EventSent {
			direction = capture.Inbound
		}
		at := began.UnixNano() + int64(e.At)
		comment := strings.TrimSpace(e.Text + " " + e.Note)
		if err := w.Packet(at, e.Link, direction, comment, e.Raw); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return files.Overwrite(file, b.Bytes(), 0o644)
}

// Rerun returns the command that runs this check alone.
func Rerun(command []string, check string) string {
	var words []string
	for _, w := range append(append([]string(nil), command...), "--only", check) {
		words = append(words, diagnostic.ShellWord(w))
	}
	return strings.Join(words, " ")
}
