package emulation

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// measurements are what an end measures: the state of the sender in the node's loop, and the data
// that the arm has received.
type measurements struct {
	// These fields belong to the loop until the node is closed.
	stats    simulation.SenderStats
	last     tcp.Info
	warm     bool // the warm-up has ended for stats
	recorder *simulation.FlowRecorder
	sent     atomic.Uint64 // stream offset of the next byte to send

	// These fields belong to the arm until it returns.
	received, warmBytes uint64
	warmed              bool // the warm-up has ended for received
	progress, completed time.Duration
	until               time.Duration // when the arm returned; 0: not yet
	corrupted           string
	err                 error
	values              result.Values
	list                []result.Object
	finished            *bool // the arm's result; nil: computed from the measurements
	note                string

	failed  chan error
	late    Lateness
	dropped uint64
}

func (e *End) prepare(n int) {
	e.seen.failed = make(chan error, 1)
	e.seen.values = result.Values{}
	e.seen.recorder = simulation.NewFlowRecorder(n, e.Flow.Ssthresh > 0)
	e.seen.warm, e.seen.warmed = e.Start.Warmup == 0, e.Start.Warmup == 0
}

func (e *End) fail(err error) {
	select {
	case e.seen.failed <- fmt.Errorf("flow %s: %w", e.Flow.Name, err):
	default: // the process has failed, so nothing reads the channel
	}
}

func (e *End) begin(at time.Time) {
	// The node's clock is monotonic, so computing the offset once is enough.
	e.Origin = time.Now().Add(time.Until(at))
}

func (e *End) since(t clock.Time) time.Duration { return e.Node.Time.Wall(t).Sub(e.Origin) }

func (e *End) instant(d time.Duration) clock.Time {
	return clock.Time(e.Origin.Add(d).Sub(e.Node.Time.Wall(1))) + 1
}

// sampled records a sample of one of the sender's connections. Only the loop calls it.
func (e *End) sampled(conn int, s *tcp.Info) {
	if e.Origin.IsZero() {
		return
	}
	if end := e.instant(seconds(e.Start.Warmup)); !e.seen.warm && s.Time >= end {
		e.seen.warm = true
		e.seen.stats.EndWarmup(end)
	}
	e.seen.sent.Store(s.Nxt)
	fresh := e.seen.stats.AddSample(conn, s)
	if e.Start.Record {
		e.seen.recorder.Sample(e.since(s.Time), s, fresh)
	}
	e.seen.last = *s
}

// tracer returns a tap that records the segments of a host.
func (e *End) tracer(host netip.Addr) stack.Tap {
	owns := func(a netip.Addr) bool { return a == host }
	var r result.Segment
	return sim.NewTracer(owns, func(s *sim.Segment) {
		r = simulation.Segment(e.since(s.Time), s)
		e.seen.recorder.Segment(&r)
	}).Tap
}

// Got records received data, and checks it against the pattern of package sim.
func (e *End) Got(p []byte) {
	if len(p) == 0 {
		return
	}
	right := sim.Check(p, e.seen.received)
	if right < len(p) && e.seen.corrupted == "" {
		e.seen.corrupted = fmt.Sprintf("byte %d arrived corrupted", e.seen.received+uint64(right))
	}
	e.Count(len(p))
}

// Count records a number of received bytes.
func (e *End) Count(n int) {
	now := e.Now()
	if !e.seen.warmed && now >= seconds(e.Start.Warmup) {
		e.seen.warmed, e.seen.warmBytes = true, e.seen.received
	}
	e.seen.received += uint64(n)
	e.seen.progress = now
	if e.Start.Record {
		e.seen.recorder.Got(now, e.seen.received)
	}
}

// Complete records that all expected data has arrived.
func (e *End) Complete() {
	if e.seen.completed == 0 {
		e.seen.completed = e.Now()
	}
}

// Object records a transferred object. Times are times of the run.
func (e *End) Object(o result.Object) {
	o.Flow = e.Flow.Name
	e.seen.list = append(e.seen.list, o)
}

// Set sets a metric of the flow. Metrics that the arm does not set are measured if possible.
func (e *End) Set(m result.Metric, v float64) { e.seen.values[m] = v }

// Finish sets whether the flow was complete, and the reason if not. Without Finish, an end with
// Start.Size bytes to receive must call Complete, and any other end must return no error.
func (e *End) Finish(finished bool, note string) { e.seen.finished, e.seen.note = &finished, note }

