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

// Options are the options of running any study.
type Options struct {
	Dir     string
	Workers int // number of runs at one time; 0: one
	// Records is the number of cells, from the first, whose first trial is recorded.
	Records int
	// Pcap captures the first trial of each cell, at all hosts. Otherwise only recorded trials that
	// send little data are captured.
	Pcap bool
	// Until, if positive, adds trials to each cell, up to Trials, until half the confidence
	// interval of each flow's main metric is less than this share of the mean. A negative value
	// runs all Trials. Zero means the value in the directory's Manifest, or else all Trials.
	Until float64
	// Run calls Progress with the numbers of complete runs and of all runs, first with the existing
	// ones. Progress may be nil.
	Progress func(done, of int)
	// Run calls Real before anything starts, with the number of runs in real time and their maximum
	// duration. If Real returns an error, nothing starts. Real may be nil.
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
			err = errors.Join(err, Clear(o.Dir)) // no run was possible
			_ = os.Remove(filepath.Join(o.Dir, lockFile))
			_ = os.Remove(o.Dir) // fails if the directory has other files
		}
	}()
	if s.Real != nil {
		o.Records *= 2 // one record for each of the two clocks
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

// batch is the number of trials that run before the intervals are checked again. So the check sees
// the same runs, whatever their order.
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
			return checkRepeated(before, t)
		}
		w.ran++
		return w.dir.add(t)
	})
}

// execute runs jobs, the jobs in real time last, and passes each run to take. The progress counts
// all other runs of the total as done.
func (s *Study) execute(
	ctx context.Context, o Options, jobs []job, total int, take func(job, *result.Trial) error,
) error {
	virtual, timed := s.split(jobs)
	if err := s.announce(timed, o.Real); err != nil {
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
	if err := work(ctx, s, virtual, o, played); err != nil {
		return err
	}
	return s.workReal(ctx, timed, o, played)
}

// recordsMissing returns the first trial of each cell that was run without a requested record.
func (w *sweep) recordsMissing() []job {
	var jobs []job
	for i := range w.study.Cells {
		cell, j := &w.study.Cells[i], job{i, 0}
		if w.dir.runs[j] == nil || w.study.isReal(i) {
			continue // in real time, a repeated run would have another result
		}
		name := recordName(len(w.study.Cells), i)
		if i < w.options.Records && !hasRecord(w.dir.path, name) ||
			w.options.captured(cell) && !hasCaptures(w.dir.path, name, len(cell.Flows)) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// checkRepeated returns an error if the repeated result of a run differs: another version of the
// program made the first result, or the program is not deterministic.
func checkRepeated(before, t *result.Trial) error {
	if before.Hash == t.Hash {
		return nil
	}
	return fmt.Errorf("%v had result %016x, and now has %016x: did another version of the program "+
		"run it?", jobOf(t), before.Hash, t.Hash)
}

// playRun runs one run. It writes the record before it reports the run as done.
func playRun(
	s *Study, j job, o Options, cache *simulation.ObjectCache,
) (t *result.Trial, err error) {
	cell := &s.Cells[j.cell]
	name := recordName(len(s.Cells), j.cell)
	wanted := simulation.Options{Record: j.trial == 0 && j.cell < o.Records, ObjectCache: cache}
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

// keepRecord writes the files of a record. The record is complete once its last file exists.
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

// extend adds trials to cells whose intervals are too wide. It returns false if no cell needs more.
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

// mainMetric returns the most important metric of a flow: its duration, if it has an end.
func mainMetric(g *result.Group) result.Metric {
	if _, ok := g.Numbers[result.Completion]; ok {
		return result.Completion
	}
	return result.Goodput
}
