package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/play"
	"github.com/tidepool-net/tidepool/internal/lab/preset"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Request says which experiment is wanted, and what is to be changed in it.
type Request struct {
	// Experiment is the name of a preset, a file, or a directory of results.
	Experiment string
	// Changes are made to the file, in their order.
	Changes []Change
	// Version is the program's: results of another are not gone on with.
	Version string
}

// Change is one change of an experiment file, KEY=VALUE or KEY=VALUE,VALUE,….
type Change struct {
	Sweep bool   `json:"sweep,omitempty"`
	Text  string `json:"text"`
}

// ofTrials reports whether the change leaves alone what a run comes to.
func (c Change) ofTrials() bool { return !c.Sweep && strings.HasPrefix(c.Text, "trials=") }

// ErrUnknown is the error of a name that is neither a preset's nor a file's.
var ErrUnknown = errors.New("is neither a preset nor a file")

// Load reads an experiment. Mistakes in its file are plan.Errors.
func Load(q Request) (*Study, error) {
	o, err := find(q.Experiment)
	if err != nil {
		return nil, err
	}
	f, err := plan.Parse(o.name, o.text)
	if err != nil {
		return nil, err
	}
	changes := slices.Concat(o.changes, q.Changes)
	if slices.ContainsFunc(q.Changes, Change.ofTrials) {
		changes = slices.Concat(slices.DeleteFunc(o.changes, Change.ofTrials), q.Changes)
	}
	mark := sha256.New()
	add(mark, string(o.text))
	for _, c := range changes {
		change := f.Set
		if c.Sweep {
			change = f.Sweep
		}
		if err := change(c.Text); err != nil {
			return nil, err
		}
		if !c.ofTrials() {
			add(mark, fmt.Sprint(c.Sweep), c.Text)
		}
	}
	folder := ""
	f.Load = func(name string) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join(o.folder, filepath.FromSlash(name)))
		if err == nil {
			add(mark, name, string(text))
			folder, err = filepath.Abs(o.folder)
		}
		return text, err
	}
	cells, err := f.Cells()
	if err != nil {
		return nil, err
	}
	s := &Study{
		Name: cells[0].Name, About: cells[0].About, Version: q.Version, Seed: cells[0].Seed,
		Cells: cells, Document: o.text, Changes: changes, Folder: folder, Dir: o.dir,
		Play: playCell,
	}
	s.Plan = hex.EncodeToString(mark.Sum(nil)[:markBytes])
	add(mark, q.Version)
	s.Mark = hex.EncodeToString(mark.Sum(nil)[:markBytes])
	return s, nil
}

// markBytes is how much of a digest marks an experiment.
const markBytes = 6

// add has a digest depend on texts, and on where each ends.
func add(h hash.Hash, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
}

func playCell(cell *plan.Cell, trial int, record bool) (*result.Trial, *result.Record, error) {
	return play.Run(cell, trial, play.Options{Record: record})
}

// origin is where an experiment comes from.
type origin struct {
	name    string // for errors
	text    []byte
	folder  string // that its files' names are relative to
	changes []Change
	dir     string // of results
}

// find finds what a name means: a preset, a file, or a directory with results.
func find(name string) (origin, error) {
	if p, ok := preset.Find(name); ok {
		return origin{name: name + ".yaml", text: p.Text}, nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return findAgain(name)
	case err == nil || filepath.Ext(name) != "" || strings.ContainsRune(name, filepath.Separator):
		text, err := os.ReadFile(name)
		if err != nil {
			return origin{}, usage("%w", err)
		}
		return origin{name: name, text: text, folder: filepath.Dir(name)}, nil
	}
	return origin{}, fmt.Errorf("%q %w", name, ErrUnknown)
}

// findAgain finds the experiment that a directory has results of.
func findAgain(dir string) (origin, error) {
	m, err := readManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return origin{}, usage("%s is a folder without results: there is no %s",
			dir, manifestFile)
	}
	if err != nil {
		return origin{}, err
	}
	path := filepath.Join(dir, documentFile)
	text, err := os.ReadFile(path)
	return origin{path, text, m.Folder, m.Changes, dir}, err
}

// Place is the directory for a study's results if nobody names one: that which it was read from,
// or lab/NAME, or another beside it if that has the results of another experiment. Results of an
// unpublished build of the program, which nobody can run again, are in the way there: stale.
func Place(s *Study) (dir string, stale bool) {
	if s.Dir != "" {
		return s.Dir, false
	}
	dir = filepath.Join("lab", s.Name)
	m, err := readManifest(dir)
	if err == nil && m.Plan != s.Plan {
		dir += "-" + s.Plan[:4]
		m, err = readManifest(dir)
	}
	return dir, err == nil && m.Mark != s.Mark && m.Plan == s.Plan &&
		strings.Contains(m.Version, Unpublished)
}

// Unpublished is in the version of a build whose sources no commit has.
const Unpublished = " build "

// Clear removes a study's results from a directory, and nothing else: those of an experiment
// that was changed meanwhile, too.
func Clear(dir string) error {
	if _, err := readManifest(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{
		manifestFile, documentFile, trialsFile, summaryFile, cellsFolder,
		result.RecordsFolder, result.FlowsFolder, result.LinksFolder,
	} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	return errors.Join(append(errs, d.close())...)
}
