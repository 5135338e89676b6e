package lab

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/check"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/play"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Judged is the expectations of an experiment, held against what its runs came to.
type Judged struct {
	Name, About string
	Verdicts    []check.Verdict
}

// Judge runs a study and holds what its runs come to against what is expected of them. It leaves
// nothing but its answer.
func Judge(ctx context.Context, s *Study, o Options) (*Judged, error) {
	jobs := byTrial(len(s.Cells), func(cell int) int { return s.Cells[cell].Trials })
	runs := map[job]*result.Trial{}
	if o.Progress != nil {
		o.Progress(0, len(jobs))
	}
	do := func(j job, shelf *play.Shelf) (*result.Trial, error) {
		t, _, err := s.Play(&s.Cells[j.cell], j.trial, play.Options{Shelf: shelf})
		if err != nil {
			return nil, fmt.Errorf("%s, %v: %w", s.Name, j, err)
		}
		return t, nil
	}
	err := work(ctx, jobs, o.Workers, do, func(j job, t *result.Trial) error {
		runs[j] = t
		if o.Progress != nil {
			o.Progress(len(runs), len(jobs))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Judged{s.Name, s.About, check.Expectations(s.Cells, inOrder(runs))}, nil
}

// Judge holds the runs of a directory against what its experiment expects of them. Cells are the
// experiment's; nil: it is read from the directory.
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
	cells, list := virtualOf(r.Manifest, cells, r.Runs)
	return &Judged{r.Name, r.About, check.Expectations(cells, list)}, nil
}

// Failed is how many expectations do not hold.
func (j *Judged) Failed() int {
	n := 0
	for i := range j.Verdicts {
		if !j.Verdicts[i].Pass {
			n++
		}
	}
	return n
}

// figures are the verdicts as the report has them.
func (j *Judged) figures() []figure.Verdict {
	var out []figure.Verdict
	if j == nil {
		return nil
	}
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		out = append(out, figure.Verdict{
			About: v.What(), Where: v.Case(), Expected: v.Expected(), Got: v.Got(),
			Tolerance: v.Tolerance(), Pass: v.Pass, Published: v.Published, Why: v.Why,
		})
	}
	return out
}

// Print writes the verdicts as a table, those that do not hold alone if only they are wanted.
func (j *Judged) Print(w io.Writer, failedOnly bool) error {
	const whatWidth, caseWidth, expectedWidth, gotWidth = 34, 20, 22, 26
	head := func(text string) [2]string { return [2]string{"", text} }
	t := grid{columns: []column{
		{head: head(""), left: true},
		{head: head("what"), left: true},
		{head: head("where"), left: true},
		{head: head("expected"), left: true},
		{head: head("got"), left: true},
		{head: head("tolerance"), left: true},
	}}
	var said, published, why string
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		if v.Pass && failedOnly {
			continue
		}
		what := unless(v.What() == said, v.What())
		if what != "" {
			published, why = "", ""
		}
		said = v.What()
		verdict := "ok"
		if !v.Pass {
			verdict = "FAILS"
		}
		t.wrapped([]string{verdict}, wrap(what, whatWidth), wrap(v.Case(), caseWidth),
			wrap(v.Expected(), expectedWidth), wrap(v.Got(), gotWidth), []string{v.Tolerance()})
		if v.Published != "" && v.Published != published {
			t.wrapped(nil, wrap("published: "+v.Published, whatWidth), nil, nil, nil, nil)
		}
		if v.Why != "" && v.Why != why {
			t.wrapped(nil, wrap(v.Why, whatWidth), nil, nil, nil, nil)
		}
		published, why = v.Published, v.Why
	}
	t.columns = slices.DeleteFunc(t.columns, func(c column) bool {
		return !slices.ContainsFunc(c.cells, func(text string) bool { return text != "" })
	})
	var b strings.Builder
	b.WriteString(j.Name + "\n")
	t.write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapped adds a row whose cells have several lines.
func (g *grid) wrapped(cells ...[]string) {
	lines := 1
	for _, c := range cells {
		lines = max(lines, len(c))
	}
	for line := range lines {
		for i, c := range cells {
			text := ""
			if line < len(c) {
				text = c[line]
			}
			g.columns[i].cells = append(g.columns[i].cells, text)
		}
	}
}

// wrap breaks a text between words.
func wrap(text string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && len([]rune(lines[last]))+1+len([]rune(word)) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
