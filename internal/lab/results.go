package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Results are the runs of a directory.
type Results struct {
	*Manifest
	Dir string
	// Runs are in the order of their cells and trials.
	Runs []*result.Trial
	// File is the path of the file in Dir with the numbers.
	File string
	// Ran is the number of new runs.
	Ran int
	// Notes are for the user, about the directory.
	Notes []string
}

// newResults selects the runs that belong to the manifest. The given runs are sorted.
func newResults(dir string, m *Manifest, runs []*result.Trial) *Results {
	r := &Results{Manifest: m, Dir: dir, File: summaryFile}
	for _, t := range runs {
		if t.Trial < m.Cells[t.Cell].Trials {
			r.Runs = append(r.Runs, t)
		}
	}
	if n := len(runs) - len(r.Runs); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf(
			"--trials leaves out %d more runs in %s", n, dir))
	}
	return r
}

// Read reads a directory of results without locking it.
func Read(dir string) (*Results, error) {
	m, err := existingManifest(dir)
	if err != nil {
		return nil, err
	}
	d := &directory{path: dir, manifest: m, runs: map[job]*result.Trial{}}
	// Read the cells first: another process may merge them into trials.csv in the meantime.
	cells, _, err := readCells(dir, m)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, trialsFile)
	text, err := files.Text(path, files.MaxData)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	got, err := result.ParseTrials(path, text, m.Mark, m.check)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.keep(path, got.Runs), d.keep(dir, cells)); err != nil {
		return nil, err
	}
	return newResults(dir, m, inOrder(d.runs)), nil
}

// Missing returns the cells with missing runs, and the number of those runs.
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

// Total returns the number of runs of all cells.
func (m *Manifest) Total() int { return len(m.jobs()) }

func (r *Results) complete() *Results {
	cells, _ := r.Missing()
	have := *r
	have.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(t *result.Trial) bool {
		return slices.Contains(cells, t.Cell)
	})
	return &have
}

// MissingParts returns the numbers of the parts with missing runs.
func (r *Results) MissingParts(of int) (parts []int) {
	have := make(map[job]bool, len(r.Runs))
	for _, t := range r.Runs {
		have[jobOf(t)] = true
	}
	all := r.jobs()
	for n := range of {
		if slices.ContainsFunc(Part{n, of}.jobs(all), func(j job) bool { return !have[j] }) {
			parts = append(parts, n)
		}
	}
	return parts
}

// Hash returns the digest of all runs, in their order.
func (r *Results) Hash() string { return hashOf(r.Runs) }

// Groups returns the groups by cell: first the flows in order, then the whole run.
func (r *Results) Groups() []result.Group {
	var out []result.Group
	for cell := range r.Cells {
		out = append(out, result.Groups(cell, r.runsOf(cell))...)
	}
	return out
}

func (r *Results) rows(all bool) []result.Group {
	var out []result.Group
	for cell := range r.Cells {
		out = append(out, result.Rows(cell, r.runsOf(cell), all)...)
	}
	return out
}

func unfinishedNote(g *result.Group) string {
	if g.Finished == g.N {
		return ""
	}
	return fmt.Sprintf("trial %d: %s", g.Trial, g.Note)
}

// trendOf describes the trend of a group's goodput during the measurement. It returns "" if the
// goodput is steady.
func trendOf(g *result.Group) string {
	s, drift := g.Numbers[result.Trend], g.Numbers[result.Drift]
	if result.Steady(s.Values, drift.Values) {
		return ""
	}
	return fmt.Sprintf("its goodput is not steady: it changes by %+.0f %% while it is measured",
		100*drift.Mean)
}

func (r *Results) unsteady(rows []result.Group) []string {
	var lines []string
	for i := range rows {
		row := &rows[i]
		if text := trendOf(row); text != "" && !row.Summary {
			lines = append(lines, strings.TrimSpace(r.timedText(row.Cell)+" "+row.Flow)+": "+text)
		}
	}
	if more := len(lines) - maxExplained; more > 0 {
		lines = append(lines[:maxExplained], fmt.Sprintf("and %d more; %s has their trends", more,
			trialsFile))
	}
	return lines
}

// settingsOf returns a cell's settings, with its clock if there are several clocks.
func (r *Results) settingsOf(cell int) string {
	var parts []string
	for _, s := range r.Cells[cell].Set {
		parts = append(parts, s.Key+"="+s.Value)
	}
	if r.Real {
		parts = append(parts, "time="+r.clockName(cell))
	}
	return strings.Join(parts, " ")
}

// cellText returns a cell's settings with short keys; empty without a sweep.
func (r *Results) cellText(cell int) string {
	return settingsText(r.Cells[cell].Set, "=", " ")
}

// timedText is like cellText, with the cell's clock, if there are several clocks.
func (r *Results) timedText(cell int) string {
	text := r.cellText(cell)
	if r.Real {
		text = strings.TrimSpace(text + " " + r.clockName(cell))
	}
	return text
}
