package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/table"
)

// addReal adds a cell in real time after each cell of a study, if all cells can run in real time.
func (s *Study) addReal(q *Request, f *plan.File) error {
	both := make([]plan.Cell, 0, 2*len(s.Cells))
	for i := range s.Cells {
		c := s.Cells[i]
		if err := emulation.CheckReal(&c.Experiment, q.Processes.Programs); err != nil {
			return f.ErrorAt(&c, err.Flow, err.Key, err.What, err.Want)
		}
		c.Index = 2 * i
		timed := c
		if emulation.CheckVirtual(&c.Experiment) != nil {
			c.Trials = 0
		}
		timed.Index++
		timed.Trials = max(1, q.RealTrials)
		both = append(both, c, timed)
	}
	s.Cells = both
	s.Plan = markOf(s.Plan, "real")
	o := q.Processes
	o.Plan = emulation.Plan{Document: string(s.Document), Files: s.Files}
	s.Real = func(ctx context.Context, cell *plan.Cell, trial int, record bool) (
		*result.Trial, *result.Record, error,
	) {
		c := *cell
		c.Index /= 2 // position in the document
		t, r, err := o.Play(ctx, &c, trial, record)
		if t != nil {
			t.Cell = cell.Index
		}
		return t, r, err
	}
	return nil
}

func (s *Study) onlyVirtual(f *plan.File) error {
	for i := range s.Cells {
		if err := emulation.CheckVirtual(&s.Cells[i].Experiment); err != nil {
			at := f.ErrorAt(&s.Cells[i], err.Flow, err.Key, err.What, err.Want)
			return &kindError{at, ErrRealOnly}
		}
	}
	return nil
}

// ErrRealOnly means that an experiment can only run in real time.
var ErrRealOnly = errors.New("runs only in real time")

// hasReal reports whether a directory has results in real time. It returns false if dir is empty.
func hasReal(dir string) bool {
	if dir == "" {
		return false
	}
	m, err := readManifest(dir)
	return err == nil && m.Real
}

// split separates jobs in virtual time from jobs in real time, which need the whole machine.
func (s *Study) split(jobs []job) (virtual, timed []job) {
	for _, j := range jobs {
		if s.isReal(j.cell) {
			timed = append(timed, j)
		} else {
			virtual = append(virtual, j)
		}
	}
	return virtual, timed
}

// workReal runs jobs in real time, one after the other. When ctx ends, it stops the current job and
// returns ctx's cause.
func (s *Study) workReal(
	ctx context.Context, jobs []job, o Options, done func(job, *result.Trial) error,
) error {
	for _, j := range jobs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		record := j.trial == 0 && j.cell < o.Records
		t, r, err := s.Real(ctx, &s.Cells[j.cell], j.trial, record)
		if err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%v: %w", j, err)
			}
			return err
		}
		if err := keepRecord(o.Dir, recordName(len(s.Cells), j.cell), r); err != nil {
			return err
		}
		if err := done(j, t); err != nil {
			return err
		}
	}
	return nil
}

// announce passes the number of jobs in real time and their maximum total duration to tell.
func (s *Study) announce(jobs []job, tell func(runs int, most time.Duration) error) error {
	if len(jobs) == 0 || tell == nil {
		return nil
	}
	var most time.Duration
	for _, j := range jobs {
		most += emulation.Estimate(&s.Cells[j.cell])
	}
	if err := tell(len(jobs), most); err != nil {
		return usage("%w", err)
	}
	return nil
}

// comparedMetrics are the default metrics of the comparison of virtual time with real time.
var comparedMetrics = []result.Metric{
	result.Completion, result.ClientSent, result.SmallMean, result.Goodput, result.RTTMean,
	result.Utilization, result.Retransmits,
}

// printReal compares the runs in virtual time with the runs in real time, and describes the
// lateness of the runs in real time.
func (r *Results) printReal(b *strings.Builder, metrics []result.Metric) {
	if metrics == nil {
		metrics = comparedMetrics
	}
	if list := ofInterest(r.CompareClocks(), metrics); len(list) > 0 {
		b.WriteString("\n")
		b.WriteString(comparisonTable(list, "virtual", "real").String())
	}
	lines, _ := r.Timings()
	if len(lines) > 0 {
		b.WriteString("\n")
	}
	for _, line := range lines {
		b.WriteString(strings.Join(table.Wrap(line, maxColumns), "\n    ") + "\n")
	}
}

