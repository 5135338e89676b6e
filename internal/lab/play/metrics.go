package play

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// result is what the run came to.
func (r *run) result() *result.Trial {
	now := r.Now()
	t := &result.Trial{
		Hash: r.Hash(), Virtual: r.since(now), Finished: true, Whole: result.Values{},
	}
	var notes []string
	var all, squares, packets float64
	for _, f := range r.flows {
		one := f.result(now)
		t.Flows = append(t.Flows, one)
		if !one.Finished {
			t.Finished = false
			notes = append(notes, one.Name+": "+one.Note)
		}
		goodput := one.Values[result.Goodput]
		all += goodput
		squares += float64(goodput * goodput) // the same on every machine: not fused
		packets += one.Values[result.Sent]
	}
	t.Note = strings.Join(notes, "; ")
	if all > 0 {
		for i := range t.Flows {
			t.Flows[i].Values[result.Share] = t.Flows[i].Values[result.Goodput] / all
		}
		t.Whole[result.Jain] = all * all / (float64(len(t.Flows)) * squares)
	}
	t.Whole[result.Packets] = packets
	r.bottleneck(now, t.Whole)
	return t
}

// bottleneck adds what the path did. Its queue and its utilisation are the dataMeter's.
func (r *run) bottleneck(now clock.Time, v result.Values) {
	m := r.dataMeter()
	counts := m.link.Counters()
	v[result.Losses] = float64(r.down.link.Counters().Lost + r.up.link.Counters().Lost)
	v[result.QueueDrops] = float64(counts.QueueDropped + counts.Overflowed)
	v[result.Policed] = float64(counts.Policed)
	v[result.Marks] = float64(counts.Marked)
	if bits := m.capacity(r.x.Warmup, r.since(now)); bits > 0 {
		v[result.Utilisation] = m.used() / bits
	}
	if m.cfg.Rate != nil && m.waits.count > 0 {
		v[result.QueueMean] = m.waits.mean().Seconds()
		v[result.QueueP50] = m.waits.percentile(.50).Seconds()
		v[result.QueueP95] = m.waits.percentile(.95).Seconds()
		v[result.QueueMax] = m.waits.most.Seconds()
	}
}

// dataMeter is that of the direction that data takes: down, if there are flows in both.
func (r *run) dataMeter() *meter {
	for _, f := range r.flows {
		if !f.Upward {
			return r.down
		}
	}
	return r.up
}

// result is what the flow came to.
func (f *flow) result(now clock.Time) result.Flow {
	if f.ended == clock.Never {
		f.ended = now
	}
	o := result.Flow{Name: f.Name, Label: f.label(), Values: result.Values{}}
	o.Finished, o.Note = f.outcome()
	v := o.Values
	v[result.Delivered] = float64(f.received)
	v[result.Sent] = float64(f.sent)
	v[result.Drops] = float64(f.dropped)
	if f.Protocol == plan.TCP {
		v[result.DataSent] = float64(f.data)
		v[result.AcksSent] = float64(f.bare)
	}
	until := f.ended
	if f.completed != clock.Never {
		v[result.Completion] = f.completed.Sub(f.begun).Seconds()
		until = f.completed
	}
	from := max(f.begun, f.run.at(f.run.x.Warmup))
	if f.begun != clock.Never && until > from {
		d := until.Sub(from).Seconds()
		v[result.Goodput] = float64(f.received-f.warmBytes) * 8 / d
		v[result.Throughput] = float64(f.crossedBytes) * 8 / d
	}
	f.view.result(until, v)
	f.requestsResult(v)
	if f.guest != nil {
		o.Finished, o.Note = f.guest.report(v)
	}
	if f.tx != nil {
		i := f.tx.TCP().Info()
		v[result.Retransmits] = float64(i.Retransmits)
		v[result.Timeouts] = float64(i.Timeouts)
		v[result.Recoveries] = float64(i.FastRecoveries)
	}
	return o
}

// result adds what was seen of the sender.
func (v *view) result(until clock.Time, to result.Values) {
	if h := &v.rtt; h.count > 0 {
		to[result.RTTMean] = h.mean().Seconds()
		to[result.RTTMin] = h.least.Seconds()
		to[result.RTTMax] = h.most.Seconds()
		to[result.RTTP50] = h.percentile(.50).Seconds()
		to[result.RTTP95] = h.percentile(.95).Seconds()
		to[result.RTTP99] = h.percentile(.99).Seconds()
	}
	if v.cwndSince == clock.Never {
		return
	}
	if until > v.cwndSince {
		v.settle(until)
	}
	if v.cwndTime > 0 {
		to[result.CwndMean] = v.cwndArea / float64(v.cwndTime)
	}
	to[result.CwndMax] = float64(v.cwndMost)
}

// requestsResult adds how long requests took.
func (f *flow) requestsResult(v result.Values) {
	if len(f.requests) == 0 {
		return
	}
	var h histogram
	for _, q := range f.requests {
		h.add(q.done - q.asked)
	}
	v[result.RequestMean] = h.mean().Seconds()
	v[result.RequestP95] = h.percentile(.95).Seconds()
}

// label is what the flow is an instance of: what differs in it from others of its kind.
func (f *flow) label() string {
	app := &f.App
	switch {
	case app.Echo != nil && f.Protocol == plan.RCP:
		return fenceLabel(app.Echo.RCP.Window)
	case app.Burst != nil:
		return fenceLabel(app.Burst.RCP.Window)
	case app.Objects != nil:
		return app.Objects.Arm.String()
	case app.Notebook != nil && app.Notebook.Fixed > 0:
		return "notebook fixed"
	case app.Notebook != nil:
		return "notebook tahoe"
	case f.Protocol != plan.TCP:
		return string(f.Protocol)
	}
	return f.algorithm()
}

// fenceLabel is what founding document 000 compares.
func fenceLabel(window bool) string {
	if window {
		return "window"
	}
	return "fence"
}

// outcome reports whether a flow that has an end came to it, and what happened if not.
func (f *flow) outcome() (bool, string) {
	switch {
	case f.damaged != "":
		return false, f.damaged
	case f.completed != clock.Never || f.err == nil && f.App.Size == 0:
		return true, ""
	case f.begun == clock.Never:
		return false, "it did not begin in time"
	}
	size := f.wanted()
	reached := fmt.Sprintf("%d bytes", f.received)
	if size > 0 {
		reached = fmt.Sprintf("%d of %d bytes", f.received, size)
	}
	reached += fmt.Sprintf(", the last after %.3f s", f.progress.Sub(f.begun).Seconds())
	switch {
	case f.stopped:
		return false, "stopped: " + reached
	case f.err != nil:
		return false, f.failure() + ": " + reached
	case f.tx == nil:
		return false, "the connection did not begin"
	}
	i := f.tx.TCP().Info()
	if i.Retries > 0 {
		reached += fmt.Sprintf(", %s, %d retransmissions without an answer", i.State, i.Retries)
	}
	return false, "out of time: " + reached
}

// failure is how a connection ended that failed.
func (f *flow) failure() string {
	text := f.err.Error()
	if f.tx != nil && errors.Is(f.err, tcp.ErrTimeout) {
		// The last time-out was one too many, and sent nothing.
		if n := f.tx.TCP().Info().Retries - 1; n > 0 {
			text += fmt.Sprintf(" after %d retransmissions", n)
		}
	}
	return text
}
