package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Part is the part of a sweep that one task of a batch system runs. If Of is 0, the part is one
// cell. Otherwise the runs are divided into Of parts of about equal size, numbered from 0.
type Part struct{ Number, Of int }

// jobs returns the part's runs. All runs are ordered by cell and trial.
func (p Part) jobs(all []job) []job {
	if p.Of == 0 {
		return slices.DeleteFunc(slices.Clone(all), func(j job) bool { return j.cell != p.Number })
	}
	return all[p.Number*len(all)/p.Of : (p.Number+1)*len(all)/p.Of]
}

func (p Part) file(cells int) string {
	if p.Of == 0 {
		return recordName(cells, p.Number) + ".csv"
	}
	return fmt.Sprintf("part-%0*d-of-%d.csv", len(strconv.Itoa(p.Of-1)), p.Number, p.Of)
}

func (p Part) check(s *Study) error {
	switch {
	case p.Of < 0 || p.Of > s.Runs():
		return usage("%d parts: must be 1 to %d, the number of runs", p.Of, s.Runs())
	case p.Of > 0 && (p.Number < 0 || p.Number >= p.Of):
		return usage("no part %d: the %d parts are 0 to %d", p.Number, p.Of, p.Of-1)
	case p.Of == 0 && (p.Number < 0 || p.Number >= len(s.Cells)):
		return usage("no cell %d: the cells are 0 to %d", p.Number, len(s.Cells)-1)
	}
	return nil
}

// Runs returns the number of runs of all cells.
func (s *Study) Runs() int { return s.manifest().Total() }

// Prepare creates or opens a directory for a study's results, and sets the number of trials. It
// runs nothing.
func Prepare(dir string, s *Study) error {
	m, err := shareDirectory(dir, s)
	if err != nil {
		return err
	}
	if old, err := readManifest(dir); err != nil || old.Total() == m.Total() {
		return err
	}
	d := &directory{path: dir, manifest: m}
	return d.describe(s)
}

// RunPart runs a part of a sweep, for a batch system whose machines share a directory. It writes
// the part's results to a separate file when all its runs are done. Other processes may run other
// parts, or the same part, at the same time.
func RunPart(ctx context.Context, s *Study, o Options, p Part) (*Results, error) {
	if err := p.check(s); err != nil {
		return nil, err
	}
	m, err := shareDirectory(o.Dir, s)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, cellsFolder, p.file(len(s.Cells)))
	list, err := m.partRuns(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	runs := map[job]*result.Trial{}
	for _, t := range list {
		runs[jobOf(t)] = t
	}
	all := p.jobs(m.jobs())
	jobs := slices.DeleteFunc(slices.Clone(all), func(j job) bool { return runs[j] != nil })
	if s.Real != nil {
		o.Records *= 2
	}
	err = s.execute(ctx, o, jobs, len(all), func(j job, t *result.Trial) error {
		runs[j] = t
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Another process may have replaced the experiment in the directory.
	if _, err := shareDirectory(o.Dir, s); err != nil {
		return nil, err
	}
	if err := result.WriteFile(path, trialsText(m.Mark, runs)); err != nil {
		return nil, err
	}
	r := newResults(o.Dir, m, inOrder(runs))
	r.Ran = len(jobs)
	r.File, err = filepath.Rel(o.Dir, path)
	return r, err
}

func (m *Manifest) partRuns(path string) ([]*result.Trial, error) {
	text, err := files.Text(path, files.MaxData)
	if err != nil {
		return nil, err
	}
	got, err := result.ParseTrials(path, text, m.Mark, m.check)
	if err != nil {
		err = fmt.Errorf("%w; remove the file to repeat its runs", err)
	}
	return got.Runs, err
}

// PartsDone counts the complete files of parts, without reading them.
func PartsDone(dir string, of int) (int, error) {
	name := fmt.Sprintf("part-*-of-%d.csv", of)
	paths, err := filepath.Glob(filepath.Join(dir, cellsFolder, name))
	return len(paths), err
}

func shareDirectory(dir string, s *Study) (*Manifest, error) {
	old, err := s.stored(dir)
	d := &directory{path: dir, manifest: s.manifest()}
	if err == nil && old == nil {
		err = d.describe(s) // processes that start at the same time write the same content
	}
	return d.manifest, err
}

// Merge adds the results of parts to the tables of a directory. If no run is missing, it removes
// the parts' files; otherwise Results.Missing names the cells.
func Merge(dir string) (r *Results, err error) {
	m, err := existingManifest(dir)
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
	r = d.results()
	if _, missing := r.Missing(); missing == 0 {
		err = d.removeParts()
	}
	return r, err
}
