package lab_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// ran runs a study and returns its results.
func ran(t *testing.T, s *lab.Study) *lab.Results {
	t.Helper()
	r, err := lab.Run(t.Context(), s, lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	return r
}

// shifted returns a study whose values differ by 100 between trials. Two shifted studies differ by
// much less in each trial.
func shifted(seed uint64, by func(trial int) float64) *lab.Study {
	s := study(2, 3)
	s.Play = came(func(cell, trial int, t *result.Trial) {
		t.Seed = seed + uint64(trial)
		t.Flows[0].Values[result.Sent] = 100*float64(trial+1) + by(trial)
		if cell == 0 || trial > 0 {
			t.Flows[1].Values[result.Completion] = 2 + by(trial)
		}
		t.Whole[result.Jain] = 1
	})
	return s
}

func TestCompare(t *testing.T) {
	a := ran(t, shifted(1, func(int) float64 { return 0 }))
	b := ran(t, shifted(1, func(trial int) float64 { return 10 + float64(trial) }))
	list, err := lab.Compare(a, b)
	require.NoError(t, err)
	first := list[0]
	assert.Equal(t, result.Sent, first.Metric)
	assert.True(t, first.Paired)
	assert.Equal(t, 3, first.N)
	assert.InDelta(t, 11, *first.Change, 1e-9)
	assert.InDelta(t, 4.3027/1.7321, (*first.High-*first.Low)/2, 1e-3, "of 10, 11 and 12")

	a.Dir, b.Dir = "a", "b"
	var out strings.Builder
	require.NoError(t, lab.PrintComparison(&out, a, b, list, lab.TableOptions{}))
	assert.Equal(t, strings.TrimPrefix(`
cell    flow  metric          a      b     difference
cc=cc0  a     sent        200.0  211.0   +11.0 ± 2.5   packets    +5.5 %
        b     completion   2.00  13.00  +11.00 ± 2.48  s        +550.0 %
cc=cc1  a     sent        200.0  211.0   +11.0 ± 2.5   packets    +5.5 %
        b     completion   2.00  13.50  +11.50 ± 6.35  s        +575.0 %

pairs of runs with the same random numbers: mean differences ± half of the 95 % confidence interval
?: the interval contains 0
pairs with an incomplete run are left out of some metrics
`, "\n"), out.String())

	out.Reset()
	jain := lab.TableOptions{Metrics: []result.Metric{result.Jain}}
	require.NoError(t, lab.PrintComparison(&out, a, b, list, jain))
	assert.Equal(t, "nothing to compare\n", out.String(), "Jain's index is 1 on both sides")

	out.Reset()
	require.NoError(t, lab.PrintComparison(&out, a, b, list, lab.TableOptions{LaTeX: true}))
	assert.Regexp(t, `(?s)^% a and b\n.*\\midrule
cc=cc0 & a & sent & 200\.0 & 211\.0 & \+11\.0 \$\\pm\$ 2\.5 & packets & \+5\.5 \\% \\\\
.*\\end\{tabular\}\n%`, out.String())
}

// With different seeds, the same numbers show no significant difference.
func TestCompareWithoutPairs(t *testing.T) {
	a := ran(t, shifted(1, func(int) float64 { return 0 }))
	b := ran(t, shifted(7, func(trial int) float64 { return 10 + float64(trial) }))
	list, err := lab.Compare(a, b)
	require.NoError(t, err)
	assert.False(t, list[0].Paired)
	assert.InDelta(t, 11, *list[0].Change, 1e-9)
	assert.Negative(t, *list[0].Low)
	var out strings.Builder
	require.NoError(t, lab.PrintComparison(&out, a, b, list, lab.TableOptions{}))
	assert.Contains(t, out.String(), "packets    +5.5 % ?\n")
	assert.Contains(t, out.String(), "(Welch)")
}

func TestCompareMismatchedResults(t *testing.T) {
	a, b := ran(t, study(2, 1)), ran(t, study(3, 1))
	list, err := lab.Compare(a, b)
	require.NoError(t, err)
	assert.Len(t, list, 2*3, "two cells: two flows' goodputs and Jain's index")
	for i := range b.Cells {
		b.Cells[i].Set = nil
	}
	_, err = lab.Compare(a, b)
	require.ErrorIs(t, err, lab.ErrUsage)
	require.ErrorContains(t, err, "no cell in common")

	one := study(2, 1)
	for i := range one.Cells {
		one.Cells[i].Flows = one.Cells[i].Flows[:1]
	}
	_, err = lab.Compare(a, ran(t, one))
	require.ErrorContains(t, err, "2 flows, and cell 0")
}

// labelled returns a study with one flow, which the file names tahoe. The kinds are the congestion
// controls of the cells.
func labelled(kinds ...string) *lab.Study {
	s := study(len(kinds), 1)
	for i := range s.Cells {
		s.Cells[i].Flows = s.Cells[i].Flows[:1]
		s.Cells[i].Flows[0].Name = "tahoe"
	}
	s.Play = func(c *plan.Cell, trial int, o simulation.Options) (*result.Trial, *result.Record, error) {
		t, r, err := drawn(c, trial, o)
		t.Flows[0].Label = kinds[c.Index]
		return t, r, err
	}
	return s
}

// A single flow is named after its congestion control, even if the file gives it another name.
func TestComparisonNamesTheCongestionControl(t *testing.T) {
	a, b := ran(t, labelled("tahoe", "cubic")), ran(t, labelled("tahoe", "bbr"))
	list, err := lab.Compare(a, b)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, lab.PrintComparison(&out, a, b, list, lab.TableOptions{}))
	assert.Regexp(t, `cc=cc0 +tahoe +goodput`, out.String())
	assert.Regexp(t, `cc=cc1 +cubic / bbr +goodput`, out.String())
}

// Runs in real time that were late are marked in the tables.
func TestLateRunsAreMarked(t *testing.T) {
	for clock, want := range map[result.Clock]string{
		result.LateTime: `\nreal, late +`, result.RealTime: `\nreal +reno`,
	} {
		s := labelled("reno", "reno")
		for i := range s.Cells {
			s.Cells[i].Set = nil
		}
		s.Real = func(_ context.Context, c *plan.Cell, trial int, _ bool) (
			*result.Trial, *result.Record, error,
		) {
			one, _, err := drawn(c, trial, simulation.Options{})
			one.Clock = clock
			return one, nil, err
		}
		r := ran(t, s)
		var out strings.Builder
		require.NoError(t, r.Print(&out, lab.TableOptions{}))
		text := strings.ReplaceAll(out.String(), "tahoe", "")
		assert.Regexp(t, want, text)
		late := clock == result.LateTime
		assert.Equal(t, late, strings.Contains(text, "Runs in real time were late"))
		assert.Equal(t, late, regexp.MustCompile(`goodput .* late\n`).MatchString(text), text)
		report, err := r.Draw(lab.DrawOptions{})
		require.NoError(t, err)
		page, err := os.ReadFile(report)
		require.NoError(t, err)
		assert.Equal(t, late, strings.Contains(string(page), ">real, late</td>"))
	}
}
