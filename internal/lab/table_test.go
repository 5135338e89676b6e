package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// printed runs a study and returns its table.
func printed(t *testing.T, s *lab.Study, metrics ...result.Metric) string {
	t.Helper()
	r, err := lab.Run(t.Context(), s, lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, r.Print(&b, lab.TableOptions{Metrics: metrics}))
	for line := range strings.SplitSeq(b.String(), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 100)
		assert.Equal(t, strings.TrimRight(line, " "), line)
	}
	return b.String()
}

// came returns a player whose results the test sets.
func came(of func(cell, trial int, t *result.Trial)) lab.Player {
	return func(cell *plan.Cell, trial int, _ simulation.Options) (*result.Trial, *result.Record, error) {
		t := &result.Trial{Cell: cell.Index, Trial: trial, Finished: true, Whole: result.Values{}}
		for i := range cell.Flows {
			t.Flows = append(t.Flows, result.Flow{
				Name: cell.Flows[i].Name, Label: "reno", Finished: true, Values: result.Values{},
			})
		}
		of(cell.Index, trial, t)
		return t, nil, nil
	}
}

func TestTable(t *testing.T) {
	s := study(2, 3)
	s.Play = came(func(cell, trial int, t *result.Trial) {
		t.Flows[0].Values[result.Goodput] = float64(2_000_000 + 1000*cell + trial*100_000)
		t.Flows[1].Values[result.Goodput] = 500_000
		t.Flows[0].Values[result.RTTMean] = 0.1
		t.Flows[1].Values[result.Retransmits] = float64(trial)
		t.Whole[result.Jain] = 0.75
	})
	assert.Equal(t, strings.TrimPrefix(`
drawn: random numbers

                 goodput     mean RTT  retransmitted             Jain
cc   flow         Mbit/s           ms        packets
cc0  a     2.100 ± 0.248  100.0 ± 0.0
     b     0.500 ± 0.000               1.000 ± 2.484
     all                                              0.7500 ± 0.0000
cc1  a     2.101 ± 0.248  100.0 ± 0.0
     b     0.500 ± 0.000               1.000 ± 2.484
     all                                              0.7500 ± 0.0000

means of 3 trials ± half of the 95 % confidence interval, seed 1
`, "\n"), printed(t, s))
}

func TestTableOfUnfinishedRuns(t *testing.T) {
	s := study(3, 5)
	for i := range s.Cells {
		s.Cells[i].Flows = s.Cells[i].Flows[:1]
	}
	s.Play = came(func(cell, trial int, t *result.Trial) {
		f := &t.Flows[0]
		if trial < 2*cell {
			t.Finished, f.Finished = false, false
			f.Note = "out of time: 3 of 5 bytes"
			return
		}
		f.Values[result.Completion] = 0.01 * float64(1+trial)
	})
	assert.Equal(t, strings.TrimPrefix(`
drawn: random numbers

     finished                completion
cc       runs                        ms
cc0       5/5    30.00 ± 19.63
cc1       3/5  ~ 50.00 (40.00 to never)
cc2       1/5  ~ never

means of 5 trials ± half of the 95 % confidence interval, seed 1
where runs were cut off: ~ median (between the quartiles)
2 of 5 did not finish: cc=cc1 a, trial 0: out of time: 3 of 5 bytes
4 of 5 did not finish: cc=cc2 a, trial 0: out of time: 3 of 5 bytes
`, "\n"), printed(t, s))
}

// A single run that was cut off has no quartiles.
func TestTableOfOneUnfinishedRun(t *testing.T) {
	s := study(1, 1)
	s.Cells[0].Flows = s.Cells[0].Flows[:1]
	s.Play = came(func(_, _ int, t *result.Trial) {
		t.Finished, t.Flows[0].Finished = false, false
		t.Flows[0].Note = "out of time: 3 of 5 bytes"
		t.Flows[0].Values[result.Goodput] = 2e6
	})
	got := printed(t, s, result.Completion, result.Goodput)
	assert.Contains(t, got, "0/1       never    2.000\n")
	assert.NotContains(t, got, "~")
}

func TestTableOfChosenMetrics(t *testing.T) {
	s := study(1, 1)
	assert.Equal(t, strings.TrimPrefix(`
drawn: random numbers

             Jain  goodput
cc   flow           Mbit/s
cc0  a               1.005
     b               2.049
     all   0.9499

one trial, seed 1
`, "\n"), printed(t, s, result.Jain, result.Goodput))
}

