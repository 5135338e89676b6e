package lab

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// Study is an experiment as it is to be run.
type Study struct {
	Name, About string
	// Version is the program's.
	Version string
	Seed    uint64
	Metrics []result.Metric // of its table; nil: those that say most
	Cells   []plan.Cell
	// Notes are what its changes have left out of the file.
	Notes []string
	// Document is the file with all changes. Files are the files that it names.
	Document []byte
	Files    map[string][]byte
	// Dir is the directory of results that this is the experiment of; empty: it is read from
	// elsewhere.
	Dir string
	// Mark stands for everything that decides what a run comes to: results with another mark
	// are those of another experiment. Plan leaves the program's version out of it.
	Mark, Plan string
	// Play plays one trial of one cell. It is called by several goroutines.
	Play Player
	// Real plays the cells of real time; nil if the study has none. Otherwise every second cell is
	// of real time and repeats the one before it, which is of virtual time.
	Real RealPlayer
}

// Player plays one trial of one cell, counted from 0, with its record if that is wanted.
type Player func(cell *plan.Cell, trial int, o simulation.Options) (
	*result.Trial, *result.Record, error,
)

// RealPlayer plays one trial of one cell in real time. Soon after ctx is over, it stops all
// processes and returns.
type RealPlayer func(ctx context.Context, cell *plan.Cell, trial int, record bool) (
	*result.Trial, *result.Record, error)

func (s *Study) isReal(cell int) bool { return s.Real != nil && isReal(cell) }

// isReal reports that of a cell of a study that has such.
func isReal(cell int) bool { return cell%2 == 1 }

var (
	// ErrUsage is the error of a wrong request. Its text does not appear in messages.
	ErrUsage = errors.New("wrong usage")
	// ErrBusy is the error of a directory in which another process writes.
	ErrBusy = errors.New("another process is writing there")
	// ErrOther is the error of a directory that holds the results of another experiment.
	ErrOther = errors.New("holds results of another experiment")
	// ErrIncomplete is the error of results of which some are missing.
	ErrIncomplete = errors.New("some runs are missing")
)

type usageError struct{ cause error }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func (e *usageError) Error() string   { return e.cause.Error() }
func (e *usageError) Unwrap() []error { return []error{e.cause, ErrUsage} }

// PlayedBy returns the study as another simulator plays it. The name, with its version, marks the
// results, so that they are never taken for the laboratory's own.
func (s *Study) PlayedBy(name string, play Player) *Study {
	other := *s
	other.Play = play
	other.Plan = markOf(s.Plan, name)
	other.Mark = markOf(other.Plan, s.Version)
	return &other
}

type job struct{ cell, trial int }

func (j job) String() string { return fmt.Sprintf("trial %d of cell %d", j.trial, j.cell) }

// byTrial returns the jobs of so many cells: the first trials of all cells, which have their luck
// in common, then the second.
func byTrial(cells int, trials func(cell int) int) (jobs []job) {
	for trial, more := 0, true; more; trial++ {
		more = false
		for cell := range cells {
			if trial < trials(cell) {
				more = true
				jobs = append(jobs, job{cell, trial})
			}
		}
	}
	return jobs
}

// compareJobs orders by cells, which is the order of trials.csv.
func compareJobs(a, b job) int {
	return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.trial, b.trial))
}

func jobOf(t *result.Trial) job { return job{t.Cell, t.Trial} }

func inOrder(runs map[job]*result.Trial) []*result.Trial {
	return slices.SortedFunc(maps.Values(runs), func(a, b *result.Trial) int {
		return compareJobs(jobOf(a), jobOf(b))
	})
}

// hashOf is the digest of runs in their order, each by its events: what two runs of an
// experiment have in common. Those in real time have nothing in common.
func hashOf(runs []*result.Trial) string {
	h := fnv.New64a()
	for _, t := range runs {
		if t.Clock.Real() {
			continue
		}
		fmt.Fprintf(h, "%d %d %d %016x\n", t.Cell, t.Trial, t.Seed, t.Hash)
	}
	return hex.EncodeToString(h.Sum(nil))
}