// comparedTable compares the runs with the runs in real time, or with another simulator's runs. It
// returns nil if there is nothing to compare.
func (r *Results) comparedTable(d *DrawOptions) (*figure.Comparison, error) {
	title, list := "Real and virtual time", r.CompareClocks()
	before, after := "virtual", "real"
	if d.Other != nil {
		var err error
		if list, err = Compare(r, d.Other); err != nil {
			return nil, err
		}
		before, after = "tidepool", d.OtherName
		title = d.OtherName + " and tidepool"
	}
	if list = ofInterest(list, comparedMetrics); len(list) == 0 {
		return nil, nil
	}
	return &figure.Comparison{Title: title, Table: comparisonTable(list, before, after)}, nil
}

// comparedSection draws a cell's first run, and the same run in real time or in another simulator,
// in the same figures. It returns nil if a record is missing.
func (r *Results) comparedSection(cell int, d *DrawOptions) (*figure.Section, error) {
	names, other, at := [2]string{"virtual", "real"}, r, cell+1
	switch {
	case d.Other != nil:
		names, other, at = [2]string{"tidepool", d.OtherName}, d.Other, cell
	case !r.Real || isReal(cell):
		return nil, nil
	}
	first, err := r.Record(cell)
	if err == nil {
		var second *result.Record
		if second, err = other.Record(at); err == nil {
			return &figure.Section{
				Title: first.Title + ", " + names[0] + " and " + names[1],
				Plots: figure.CompareRuns(first, second, names),
			}, nil
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

func (r *Results) clockName(cell int) string {
	if !isReal(cell) {
		return "virtual"
	}
	if isLate(r.runsOf(cell)) {
		return "real, late"
	}
	return "real"
}

func isLate(runs []*result.Trial) bool {
	return slices.ContainsFunc(runs, func(t *result.Trial) bool {
		return t.Clock == result.LateTime
	})
}

// Timings describes the lateness of the runs in each cell in real time, and reports whether all
// were on time. If they were not, the first line says which results are still valid.
func (r *Results) Timings() (lines []string, onTime bool) {
	onTime = true
	for i := range r.Cells {
		text := r.timing(i)
		if text == "" {
			continue
		}
		onTime = onTime && !isLate(r.runsOf(i))
		line := "real time"
		if cell := r.cellText(i); cell != "" {
			line += ", " + cell
		}
		lines = append(lines, line+": "+text)
	}
	if !onTime {
		lines = append([]string{"The runs in virtual time are valid. Runs in real time were " +
			"late, so this machine caused a part of the differences in the marked rows. Repeat " +
			"these runs when the machine is idle."}, lines...)
	}
	return lines, onTime
}

// timing describes the lateness of the runs of a cell; empty for a cell in virtual time.
func (r *Results) timing(cell int) string {
	runs := r.runsOf(cell)
	if !r.Real || !isReal(cell) || len(runs) == 0 {
		return ""
	}
	var worst emulation.Timing
	onTime := 0
	for _, t := range runs {
		one := emulation.Timing(t.Whole)
		if t.Clock == result.RealTime {
			onTime++
		}
		if worst == nil || one.WorseThan(worst) {
			worst = one
		}
	}
	if len(runs) == 1 {
		return worst.String()
	}
	return fmt.Sprintf("%d of %d runs kept time; the worst %s", onTime, len(runs), worst)
}

// CompareClocks compares the results in virtual time with the results in real time, cell by cell.
func (r *Results) CompareClocks() []Comparison {
	if !r.Real {
		return nil
	}
	var out []Comparison
	for i := 0; i+1 < len(r.Cells); i += 2 {
		virtual, timed := r.runsOf(i), r.runsOf(i+1)
		if len(virtual) > 0 && len(timed) > 0 {
			list := compareRuns(virtual, timed, r.Cells[i].Set)
			for j := range list {
				list[j].Late = isLate(timed)
			}
			out = append(out, list...)
		}
	}
	return out
}
