package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode"
)

// Report is the last report of `node examine --json` about a student's node.
type Report struct {
	Received time.Time      `json:"received"`
	Subject  string         `json:"subject"`
	Verdicts map[string]int `json:"verdicts"` // number of checks with each verdict
	Failed   []string       `json:"failed"`   // checks that neither passed nor were skipped
}

const (
	maxReport = 8 << 20
	maxChecks = 2000
	maxText   = 200
)

// verdicts are the examiner's verdicts.
var verdicts = []string{
	"pass", "fail", "blocked", "skipped", "flaky", "crashed", "exited", "hung", "flooded", "void",
}

func readReport(r io.Reader, now time.Time) (*Report, error) {
	var in struct {
		Subject string `json:"subject"`
		Checks  []struct {
			Name    string `json:"name"`
			Verdict string `json:"verdict"`
		} `json:"checks"`
	}
	d := json.NewDecoder(r)
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("not a report of `node examine --json`: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a report of `node examine --json`: data after the object")
	}
	if len(in.Checks) == 0 || len(in.Checks) > maxChecks {
		return nil, fmt.Errorf("the report has %d checks: must be 1 to %d checks",
			len(in.Checks), maxChecks)
	}
	out := &Report{Received: now, Subject: in.Subject, Verdicts: map[string]int{}}
	if !short(in.Subject) {
		return nil, fmt.Errorf("the subject must have at most %d printable characters", maxText)
	}
	for _, c := range in.Checks {
		if !slices.Contains(verdicts, c.Verdict) {
			return nil, fmt.Errorf("unknown verdict %.50q", c.Verdict)
		}
		if c.Name == "" || !short(c.Name) {
			return nil, fmt.Errorf("the name of a check must have 1 to %d printable characters",
				maxText)
		}
		out.Verdicts[c.Verdict]++
		if c.Verdict != "pass" && c.Verdict != "skipped" {
			out.Failed = append(out.Failed, c.Name)
		}
	}
	return out, nil
}

func short(s string) bool {
	return len(s) <= maxText && !slices.ContainsFunc([]rune(s), func(r rune) bool {
		return !unicode.IsPrint(r)
	})
}
