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

// Study is a resolved experiment.
type Study struct {
	Name, About string
	// Version is the program's version.
	Version string
	Seed    uint64
	Metrics []result.Metric // metrics of the table; nil: the most informative ones
	Cells   []plan.Cell
	// Notes describe the file's sweeps that changes of the path have removed.
	Notes []string
	// Document is the file with all changes. Files are the files that it names.
	Document []byte
	Files    map[string][]byte
	// Dir is the directory of results from which the experiment was read. It is empty if there is
	// none.
	Dir string
	// Mark identifies everything that affects the results: results with another mark belong to
	// another experiment. Plan is the same, but does not include the program's version.
	Mark, Plan string
	// Play runs one trial of one cell. It must be safe for concurrent use.
	Play Player
	// Real runs the cells in real time; nil if the study has none. Otherwise every second cell is
	// in real time, and repeats the cell before it, which is in virtual time.
	Real RealPlayer
}

// Player runs one trial, counted from 0, of one cell. It returns a record if requested.
type Player func(cell *plan.Cell, trial int, o simulation.Options) (
	*result.Trial, *result.Record, error,
)

// RealPlayer runs one trial of one cell in real time. Soon after ctx ends, it stops all processes
// and returns.
type RealPlayer func(ctx context.Context, cell *plan.Cell, trial int, record bool) (
	*result.Trial, *result.Record, error)

func (s *Study) isReal(cell int) bool { return s.Real != nil && isReal(cell) }

// isReal reports whether a cell is in real time, for a study that has such cells.
func isReal(cell int) bool { return cell%2 == 1 }

var (
	// ErrUsage means that a request is invalid.
	ErrUsage = errors.New("wrong usage")
	// ErrBusy means that another process is writing to the directory.
	ErrBusy = errors.New("another process is writing there")
	// ErrOther means that the directory has the results of another experiment.
	ErrOther = errors.New("holds results of another experiment")
	// ErrIncomplete means that results are missing.
	ErrIncomplete = errors.New("some runs are missing")
)

// kindError is an error of a kind such as ErrUsage. Its message does not contain the kind's text.
type kindError struct {
	error
	kind error
}

// Unwrap lets errors.Is and errors.As find both errors.
func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

func usage(format string, args ...any) error {
	return &kindError{fmt.Errorf(format, args...), ErrUsage}
}

// PlayedBy returns the study for another simulator. The simulator's name is a part of the mark, so
// the laboratory's own results have another mark.
func (s *Study) PlayedBy(name string, play Player) *Study {
	other := *s
	other.Play = play
	other.Plan = markOf(s.Plan, name)
	other.Mark = markOf(other.Plan, s.Version)
	return &other
}

type job struct{ cell, trial int }

func (j job) String() string { return fmt.Sprintf("trial %d of cell %d", j.trial, j.cell) }

// byTrial returns the jobs of a number of cells: the first trials of all cells, which have the same
// random draws, then the second trials, and so on.
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

func jobOf(t *result.Trial) job { return job{t.Cell, t.Trial} }

// inOrder sorts runs by cell and trial, which is the order of trials.csv.
func inOrder(runs map[job]*result.Trial) []*result.Trial {
	return slices.SortedFunc(maps.Values(runs), func(a, b *result.Trial) int {
		return cmp.Or(a.Cell-b.Cell, a.Trial-b.Trial)
	})
}

// hashOf returns a digest of the hashes of runs, in their order. It skips runs in real time, which
// are not reproducible.
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
