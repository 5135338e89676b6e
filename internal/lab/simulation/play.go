package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// Options select outputs in addition to the numbers.
type Options struct {
	// Record makes Run return a record, which takes memory and some time.
	Record bool
	// Capture returns the writer of a pcapng file with the packets of a flow's sender or receiver;
	// nil: no capture.
	Capture func(flow int, receiver bool) io.Writer
	// Printed is called with each line that a flow's script prints, prefixed with the flow's name,
	// and with the time; it may be nil.
	Printed func(at time.Duration, line string)
	// ObjectCache has objects of an earlier run to reuse; nil: the run makes all its objects.
	ObjectCache *ObjectCache
}

// ObjectCache keeps objects that the trials of several cells share. Only one goroutine may use it
// at a time.
type ObjectCache = workload.ObjectCache

type run struct {
	world        *sim.World
	x            *plan.Experiment
	began        clock.Time
	net          dumbbell
	flows        []*flow
	documentApps []*flow // flows whose documentApp is not done
	open         int     // unfinished flows
	err          error
	scratch      []byte // buffer for a call of an application
	printed      func(at time.Duration, line string)
	cache        *ObjectCache
	first        uint64 // seed of the first trial
}

// Run runs one trial of a cell. Trials count from 0. The record is nil unless it was requested. The
// error is set if the cell cannot be run or a script fails.
func Run(cell *plan.Cell, trial int, o Options) (*result.Trial, *result.Record, error) {
	seed := Seed(cell.Seed, trial)
	r := &run{world: sim.New(seed), x: &cell.Experiment, scratch: make([]byte, maxPiece)}
	r.began, r.printed, r.cache = r.world.Now(), o.Printed, cmp.Or(o.ObjectCache, &ObjectCache{})
	r.first = Seed(cell.Seed, 0)
	if err := r.build(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cell.Name, err)
	}
	if o.Record {
		r.record()
	}
	r.schedule()
	if err := r.capture(o.Capture, r.play); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cell.Name, err)
	}
	r.conserve()
	t := r.result()
	t.Cell, t.Trial, t.Seed = cell.Index, trial, seed
	if o.Record {
		return t, r.recorded(Title(cell, trial)), nil
	}
	return t, nil, nil
}

// Seed returns the seed of a trial's world. It does not depend on the cell, so trials of different
// cells form pairs.
func Seed(experiment uint64, trial int) uint64 {
	h := experiment ^ uint64(trial+1)*0x9e3779b97f4a7c15
	// The finalizer of SplitMix64 makes seeds of neighboring numbers independent.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func (r *run) at(d time.Duration) clock.Time { return r.began.Add(d) }

func (r *run) since(t clock.Time) time.Duration { return t.Sub(r.began) }

// schedule schedules the start and end of flows, and the end of the warm-up.
func (r *run) schedule() {
	r.open = len(r.flows)
	if r.x.Warmup > 0 {
		r.world.At(r.at(r.x.Warmup), func(now clock.Time) { r.endWarmup(now) })
	}
	for _, f := range r.flows {
		r.world.At(r.at(f.spec.Start), f.begin)
		if f.spec.Stop > 0 {
			r.world.At(r.at(f.spec.Stop), f.stop)
		}
	}
}

// play runs the world for the whole duration, or until all flows are done.
func (r *run) play() error {
	for until := r.at(r.x.Duration); r.open > 0 && r.err == nil && r.world.Step(until); {
		if len(r.documentApps) > 0 {
			r.endDocumentApps(r.world.Now())
		}
	}
	r.net.path.Advance(r.world.Now())
	return r.err
}

// capture captures the hosts' packets while f runs.
func (r *run) capture(to func(flow int, receiver bool) io.Writer, f func() error) error {
	if to == nil {
		return f()
	}
	var writers []*capture.Writer
	for _, f := range r.flows {
		for _, end := range []struct {
			host     *sim.Host
			receiver bool
		}{{f.sender, false}, {f.receiver, true}} {
			w := to(f.index, end.receiver)
			if w == nil {
				continue
			}
			c, err := end.host.Capture(w, 0)
			if err != nil {
				return err
			}
			writers = append(writers, c)
		}
	}
	err := f()
	for _, w := range writers {
		err = errors.Join(err, w.Flush())
	}
	return err
}

func (r *run) endWarmup(now clock.Time) {
	r.net.path.EndWarmup(now)
	for _, f := range r.flows {
		f.endWarmup(now)
	}
}

func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
