package examine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
)

// Our own stack passes all checks, and none is skipped.
func TestSelf(t *testing.T) {
	checks, err := examine.Checks()
	require.NoError(t, err)
	exam := &examine.Exam{Subject: &examine.Self{}, Checks: checks, Workers: 2}
	report := exam.Run(t.Context())
	for i := range report.Results {
		r := &report.Results[i]
		if r.Verdict == examine.Pass {
			continue
		}
		t.Logf("%s: %s %s %+v", r.Check.Name, r.Verdict, r.Missing, r.Failure)
		for _, e := range r.Ladder {
			t.Logf("  %10s %-8s %s %s", e.At, e.Kind, e.Text, e.Note)
		}
	}
	assert.True(t, report.Good())
	assert.Zero(t, report.Count(examine.Skipped))
	t.Logf("%d checks in %s; %+v; %v", len(checks), report.Took, report.Units, report.Features)
}
