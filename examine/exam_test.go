package examine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// Our own stack passes all checks, except the two long ones, which are skipped.
func TestSelf(t *testing.T) {
	times := 1
	if testenv.Long() {
		times = 100
	}
	for range times {
		report := examined(t, &examine.Self{}, 2)
		require.True(t, report.Good())
		assert.Equal(t, 2, report.Count(examine.Skipped), "files of 100 MB")
	}
}

// examined examines a subject. It fails with the ladders of the checks that did not pass.
func examined(t *testing.T, subject examine.Subject, workers int) *examine.Report {
	t.Helper()
	checks, err := examine.Checks()
	require.NoError(t, err)
	exam := &examine.Exam{Subject: subject, Checks: checks, Workers: workers}
	report := exam.Run(t.Context())
	for i := range report.Results {
		r := &report.Results[i]
		if r.Verdict == examine.Pass || r.Verdict == examine.Skipped {
			continue
		}
		t.Logf("%s: %s %+v", r.Check.Name, r.Verdict, r.Failure)
		for _, e := range r.Ladder {
			t.Logf("  %10s %-8s %s %s", e.At, e.Kind, e.Text, e.Note)
		}
	}
	assert.True(t, report.Good())
	t.Logf("%d checks in %s; %+v; %v", len(checks), report.Took, report.Units, report.Features)
	return report
}
