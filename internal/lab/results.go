package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/stat"
)

// Results are the runs of a directory.
type Results struct {
	*Manifest
	Dir string
	// Runs are in the order of their cells and trials.
	Runs []*result.Trial
	// File is where the numbers are, in Dir.
	File string
	// Ran is how many of the runs were run now; the others were there.
	Ran int
	// Notes are what was found in the directory that somebody should know.
	Notes []string
}

// newResults takes of runs, which are in order, those that the manifest speaks of.
func newResults(dir string, m *Manifest, runs []*result.Trial) *Results {
	r := &Results{Manifest: m, Dir: dir, File: summaryFile}
	for _, t := range runs {
		if t.Trial < m.Cells[t.Cell].Trials {
			r.Runs = append(r.Runs, t)
		}
	}
	if n := len(runs) - len(r.Runs); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf(
			"%d further runs in %s are left out: --trials asks for fewer", n, dir))
	}
	return r
}

// Read reads a directory of results as it is, whoever writes there.
func Read(dir string) (*Results, error) {
	m, err := theManifest(dir)
	if err != nil {
		return nil, err
	}
	d := &directory{path: dir, manifest: m, runs: map[job]*result.Trial{}}
	path := filepath.Join(dir, trialsFile)
	text, err := files.Text(path, files.MaxData)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	got, err := result.ParseTrials(path, text, m.Mark, m.check)
	if err != nil {
		return nil, err
	}
	cells, err := readCells(dir, m)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.keep(path, got.Runs), d.keep(dir, cells)); err != nil {
		return nil, err
	}
	return newResults(dir, m, inOrder(d.runs)), nil
}

// Missing are the cells of which runs are missing, and how many there are of all cells.
func (r *Results) Missing() (cells []int, runs int) {
	have := make([]int, len(r.Cells))
	for _, t := range r.Runs {
		have[t.Cell]++
	}
	for i := range r.Cells {
		if n := r.Cells[i].Trials - have[i]; n > 0 {
			cells = append(cells, i)
			runs += n
		}
	}
	return cells, runs
}

// Hash is the digest of all runs, in their order.
func (r *Results) Hash() string { return hashOf(r.Runs) }

// Group is what the runs of one cell come to for one flow, or for the whole of it.
type Group struct {
	Cell int
	// Flow is the flow's name, and Label what it is an instance of; empty: the whole.
	Flow, Label string
	// N is how many runs there were, and Finished in how many everything that had an end came
	// to it.
	N, Finished int
	// Note is what happened in the first that did not finish.
	Note    string
	Numbers map[result.Metric]Number
}

// Number is one metric of a Group: what each run came to, in the order of the trials, and what
// that comes to. Of a run that was cut off before it came to a completion there is no value.
type Number struct {
	stat.Summary
	Values []float64
}

// unsteady says that the goodput of the group still changes while it is measured, and by how much;
// empty: it does not.
func (g *Group) unsteady() string {
	s, drift := g.Numbers[result.Trend], g.Numbers[result.Drift]
	if stat.Steady(s.Values, drift.Values) {
		return ""
	}
	return fmt.Sprintf("its goodput is not steady: it changes by %+.0f %% while it is measured",
		100*drift.Mean)
}

// unsteady are lines about rows whose goodput has a trend.
func (r *Results) unsteady(rows []row) []string {
	var lines []string
	for _, row := range rows {
		if text := row.unsteady(); text != "" && !row.crowd {
			lines = append(lines, strings.TrimSpace(r.timedText(row.Cell)+" "+row.Flow)+": "+text)
		}
	}
	if more := len(lines) - maxTold; more > 0 {
		lines = append(lines[:maxTold], fmt.Sprintf("and %d others; %s has their trends", more,
			trialsFile))
	}
	return lines
}

// Groups returns the groups by cell, in each the flows in their order and then the whole.
func (r *Results) Groups() []Group {
	var out []Group
	for from := 0; from < len(r.Runs); {
		to := from
		for to < len(r.Runs) && r.Runs[to].Cell == r.Runs[from].Cell {
			to++
		}
		runs := r.Runs[from:to]
		for i := range runs[0].Flows {
			flow := func(t *result.Trial) *result.Flow { return &t.Flows[i] }
			out = append(out, groupOf(runs, flow))
		}
		out = append(out, groupOf(runs, func(t *result.Trial) *result.Flow {
			return &result.Flow{Finished: t.Finished, Note: t.Note, Values: t.Whole}
		}))
		from = to
	}
	return out
}

// groupOf makes the group of a part of runs of one cell.
func groupOf(runs []*result.Trial, part func(*result.Trial) *result.Flow) Group {
	first := part(runs[0])
	g := Group{
		Cell: runs[0].Cell, Flow: first.Name, Label: first.Label, N: len(runs),
		Numbers: map[result.Metric]Number{},
	}
	values, cut := map[result.Metric][]float64{}, 0
	for _, t := range runs {
		f := part(t)
		for m, v := range f.Values {
			values[m] = append(values[m], v)
		}
		if f.Finished {
			g.Finished++
			continue
		}
		if g.Note == "" {
			g.Note = fmt.Sprintf("trial %d: %s", t.Trial, f.Note)
		}
		if _, ok := f.Values[result.Completion]; !ok {
			cut++
		}
	}
	if cut > 0 && g.Flow != "" {
		// What did not come to its end is not left out: it took longer than it had.
		g.Numbers[result.Completion] = Number{
			stat.Describe(values[result.Completion], cut), values[result.Completion],
		}
		delete(values, result.Completion)
	}
	for m, v := range values {
		g.Numbers[m] = Number{stat.Describe(v, 0), v}
	}
	return g
}
