package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// Request names an experiment and the changes to make in it.
type Request struct {
	// Experiment is the name of a preset, a file, or a directory of results.
	Experiment string
	// Changes are made to the file, in the given order.
	Changes []Change
	// Version is the program's version. Results of another version cannot be continued.
	Version string
	// Real also runs each cell in real time, RealTrials times (0: once), with these Processes. An
	// experiment that is read from a directory with such results always runs this way.
	Real       bool
	RealTrials int
	Processes  emulation.Options
	// Printed is called with each line that Starlark files print in the first trial of the first
	// cell, and with the line's time; it may be nil. The worker's goroutine calls it.
	Printed func(at time.Duration, line string)
}

// Change is one change of an experiment file. Text is KEY=VALUE.
type Change struct {
	// Sweep means that Text is KEY=VALUE,VALUE,….
	Sweep bool
	// Netem and Mahimahi change the path: Text then has the arguments of tc-netem(8), or a mahimahi
	// command line.
	Netem, Mahimahi bool
	Text            string
}

func (c *Change) to(f *plan.File) error {
	switch {
	case c.Netem:
		return f.Netem(c.Text)
	case c.Mahimahi:
		return f.Mahimahi(c.Text)
	case c.Sweep:
		return f.Sweep(c.Text)
	default:
		return f.Set(c.Text)
	}
}

// ErrUnknown is the error for a name that is neither a preset nor a file.
var ErrUnknown = errors.New("is neither a preset nor a file")

// Load reads an experiment. Errors in its file are of type plan.Errors.
func Load(q Request) (*Study, error) {
	o, err := find(q.Experiment)
	if err != nil {
		return nil, err
	}
	f, err := plan.Parse(o.name, o.text)
	if err != nil {
		return nil, err
	}
	for i := range q.Changes {
		if err := q.Changes[i].to(f); err != nil {
			return nil, err
		}
	}
	s := &Study{Version: q.Version, Files: map[string][]byte{}, Dir: o.dir, Play: q.play}
	f.Load = func(name string) ([]byte, error) {
		text, err := o.read(name)
		if err == nil {
			s.Files[name] = text
		}
		return text, err
	}
	if s.Cells, err = f.Cells(); err != nil {
		return nil, err
	}
	s.Document, s.Notes = f.Resolved(), f.Notes()
	q.Real = q.Real || hasReal(o.dir)
	first := &s.Cells[0]
	s.Name, s.About, s.Seed = first.Name, first.About, first.Seed
	s.Metrics = first.Metrics
	s.Plan = markOf(string(runDefinition(s.Document)), s.filesText())
	if q.Real {
		if err := s.addReal(&q, f); err != nil {
			return nil, err
		}
	} else if err := s.onlyVirtual(f); err != nil {
		return nil, err
	}
	s.Mark = markOf(s.Plan, q.Version)
	return s, nil
}

// markOf returns a short digest of texts and of their lengths.
func markOf(texts ...string) string {
	const length = 6
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil)[:length])
}

func (s *Study) filesText() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		fmt.Fprintf(&b, "%d:%s%d:%s", len(name), name, len(s.Files[name]), s.Files[name])
	}
	return b.String()
}

// runDefinition returns the part of a resolved document that affects runs: all but the number of
// trials, the description, the chosen metrics and the expectations.
func runDefinition(document []byte) []byte {
	var out []byte
	skipped := false
	for line := range bytes.Lines(document) {
		if line[0] != ' ' && line[0] != '-' {
			key, _, _ := bytes.Cut(line, []byte{':'})
			skipped = slices.Contains([]string{"about", "trials", "metrics", "expect"}, string(key))
		}
		if !skipped {
			out = append(out, line...)
		}
	}
	return out
}

func (q *Request) play(
	cell *plan.Cell, trial int, o simulation.Options,
) (*result.Trial, *result.Record, error) {
	if cell.Index == 0 && trial == 0 {
		o.Printed = q.Printed
	}
	return simulation.Run(cell, trial, o)
}

type origin struct {
	name   string // name in errors
	text   []byte
	folder string // folder to which file names are relative; empty: the current directory
	dir    string // directory of results, if there is one
}

func (o *origin) read(name string) ([]byte, error) {
	path := filepath.FromSlash(name)
	if o.folder != "" && !filepath.IsAbs(path) {
		text, err := files.Text(filepath.Join(o.folder, path), files.MaxData)
		if !errors.Is(err, os.ErrNotExist) {
			return text, err
		}
	}
	return files.Text(path, files.MaxData)
}

// find finds the preset, file, or directory of results with a name.
func find(name string) (*origin, error) {
	if p, ok := FindPreset(name); ok {
		return &origin{name: name + ".yaml", text: p.Text}, nil
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return findResults(name)
	case err == nil || filepath.Ext(name) != "" || strings.ContainsRune(name, filepath.Separator):
		text, err := files.Text(name, files.MaxText)
		if err != nil {
			return nil, usage("%w", err)
		}
		return &origin{name: name, text: text, folder: filepath.Dir(name)}, nil
	}
	return nil, fmt.Errorf("%q %w", name, ErrUnknown)
}

func findResults(dir string) (*origin, error) {
	path := filepath.Join(dir, documentFile)
	text, err := files.Text(path, files.MaxText)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage("%s is a folder without results: it has no %s", dir, documentFile)
	}
	return &origin{path, text, filepath.Join(dir, filesFolder), dir}, err
}

// DefaultDir returns the directory from which a study was read, or else lab/NAME, or lab/NAME-real
// with runs in real time. If that has results of another experiment, -PLAN is appended. stale is
// set if the directory has results of another, unpublished build, which cannot be reproduced.
func DefaultDir(s *Study) (dir string, stale bool) {
	if s.Dir != "" {
		return s.Dir, false
	}
	dir = filepath.Join("lab", s.Name)
	if s.Real != nil {
		dir += "-real"
	}
	m, err := readManifest(dir)
	if err == nil && m.Plan != s.Plan {
		dir += "-" + s.Plan[:4]
		m, err = readManifest(dir)
	}
	return dir, err == nil && m.Mark != s.Mark && m.Plan == s.Plan &&
		strings.Contains(m.Version, Unpublished)
}

// Unpublished is a part of the version of all builds from uncommitted sources.
const Unpublished = " build "

// Clear removes a study's results from a directory, even if the experiment has changed. It removes
// nothing else.
func Clear(dir string) error {
	if _, err := readManifest(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	d, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range append([]string{
		manifestFile, documentFile, trialsFile, summaryFile, columnsFile, reportFile,
	}, folders...) {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	return errors.Join(append(errs, d.close())...)
}
