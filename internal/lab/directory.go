package lab

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// directory is the directory into which this process writes a study's results. A lock keeps other
// processes out, except processes that write the files of parts.
type directory struct {
	path     string
	manifest *Manifest
	lock     *os.File
	trials   *os.File
	runs     map[job]*result.Trial
	notes    []string // notes for the user about the directory's content
	found    bool     // the directory already had an experiment
	parts    []string // files of parts; their runs are in trials.csv
}

// openDirectory creates a directory for a study's results, or opens one and keeps its complete
// results. until is Options.Until.
func openDirectory(path string, s *Study, until float64) (*directory, error) {
	d, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	if err := d.open(s, until); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// abandoned is the age from which a temporary file is deleted. Younger files may belong to
// processes that run parts.
const abandoned = time.Hour

func lockDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	f, err := Lock(filepath.Join(path, lockFile))
	if err != nil {
		if errors.Is(err, ErrBusy) {
			err = fmt.Errorf("%s: %w: wait until it ends, or choose another directory with -o",
				path, err)
		}
		return nil, err
	}
	return &directory{path: path, lock: f, runs: map[job]*result.Trial{}}, nil
}

// Lock creates a file if it is missing, and locks it until it is closed. The error is ErrBusy if
// another process has locked it.
func Lock(path string) (*os.File, error) {
	f, err := files.Machine().Edit(path, 0o666)
	if err != nil {
		return nil, err
	}
	locked, err := files.TryLock(f)
	if err == nil && !locked {
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *directory) open(s *Study, until float64) error {
	for _, folder := range append([]string{"."}, folders...) {
		if err := result.Sweep(filepath.Join(d.path, folder), abandoned); err != nil {
			return err
		}
	}
	old, err := s.stored(d.path)
	if err != nil {
		return err
	}
	d.manifest, d.found = s.manifest(), old != nil
	if old != nil && until == 0 && old.Until > 0 {
		until = old.Until
		d.notes = append(d.notes, fmt.Sprintf(
			"continues until ci<%g%%, like the first run; --trials N runs N trials", 100*until))
	}
	d.manifest.Until = max(0, until)
	if err := d.describe(s); err != nil {
		return err
	}
	return d.load()
}

// describe writes the manifest and the experiment file, before any results.
func (d *directory) describe(s *Study) error {
	texts, _ := s.Texts() // files that the study names outside are not copied
	for name, text := range texts {
		path := filepath.Join(d.path, filepath.FromSlash(name))
		if err := result.WriteFile(path, text); err != nil {
			return err
		}
	}
	if err := result.WriteFile(filepath.Join(d.path, columnsFile), result.Columns()); err != nil {
		return err
	}
	return d.manifest.write(d.path)
}

// Texts returns the files of a directory's experiment by path, with slashes. It also returns the
// names of files that the experiment reads from elsewhere on this machine.
func (s *Study) Texts() (texts map[string][]byte, elsewhere []string) {
	texts = map[string][]byte{documentFile: s.Document}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if filepath.IsLocal(filepath.FromSlash(name)) {
			texts[path.Join(filesFolder, name)] = s.Files[name]
		} else {
			elsewhere = append(elsewhere, name)
		}
	}
	return texts, elsewhere
}

// load reads the existing runs and removes an incomplete run from the end of trials.csv.
func (d *directory) load() error {
	path := filepath.Join(d.path, trialsFile)
	f, err := files.Machine().Edit(path, 0o666)
	if err != nil {
		return err
	}
	d.trials = f
	text, err := files.All(path, f, files.MaxData)
	if err != nil {
		return err
	}
	got, err := result.ParseTrials(path, text, d.manifest.Mark, d.manifest.check)
	if err != nil {
		return fmt.Errorf("%w; correct the file, or start again with `node lab run --fresh`", err)
	}
	if got.Cut > 0 && got.Whole > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%s: the last row is incomplete; its run is repeated",
			path))
	}
	if err := f.Truncate(int64(got.Whole)); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if got.Whole == 0 {
		if _, err := f.Write(result.TrialsHeader()); err != nil {
			return err
		}
	}
	if err := d.keep(path, got.Runs); err != nil {
		return err
	}
	return d.mergeParts()
}

// keep adds runs that were read from a file. A run may occur twice if both results are the same.
func (d *directory) keep(path string, runs []*result.Trial) error {
	for _, t := range runs {
		before, again := d.runs[jobOf(t)]
		if again && !reflect.DeepEqual(before, t) {
			return fmt.Errorf("%s: %w: two different results of %v", path, result.ErrFile, jobOf(t))
		}
		d.runs[jobOf(t)] = t
	}
	return nil
}

// mergeParts adds the runs of parts to trials.csv.
func (d *directory) mergeParts() error {
	had := len(d.runs)
	runs, paths, err := readCells(d.path, d.manifest)
	if err != nil {
		return err
	}
	var text []byte
	for _, t := range runs {
		if d.runs[jobOf(t)] == nil {
			text = result.AppendTrial(text, d.manifest.Mark, t)
		}
	}
	if err := d.keep(filepath.Join(d.path, cellsFolder), runs); err != nil {
		return err
	}
	if n := len(d.runs) - had; n > 0 {
		d.notes = append(d.notes, fmt.Sprintf("runs merged from parts: %d", n))
	}
	d.parts = paths
	_, err = d.trials.Write(text)
	return err
}

// readCells reads the files of parts in the order of their names, and returns their paths. It skips
// an incomplete run at the end of a file: the part then counts as missing.
func readCells(dir string, m *Manifest) (runs []*result.Trial, paths []string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, cellsFolder, "*.csv"))
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(found)
	for _, path := range found {
		list, err := m.partRuns(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // another process has merged the file
		}
		if err != nil {
			return nil, nil, err
		}
		runs, paths = append(runs, list...), append(paths, path)
	}
	return runs, paths, nil
}

// removeParts removes the files of parts whose runs are in trials.csv. Another process may be
// writing the file of another part.
func (d *directory) removeParts() error {
	var errs []error
	for _, path := range d.parts {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(filepath.Join(d.path, cellsFolder)) // fails if the folder is not empty
	return errors.Join(errs...)
}

// add appends a run in one system call, so that it is written completely or not at all.
func (d *directory) add(t *result.Trial) error {
	if err := d.manifest.check(t); err != nil {
		panic("BUG: lab: " + err.Error())
	}
	d.runs[jobOf(t)] = t
	_, err := d.trials.Write(result.AppendTrial(nil, d.manifest.Mark, t))
	return err
}

func (d *directory) results() *Results {
	r := newResults(d.path, d.manifest, inOrder(d.runs))
	r.Notes = append(slices.Clone(d.notes), r.Notes...)
	return r
}

func (d *directory) finish() error {
	text := trialsText(d.manifest.Mark, d.runs)
	if err := result.WriteFile(filepath.Join(d.path, trialsFile), text); err != nil {
		return err
	}
	r := d.results()
	d.manifest.Hash = ""
	if _, missing := r.Missing(); missing == 0 {
		d.manifest.Hash = r.Hash()
	}
	if err := result.WriteFile(filepath.Join(d.path, summaryFile), r.summaryFile()); err != nil {
		return err
	}
	return d.manifest.write(d.path)
}

func trialsText(mark string, runs map[job]*result.Trial) []byte {
	text := result.TrialsHeader()
	for _, t := range inOrder(runs) {
		text = result.AppendTrial(text, mark, t)
	}
	return text
}

func (d *directory) close() error {
	var err error
	if d.trials != nil {
		err = d.trials.Close()
	}
	return errors.Join(err, d.lock.Close())
}