// If the numbers of a column differ by orders of magnitude, each number shows its significant
// digits, and the decimal points are aligned.
func TestTableOfUnlikeNumbers(t *testing.T) {
	s := study(3, 3)
	for i := range s.Cells {
		s.Cells[i].Flows = s.Cells[i].Flows[:1]
	}
	s.Play = came(func(cell, trial int, t *result.Trial) {
		size := []float64{0.0015, 0.3, 14.5}[cell]
		t.Flows[0].Values[result.Completion] = size * (1 + float64(trial)/1000)
		t.Flows[0].Values[result.Retransmits] = []float64{0, 3, 1218}[cell]
	})
	assert.Equal(t, strings.TrimPrefix(`
drawn: random numbers

               completion  retransmitted
cc                      s        packets
cc0   0.001502 ± 0.000004          0 ± 0
cc1   0.3003   ± 0.0007            3 ± 0
cc2  14.51     ± 0.04           1218 ± 0

means of 3 trials ± half of the 95 % confidence interval, seed 1
`, "\n"), printed(t, s))
}

// The table summarizes many flows by kind, unless all are requested.
func TestTableOfManyFlows(t *testing.T) {
	s := study(1, 2)
	for i := range 38 {
		s.Cells[0].Flows = append(s.Cells[0].Flows, plan.Flow{Name: fmt.Sprint("f", i)})
	}
	s.Play = came(func(_, trial int, t *result.Trial) {
		for i := range t.Flows {
			t.Flows[i].Values[result.Goodput] = float64((1 + i) * 1_000_000)
			if i >= 30 {
				t.Flows[i].Label = "bbr"
			}
		}
		t.Whole[result.Jain] = 0.75
	})
	assert.Equal(t, strings.TrimPrefix(`
drawn: random numbers

                                 goodput             Jain
cc   flow           kind          Mbit/s
cc0  minimum of 30  reno   1.000 ± 0.000
     median of 30   reno  15.50  ± 0.00
     maximum of 30  reno  30.00  ± 0.00
     minimum of 10  bbr   31.00  ± 0.00
     median of 10   bbr   35.50  ± 0.00
     maximum of 10  bbr   40.00  ± 0.00
     all                                  0.7500 ± 0.0000

means of 2 trials ± half of the 95 % confidence interval, seed 1
many flows: minimum, median and maximum of each metric; --all shows each
`, "\n"), printed(t, s))
	r, err := lab.Run(t.Context(), s, lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, r.Print(&b, lab.TableOptions{All: true}))
	assert.Contains(t, b.String(), "     f37   bbr   40.00  ± 0.00\n")
	assert.NotContains(t, b.String(), "of 30")
}

// A file chooses the columns, but the caller of Print may override them.
func TestTableOfFileMetrics(t *testing.T) {
	s := study(1, 1)
	s.Metrics = []result.Metric{result.Jain}
	assert.NotContains(t, printed(t, s), "goodput")
	got := printed(t, s, result.Goodput)
	assert.Contains(t, got, "goodput")
	assert.NotContains(t, got, "Jain")
}

// Columns that do not fit are omitted, the least important first. The row of a single flow also has
// the metrics of the run.
func TestTableFits(t *testing.T) {
	s := study(1, 2)
	s.Cells[0].Set = nil
	s.Cells[0].Flows = s.Cells[0].Flows[:1]
	founding := []result.Metric{
		result.ClientSent, result.SmallMean, result.NotebookThroughput, result.NotebookDuplicates,
	}
	s.Play = came(func(_, trial int, t *result.Trial) {
		for _, d := range result.Catalog() {
			if slices.Contains(founding, d.Name) {
				continue // some runs lack these
			}
			t.Whole[d.Name], t.Flows[0].Values[d.Name] = 1234.5, 1234.5+float64(trial)
		}
	})
	got := printed(t, s)
	assert.Contains(t, got, "completion        goodput  mean RTT  utilisation  retransmitted      sent  queue (p95)\n")
	assert.Contains(t, got, "\na     reno    1235 ± 6  1.235 ± 0.006  1235 ± 6 ")
}

func TestTableAsLaTeX(t *testing.T) {
	s := study(2, 3)
	s.Play = came(func(cell, trial int, t *result.Trial) {
		t.Flows[0].Values[result.Goodput] = float64(2_000_000 + 1000*cell + trial*100_000)
		t.Flows[1].Values[result.Retransmits] = float64(trial)
	})
	r, err := lab.Run(t.Context(), s, lab.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	r.About = "50 % & more_of {it}"
	var b strings.Builder
	goodput := lab.TableOptions{LaTeX: true, Metrics: []result.Metric{result.Goodput}}
	require.NoError(t, r.Print(&b, goodput))
	text := b.String()
	assert.Contains(t, text, "% drawn: 50 % & more_of {it}\n", "a comment needs no escapes")
	assert.Contains(t, text, "\\begin{tabular}{llr}\n\\toprule\n")
	assert.Regexp(t, `\ncc0 & a & 2\.\d+ \$\\pm\$ 0\.\d+ \\\\\n`, text)
	assert.True(t, strings.HasSuffix(strings.Split(text, "\\bottomrule")[1], "\n"))
	columns := strings.Count("llr", "") - 1
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "\\\\\n") {
			assert.Equal(t, columns-1, strings.Count(line, " & ")+strings.Count(line[:2], "& "), line)
		} else {
			assert.Regexp(t, `^(%|\\)`, line)
		}
	}
}
