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

// Lateness is the distribution of delays after a deadline, in seconds.
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
		Max: h.Max.Seconds(),
	}
}

func (l Lateness) worse(m Lateness) Lateness {
	return Lateness{
		Count: l.Count + m.Count, P50: max(l.P50, m.P50), P99: max(l.P99, m.P99),
		Max: max(l.Max, m.Max),
	}
}

// sleepTime is the duration of one sleep of a sleeper.
const sleepTime = 10 * time.Millisecond

// sleeper measures how late this process wakes up. The timers of the process are equally late.
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
			if late := time.Since(due); late > 0 { // the sleep may end early
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

// stop stops the sleeper and returns its result.
func (s *sleeper) stop() Lateness {
	close(s.quit)
	<-s.over
	return latenessOf(&s.late)
}

// Timing has the values of a run that describe whether it kept time. LateP99 and LateMax are how
// late packets left the path, WakeP99 and WakeMax how late the processes of the ends woke up.
// LateLimit is the largest acceptable lateness of 99 % of the packets; all packets must be within
// ten times the limit. Zero means no limit, because the path takes no time. WakeLimit is the same
// for the ends. SocketDrops counts packets that were lost because a socket buffer was full.
type Timing result.Values

// The limit is a share of the shortest round trip, or one packet's time on the link if that is
// longer. A lateness below the limit does not change a round trip noticeably, and does not make
// separate packets arrive together. Single packets may be ten times as late. On a path without
// delay and rate, only the timers of the ends can be late. The shortest timer is the tick of RCP's
// send loop, and the limit is a tenth of it. A single tick may be late by a whole tick: two ticks
// then coincide.
const (
	roundTripShare = 20
	tickShare      = 10
	maxLateFactor  = 10
	usualTick      = 10 * time.Millisecond
)

// wakeLimitOf returns the limit for 99 % of the ends' wakeups, given the limit of the path.
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

// OnTime reports whether the run was on time.
func (t Timing) OnTime() bool {
	return t[result.SocketDrops] == 0 &&
		t.within(result.LateP99, result.LateMax, result.LateLimit) &&
		t.within(result.WakeP99, result.WakeMax, result.WakeLimit)
}

// within reports whether a lateness is within a limit; 0 means no limit.
func (t Timing) within(p99, most, limit result.Metric) bool {
	return t[limit] == 0 || t[p99] <= t[limit] && t[most] <= maxLateFactor*t[limit]
}

// WorseThan reports whether a run was later than another one.
func (t Timing) WorseThan(o Timing) bool {
	if t.OnTime() != o.OnTime() {
		return o.OnTime()
	}
	return max(t[result.LateP99], t[result.WakeP99]) > max(o[result.LateP99], o[result.WakeP99])
}

// String returns the verdict with its numbers.
func (t Timing) String() string {
	limit, wakeLimit := t[result.LateLimit], t[result.WakeLimit]
	text := "kept time"
	if !t.OnTime() {
		text = "could not keep time"
	}
	text += fmt.Sprintf(": packets left up to %s late (p99 %s), hosts woke up to %s late (p99 %s)",
		short(t[result.LateMax]), short(t[result.LateP99]), short(t[result.WakeMax]),
		short(t[result.WakeP99]))
	switch {
	case limit > 0:
		text += fmt.Sprintf("; the path allows a p99 of %s and %s at most", short(limit),
			short(maxLateFactor*limit))
	case wakeLimit > 0:
		text += fmt.Sprintf("; the path has neither delay nor rate, so only the hosts' timers "+
			"are checked: a p99 of %s and %s at most",
			short(wakeLimit), short(maxLateFactor*wakeLimit))
	}
	if n := t[result.SocketDrops]; n > 0 {
		text += fmt.Sprintf("; socket buffers dropped %.0f packets", n)
	}
	return text
}

func short(seconds float64) string { return fmt.Sprintf("%.3g ms", seconds*1e3) }

// sleepingThreads is the number of an end's threads that sleep in the kernel: the node's loop and
// the sleeper.
const sleepingThreads = 2

// spareProcessors adds a processor to GOMAXPROCS for each thread that sleeps in the kernel, until
// the caller calls undo. Such a thread keeps its processor for up to 10 ms if no other goroutine
// needs it at once. On a machine with two processors, that would delay the arm's timers and
// goroutines.
func spareProcessors() (undo func()) {
	was := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + sleepingThreads)
	return func() { runtime.GOMAXPROCS(was) }
}

// armSleeps records how late an arm woke up from its own sleeps.
type armSleeps struct {
	mu   sync.Mutex
	late simulation.Histogram
}

// until sleeps until a time, and returns false if ctx ends first.
func (r *armSleeps) until(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late.Add(max(0, time.Since(at)))
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *armSleeps) lateness() Lateness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return latenessOf(&r.late)
}
