package emulation

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Lateness is how much later than it was due something was done, in seconds.
type Lateness struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

func latenessOf(h *simulation.Histogram) Lateness {
	if h.Count == 0 {
		return Lateness{}
	}
	return Lateness{
		Count: h.Count, P50: h.Percentile(.5).Seconds(), P99: h.Percentile(.99).Seconds(),
		Max: h.Most.Seconds(),
	}
}

// worse returns the larger of each number of the two.
func (l Lateness) worse(m Lateness) Lateness {
	return Lateness{
		Count: l.Count + m.Count, P50: max(l.P50, m.P50), P99: max(l.P99, m.P99),
		Max: max(l.Max, m.Max),
	}
}

// sleepTime is how long a process sleeps at a time to see how late it wakes up.
const sleepTime = 10 * time.Millisecond

// sleeper finds out how late this process wakes up, which is how late its timers are.
type sleeper struct {
	late simulation.Histogram
	quit chan struct{}
	over chan struct{}
}

func startSleeper() (*sleeper, error) {
	w, err := node.NewWaiter()
	if err != nil {
		return nil, err
	}
	s := &sleeper{quit: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(s.over)
		defer w.Close()
		runtime.LockOSThread()
		for {
			due := time.Now().Add(sleepTime)
			if _, err := w.Wait(sleepTime, nil); err != nil {
				return
			}
			if late := time.Since(due); late > 0 { // it may wake for nothing
				s.late.Add(late)
			}
			select {
			case <-s.quit:
				return
			default:
			}
		}
	}()
	return s, nil
}

// stop ends it and returns what it has found out.
func (s *sleeper) stop() Lateness {
	close(s.quit)
	<-s.over
	return latenessOf(&s.late)
}

// Timing is whether a run kept time.
type Timing struct {
	// Middle is how late packets left the path, Ends how late the processes of the ends woke up.
	Middle, Ends Lateness
	// Limit is what 99 of 100 packets may be, in seconds, and all of them ten times that; 0: the
	// path takes no time, so that none is late. WakeLimit is the same for the ends.
	Limit, WakeLimit float64
	// Dropped is how many packets sockets had no room for.
	Dropped uint64
}

// The limit is a share of the shortest round trip, or one packet's time on the link if that is
// longer. A smaller lateness neither changes a round trip nor joins packets that were apart. Single
// packets may be ten times as late.
//
// A path without delay and rate takes no time: only the timers of the ends can be late, and the
// shortest one is the tick of RCP's send loop. The limit is a tenth of it; a single one may be late
// by a whole tick, which joins two.
const (
	roundTripShare = 20
	tickShare      = 10
	worstTimes     = 10
	usualTick      = 10 * time.Millisecond
)

// wakeLimitOf is how late 99 of 100 times ends may wake up, if the path has a limit.
func wakeLimitOf(x *plan.Experiment, path time.Duration) time.Duration {
	if path > 0 {
		return path
	}
	tick := usualTick
	for i := range x.Flows {
		if e := x.Flows[i].App.Echo; e != nil && e.RCP.Tick > 0 {
			tick = min(tick, e.RCP.Tick)
		}
	}
	return tick / tickShare
}

// limitOf is how late 99 of 100 packets of an experiment may be.
func limitOf(x *plan.Experiment) time.Duration {
	const bits = 8
	var service time.Duration
	for _, rate := range []netem.Rate{x.Path.Down.Rate, x.Path.Up.Rate} {
		if rate != nil && rate.MeanRate() > 0 {
			perSecond := float64(rate.MeanRate())
			service = max(service, time.Duration(float64(x.Path.MTU*bits)*1e9/perSecond))
		}
	}
	return max(service, roundTrip(x)/roundTripShare)
}

// roundTrip is the shortest of the flows', without a queue.
func roundTrip(x *plan.Experiment) time.Duration {
	shortest := time.Duration(-1)
	for i := range x.Flows {
		trip := x.RTT(&x.Flows[i])
		if shortest < 0 || trip < shortest {
			shortest = trip
		}
	}
	return max(0, shortest)
}

// TimingOf is the timing of a run that has come to some values.
func TimingOf(v result.Values) *Timing {
	return &Timing{
		Middle: Lateness{P99: v[result.LateP99], Max: v[result.LateMax]},
		Ends:   Lateness{P99: v[result.WakeP99], Max: v[result.WakeMax]},
		Limit:  v[result.LateLimit], WakeLimit: v[result.WakeLimit],
		Dropped: uint64(v[result.SocketDrops]),
	}
}

func (t *Timing) set(v result.Values) {
	v[result.LateP99], v[result.LateMax] = t.Middle.P99, t.Middle.Max
	v[result.WakeP99], v[result.WakeMax] = t.Ends.P99, t.Ends.Max
	v[result.LateLimit], v[result.WakeLimit] = t.Limit, t.WakeLimit
	v[result.SocketDrops] = float64(t.Dropped)
}

// Kept reports whether the run kept time.
func (t *Timing) Kept() bool {
	return t.Dropped == 0 && t.Middle.within(t.Limit) && t.Ends.within(t.WakeLimit)
}

// within reports whether nothing was later than a limit allows; 0 means no limit.
func (l Lateness) within(limit float64) bool {
	return limit == 0 || l.P99 <= limit && l.Max <= worstTimes*limit
}

// WorseThan reports whether a run kept time less well than another.
func (t *Timing) WorseThan(o *Timing) bool {
	if t.Kept() != o.Kept() {
		return o.Kept()
	}
	return max(t.Middle.P99, t.Ends.P99) > max(o.Middle.P99, o.Ends.P99)
}

// String is the verdict with its figures.
func (t *Timing) String() string {
	text := "kept time"
	if !t.Kept() {
		text = "could not keep time"
	}
	text += fmt.Sprintf(": packets left up to %s late (p99 %s), ends woke up to %s late (p99 %s)",
		short(t.Middle.Max), short(t.Middle.P99), short(t.Ends.Max), short(t.Ends.P99))
	switch {
	case t.Limit > 0:
		text += fmt.Sprintf("; the path allows a p99 of %s and %s at most", short(t.Limit),
			short(worstTimes*t.Limit))
	case t.WakeLimit > 0:
		text += fmt.Sprintf("; the path has neither delay nor rate, so packets leave as soon as "+
			"the machine can, and it is the ends' timers that are judged: a p99 of %s and %s at "+
			"most", short(t.WakeLimit), short(worstTimes*t.WakeLimit))
	}
	if t.Dropped > 0 {
		text += fmt.Sprintf("; sockets had no room for %d packets", t.Dropped)
	}
	return text
}

// short is a time in milliseconds.
func short(seconds float64) string { return fmt.Sprintf("%.3g ms", seconds*1e3) }

// asleep is how many threads of an end sleep in the kernel: its node's loop and its sleeper.
const asleep = 2

// spareProcessors adds a processor to GOMAXPROCS for each thread that sleeps in the kernel, until
// undo. Such a thread keeps its processor for up to 10 ms if it is not needed at once, which would
// delay the arm's timers and goroutines on a machine with two.
func spareProcessors() (undo func()) {
	was := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + asleep)
	return func() { runtime.GOMAXPROCS(was) }
}

// rests is how late an arm woke up from its own rests.
type rests struct {
	mu   sync.Mutex
	late simulation.Histogram
}

// until rests until a time, and reports whether it came before ctx was over.
func (r *rests) until(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late.Add(max(0, time.Since(at)))
		return true
	case <-ctx.Done():
		return false
	}
}

// lateness returns the percentiles of the delays.
func (r *rests) lateness() Lateness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return latenessOf(&r.late)
}
