package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/table"
)

// Judged has the expectations of an experiment, checked against its runs.
type Judged struct {
	Name, About string
	Verdicts    []Verdict
}

// Judge runs a study and checks its expectations. It writes no files.
func Judge(ctx context.Context, s *Study, o Options) (*Judged, error) {
	jobs := byTrial(len(s.Cells), func(cell int) int { return s.Cells[cell].Trials })
	runs := map[job]*result.Trial{}
	err := s.execute(ctx, o, jobs, len(jobs), func(j job, t *result.Trial) error {
		runs[j] = t
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", s.Name, err)
	}
	if err != nil {
		return nil, err
	}
	return &Judged{s.Name, s.About, Expectations(s.Cells, inOrder(runs))}, nil
}

// Judge checks the expectations of a directory's experiment. cells are the experiment's cells; nil:
// they are read from the directory.
func (r *Results) Judge(cells []plan.Cell) (*Judged, error) {
	if cells == nil {
		s, err := Load(Request{Experiment: r.Dir})
		if err != nil {
			return nil, err
		}
		cells = s.Cells
	}
	if missing, runs := r.Missing(); runs > 0 {
		return nil, fmt.Errorf("%s: %w: %d runs of %d cells", r.Dir, ErrIncomplete, runs,
			len(missing))
	}
	return r.judge(cells), nil
}

func (r *Results) judge(cells []plan.Cell) *Judged {
	return &Judged{r.Name, r.About, Expectations(cells, r.Runs)}
}

// JudgeComplete checks the expectations of a directory's complete cells only.
func (r *Results) JudgeComplete() (*Judged, error) {
	s, err := Load(Request{Experiment: r.Dir})
	if err != nil {
		return nil, err
	}
	j := r.complete().judge(s.Cells)
	j.Verdicts = slices.DeleteFunc(j.Verdicts, func(v Verdict) bool {
		return errors.Is(v.Err, errNotRun)
	})
	return j, nil
}

// Tally counts verdicts. Own regressions count separately: they compare results with this program's
// earlier results, so they do not show that either is right.
type Tally struct{ Checks, Failed, Own, Changed int }

// Tally counts the verdicts.
func (j *Judged) Tally() Tally {
	var t Tally
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		switch {
		case v.Own() && !v.Pass:
			t.Changed++
			fallthrough
		case v.Own():
			t.Own++
		case !v.Pass:
			t.Failed++
			fallthrough
		default:
			t.Checks++
		}
	}
	return t
}

// Add adds the verdicts of another experiment.
func (t *Tally) Add(o Tally) {
	t.Checks, t.Failed = t.Checks+o.Checks, t.Failed+o.Failed
	t.Own, t.Changed = t.Own+o.Own, t.Changed+o.Changed
}

// String returns the number of expectations that hold.
func (t Tally) String() string {
	share := func(bad, all int, thing string) string {
		if all != 1 {
			thing += "s"
		}
		if bad == 0 {
			return fmt.Sprintf("%d %s", all, thing)
		}
		return fmt.Sprintf("%d of %d %s", all-bad, all, thing)
	}
	hold := share(t.Failed, t.Checks, "check") + " hold"
	if t.Checks == 1 {
		hold += "s"
	}
	if t.Own == 0 {
		return hold
	}
	return hold + ", " + share(t.Changed, t.Own, "own regression") + " unchanged"
}

// Failed returns the number of expectations that do not hold.
func (j *Judged) Failed() int {
	t := j.Tally()
	return t.Failed + t.Changed
}

// Formatted returns the verdicts as text.
func (j *Judged) Formatted() []figure.Verdict {
	if j == nil {
		return nil
	}
	out := make([]figure.Verdict, len(j.Verdicts))
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		out[i] = figure.Verdict{
			About: v.What(), Where: v.Case(), Expected: v.Expected(), Got: v.Got(),
			Tolerance: v.Tolerance(), Pass: v.Pass, Published: v.Published, Why: v.Why,
			Source: v.Source, Because: v.Because,
		}
	}
	return out
}

// Print writes the verdicts as a table, and the own regressions as a second table. If failedOnly is
// set, it writes only the expectations that do not hold.
func (j *Judged) Print(w io.Writer, failedOnly bool) error {
	var b strings.Builder
	b.WriteString(j.Name + "\n")
	for _, own := range []bool{false, true} {
		var list []*Verdict
		for i := range j.Verdicts {
			if v := &j.Verdicts[i]; v.Own() == own && (!failedOnly || !v.Pass) {
				list = append(list, v)
			}
		}
		if len(list) == 0 {
			continue
		}
		if own {
			b.WriteString("regression checks, against earlier results of this program:\n")
		}
		printVerdicts(&b, list)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printVerdicts(b *strings.Builder, list []*Verdict) {
	const whatWidth, caseWidth, expectedWidth, gotWidth = 34, 20, 22, 26
	t := table.New("<", "<what", "<where", "<expected", "<got", "<tolerance")
	var last string
	var before [4]string
	for _, v := range list {
		what := unless(v.What() == last, v.What())
		if what != "" {
			before = [4]string{}
		}
		last = v.What()
		verdict := "ok"
		switch {
		case !v.Pass && v.Own():
			verdict = "CHANGED"
		case !v.Pass:
			verdict = "FAILS"
		}
		t.Wrapped([]string{verdict}, table.Wrap(what, whatWidth), table.Wrap(v.Case(), caseWidth),
			table.Wrap(v.Expected(), expectedWidth), table.Wrap(v.Got(), gotWidth),
			[]string{v.Tolerance()})
		notes := [4]string{v.Published, v.Why, v.Source, v.Because}
		for i, label := range []string{"published: ", "", "source: ", "tolerance: "} {
			if notes[i] != "" && notes[i] != before[i] && (!v.Own() || i != sourceNote) {
				t.Wrapped(nil, table.Wrap(label+notes[i], whatWidth), nil, nil, nil, nil)
			}
		}
		before = notes
	}
	t.Columns = slices.DeleteFunc(t.Columns, func(c table.Column) bool {
		return !slices.ContainsFunc(c.Cells, func(text string) bool { return text != "" })
	})
	b.WriteString(t.String())
}

const sourceNote = 2 // index of the source among a verdict's notes
