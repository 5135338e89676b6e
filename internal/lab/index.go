package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// RunCell runs all trials of one cell into a file of its own, for an engine that spreads the
// cells of a sweep over machines which share a directory. Others may run other cells there
// meanwhile, or the same: the results come to be there whole, at once.
func RunCell(ctx context.Context, s *Study, o Options, cell int) (*Results, error) {
	if cell < 0 || cell >= len(s.Cells) {
		return nil, usage("there is no cell %d; the sweep has 0 to %d", cell,
			len(s.Cells)-1)
	}
	m, err := shareDirectory(o.Dir, s)
	if err != nil {
		return nil, err
	}
	runs := map[job]*result.Trial{}
	old, err := readCell(o.Dir, m, cell)
	if err != nil {
		return nil, err
	}
	for _, t := range old {
		runs[jobOf(t)] = t
	}
	var jobs []job
	for trial := range s.Cells[cell].Trials {
		if j := (job{cell, trial}); runs[j] == nil {
			jobs = append(jobs, j)
		}
	}
	if o.Progress != nil {
		o.Progress(len(runs), s.Cells[cell].Trials)
	}
	if s.Real != nil {
		o.Records *= 2
	}
	now, later := s.split(jobs)
	if err := s.announce(later, o.Real); err != nil {
		return nil, err
	}
	do := func(j job, shelf *simulation.Shelf) (*result.Trial, error) {
		return playRun(s, j, o, shelf)
	}
	take := func(j job, t *result.Trial) error {
		runs[j] = t
		if o.Progress != nil {
			o.Progress(len(runs), s.Cells[cell].Trials)
		}
		return nil
	}
	if err = work(ctx, now, o.Workers, do, take); err == nil {
		err = workReal(ctx, s, later, o, take)
	}
	if err != nil {
		return nil, err
	}
	text := result.TrialsHeader()
	for _, t := range inOrder(runs) {
		text = result.AppendTrial(text, m.Mark, t)
	}
	if err := result.WriteFile(cellPath(o.Dir, len(s.Cells), cell), text); err != nil {
		return nil, err
	}
	r := newResults(o.Dir, m, inOrder(runs))
	r.Ran = len(jobs)
	r.File, err = filepath.Rel(o.Dir, cellPath(o.Dir, len(s.Cells), cell))
	return r, err
}

func cellPath(dir string, cells, cell int) string {
	return filepath.Join(dir, cellsFolder, recordName(cells, cell)+".csv")
}

// readCell reads what a cell was run into before.
func readCell(dir string, m *Manifest, cell int) ([]*result.Trial, error) {
	path := cellPath(dir, len(m.Cells), cell)
	text, err := files.Text(path, files.MaxData)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	got, err := result.ParseTrials(path, text, m.Mark, func(t *result.Trial) error {
		if t.Cell != cell {
			return fmt.Errorf("%w: a run of cell %d", result.ErrFile, t.Cell)
		}
		return m.check(t)
	})
	return got.Runs, err
}

// shareDirectory makes a directory for a study's results, or finds one.
func shareDirectory(dir string, s *Study) (*Manifest, error) {
	old, err := readManifest(dir)
	switch {
	case err == nil:
		return s.manifest(), old.same(dir, s)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	// Processes that start at the same time write the same content.
	d := &directory{path: dir, manifest: s.manifest()}
	return d.manifest, d.describe(s)
}

// Merge takes what single cells were run into together with all else that is in a directory,
// and writes what it comes to. Results.Missing tells whether that is all.
func Merge(dir string) (r *Results, err error) {
	m, err := theManifest(dir)
	if err != nil {
		return nil, err
	}
	d, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := d.close(); err == nil {
			err = e
		}
	}()
	d.manifest = m
	if err := d.load(); err != nil {
		return nil, err
	}
	if err := d.finish(); err != nil {
		return nil, err
	}
	return d.results(), nil
}
