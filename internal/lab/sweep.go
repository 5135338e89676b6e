package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// Options are how a study is run, whatever it is about.
type Options struct {
	Dir     string
	Workers int // simultaneous runs; 0: one
	// Records is how many cells leave a record of their first trial, from the first on.
	Records int
	// Pcap captures the first trial of each cell, at all hosts; without it those are captured
	// that leave a record and in which little is sent.
	Pcap bool
	// Until, if it is above 0, has each cell be run until the interval of each flow's main
	// metric is so narrow, as a share of the mean, and its Trials times at most. Zero is what the
	// directory was begun with, or as below 0: all Trials are run.
	Until float64
	// Progress hears how many runs are done of how many, at first how many were there before; it
	// may be nil.
	Progress func(done, of int)
	// Real hears how many runs in real time will begin, if any, and how long they take at the
	// most, before anything begins. Its error has nothing begin. It may be nil.
	Real func(runs int, most time.Duration) error
}

// Run runs the missing trials of a study in a directory of results and returns all results. If ctx
// ends first, it returns ctx's cause; complete runs are kept.
func Run(ctx context.Context, s *Study, o Options) (r *Results, err error) {
	d, err := openDirectory(o.Dir, s, o.Until)
	if err != nil {
		return nil, err
	}
	o.Until = d.manifest.Until
	defer func() {
		if e := d.close(); err == nil {
			err = e
		}
		if err != nil && ctx.Err() == nil && len(d.runs) == 0 && !d.found {
			err = errors.Join(err, Clear(o.Dir)) // nothing of it could be run
			_ = os.Remove(filepath.Join(o.Dir, lockFile))
			_ = os.Remove(o.Dir) // fails if it has other files
		}
	}()
	if s.Real != nil {
		o.Records *= 2 // one for each clock
	}
	w := &sweep{study: s, options: o, dir: d}
	if o.Until > 0 {
		for i := range d.manifest.Cells {
			d.manifest.Cells[i].Trials = min(s.Cells[i].Trials, batch)
		}
	}
	for {
		if err := w.run(ctx); err != nil {
			return nil, err
		}
		if o.Until <= 0 || !w.extend() {
			break
		}
	}
	if err := d.finish(); err != nil {
		return nil, err
	}
	r = d.results()
	r.Ran = w.ran
	return r, nil
}

// batch is how many trials are run at a time until an interval is narrow: its rule sees the
// same runs whatever the order in which they end.
const batch = 5

type sweep struct {
	study   *Study
	options Options
	dir     *directory
	ran     int
}

func (w *sweep) run(ctx context.Context) error {
	cells := w.dir.manifest.Cells
	jobs := byTrial(len(cells), func(cell int) int { return cells[cell].Trials })
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return w.dir.runs[j] != nil })
	jobs = append(jobs, w.recordsMissing()...)
	total := w.dir.manifest.Total()
	return w.study.execute(ctx, w.options, jobs, total, func(j job, t *result.Trial) error {
		if before := w.dir.runs[j]; before != nil {
			return sameAgain(before, t)
		}
		w.ran++
		return w.dir.add(t)
	})
}

// execute plays jobs, those in real time last, and gives each run to take. The progress counts the
// other runs of the total as done.
func (s *Study) execute(
	ctx context.Context, o Options, jobs []job, total int, take func(job, *result.Trial) error,
) error {
	now, later := s.split(jobs)
	if err := s.announce(later, o.Real); err != nil {
		return err
	}
	done := total - len(jobs) - 1
	tell := func() {
		if done++; o.Progress != nil {
			o.Progress(done, total)
		}
	}
	tell()
	played := func(j job, t *result.Trial) error {
		tell()
		return take(j, t)
	}
	play := func(j job, shelf *simulation.Shelf) (*result.Trial, error) {
		return playRun(s, j, o, shelf)
	}
	if err := work(ctx, now, o.Workers, play, played); err != nil {
		return err
	}
	return workReal(ctx, s, later, o, played)
}

// recordsMissing are first trials that were run, and whose records and captures are gone, or were
// not asked for then.
func (w *sweep) recordsMissing() []job {
	var jobs []job
	for i := range w.study.Cells {
		cell, j := &w.study.Cells[i], job{i, 0}
		if w.dir.runs[j] == nil || w.study.isReal(i) {
			continue // what is run again in real time comes to something else
		}
		name := recordName(len(w.study.Cells), i)
		if i < w.options.Records && !hasRecord(w.dir.path, name) ||
			w.options.captured(cell) && !hasCaptures(w.dir.path, name, len(cell.Flows)) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// sameAgain is the error of a run that came to something else than before: a program that is
// not the one that it says to be, or one that is not deterministic.
func sameAgain(before, t *result.Trial) error {
	if before.Hash == t.Hash {
		return nil
	}
	return fmt.Errorf("%v had result %016x, and now has %016x: did another version of the program run it?",
		jobOf(t), before.Hash, t.Hash)
}

// playRun plays one run. Its record is written before the run is known to be done.
func playRun(s *Study, j job, o Options, shelf *simulation.Shelf) (t *result.Trial, err error) {
	cell := &s.Cells[j.cell]
	name := recordName(len(s.Cells), j.cell)
	wanted := simulation.Options{Record: j.trial == 0 && j.cell < o.Records, Shelf: shelf}
	if j.trial == 0 && o.captured(cell) {
		c := captures{dir: o.Dir, prefix: name, files: map[string]*os.File{}}
		wanted.Capture = c.open
		defer func() { err = errors.Join(err, c.close(err == nil)) }()
	}
	t, record, err := s.Play(cell, j.trial, wanted)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", j, err)
	}
	return t, keepRecord(o.Dir, name, record)
}

// keepRecord writes a record's files, if there is one: it is there when its last file is.
func keepRecord(dir, name string, record *result.Record) error {
	if record == nil {
		return nil
	}
	err := errors.Join(writeLogs(dir, name, record), writeXplots(dir, name, record))
	if err != nil {
		return err
	}
	return result.WriteRecord(dir, name, record)
}

// extend adds trials to cells whose intervals are too wide. It returns false if no cell gets more.
func (w *sweep) extend() bool {
	wide := map[int]bool{}
	for _, g := range w.dir.results().Groups() {
		n, ok := g.Numbers[mainMetric(&g)]
		if ok && g.Flow != "" && !(n.Precision() < w.options.Until) {
			wide[g.Cell] = true
		}
	}
	more := false
	for i := range w.dir.manifest.Cells {
		c := &w.dir.manifest.Cells[i]
		if most := w.study.Cells[i].Trials; wide[i] && c.Trials < most {
			more = true
			c.Trials = min(most, c.Trials+batch)
		}
	}
	return more
}

// mainMetric is what a flow is about: how long it took, if it had an end.
func mainMetric(g *result.Group) result.Metric {
	if _, ok := g.Numbers[result.Completion]; ok {
		return result.Completion
	}
	return result.Goodput
}