func (e *End) ended(ctx context.Context, err error) {
	select {
	case <-e.started:
	default: // the run has not begun
		if err != nil {
			e.fail(err)
		}
		return
	}
	if ctx.Err() == nil {
		e.seen.until = e.Now()
		e.seen.err = err
	}
}

// drops returns the number of packets lost because the node's socket buffer was full.
func (e *End) drops() (n uint64) {
	_ = e.Node.Call(func(*stack.Stack, clock.Time) error { // a closed node has no counters
		for i := range e.Node.Ifaces() {
			d, ok := e.Node.Devices.Unimpaired(i).(interface{ Counters(id int) link.Counters })
			if ok {
				n += d.Counters(i).Drops[link.DropKernel]
			}
		}
		return nil
	})
	return n
}

func (e *End) report() {
	if stop := seconds(e.Start.Stop); e.seen.until == 0 && stop > 0 && e.Now() > stop {
		e.seen.until = stop
	}
	d := Done{
		Values: e.seen.values, Objects: e.seen.list, Late: e.seen.late, Dropped: e.seen.dropped,
		Until: e.seen.until.Seconds(),
	}
	d.Finished, d.Note = e.outcome()
	over := e.Now()
	if e.seen.until > 0 {
		over = e.seen.until
	}
	switch e.Start.Role {
	case Sender:
		e.reportSender(over, d.Values)
	case Receiver:
		e.reportReceiver(over, &d)
	case Middle:
	}
	if e.Start.Record {
		var r result.FlowRecord
		d.Thinned = e.seen.recorder.Fill(&r)
		d.MSS, d.Own = r.MSS, r.Own
		sendRows(e.out, "samples", 0, r.Samples, r.Own...)
		sendRows(e.out, "segments", 0, r.Segments)
		sendRows(e.out, "progress", 0, r.Progress)
	}
	e.out.send(&Message{Type: "done", Done: d})
}

func (e *End) reportSender(over time.Duration, v result.Values) {
	until := e.instant(over)
	defer maps.Copy(v, maps.Clone(v)) // values that the arm has set take precedence
	e.countTCP()
	if e.seen.last.Time == 0 {
		return // no connection has a sample
	}
	if end := e.instant(seconds(e.Start.Warmup)); !e.seen.warm && until > end {
		e.seen.stats.EndWarmup(end)
	}
	e.seen.stats.Result(until, v)
	v[result.Retransmits] = float64(e.seen.last.TotalRetrans)
	v[result.Timeouts] = float64(e.seen.last.TotalRTO)
	v[result.Recoveries] = float64(e.seen.last.FastRecoveries)
}

func (e *End) reportReceiver(over time.Duration, d *Done) {
	if e.Flow.App.Echo != nil {
		return // an echo client counts its own bytes
	}
	v := d.Values
	v[result.Delivered] = float64(e.seen.received)
	if e.seen.completed > 0 {
		v[result.Completion] = (e.seen.completed - seconds(e.Start.Begin)).Seconds()
		over = e.seen.completed
		d.Until = e.seen.completed.Seconds()
	}
	if !e.seen.warmed {
		e.seen.warmBytes = e.seen.received
	}
	if from := max(seconds(e.Start.Begin), seconds(e.Start.Warmup)); over > from {
		v[result.Goodput] = float64(e.seen.received-e.seen.warmBytes) * 8 / (over - from).Seconds()
	}
}

// outcome reports whether the flow was complete, as far as this end knows, and the reason if not.
func (e *End) outcome() (bool, string) {
	switch {
	case e.seen.finished != nil:
		return *e.seen.finished, e.seen.note
	case e.seen.corrupted != "":
		return false, e.seen.corrupted
	case e.seen.completed > 0:
		return true, ""
	case e.seen.err == nil && (e.Start.Role == Sender || e.Start.Size == 0):
		return true, ""
	case e.Start.Role == Sender:
		return false, e.seen.err.Error()
	}
	reached := fmt.Sprintf("%d bytes", e.seen.received)
	if e.Start.Size > 0 {
		reached = fmt.Sprintf("%d of %d bytes", e.seen.received, e.Start.Size)
	}
	last := max(0, e.seen.progress-seconds(e.Start.Begin))
	reached += fmt.Sprintf(", the last after %.3f s", last.Seconds())
	switch {
	case e.seen.err != nil:
		return false, e.seen.err.Error() + ": " + reached
	case e.Start.Stop > 0:
		return false, "stopped: " + reached
	}
	return false, "out of time: " + reached
}
