package simulation

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func (r *run) result() *result.Trial {
	now := r.world.Now()
	t := &result.Trial{Hash: r.world.Hash(), Virtual: r.since(now), Whole: result.Values{}}
	for _, f := range r.flows {
		t.Flows = append(t.Flows, f.result(now))
	}
	t.AddUp()
	r.net.path.Result(now, t.Whole)
	return t
}

func (f *flow) result(now clock.Time) result.Flow {
	if f.ended == clock.Never {
		f.ended = now
	}
	o := result.Flow{Name: f.spec.Name, Label: Label(f.spec), Values: result.Values{}}
	o.Finished, o.Note = f.outcome()
	v := o.Values
	v[result.Delivered] = float64(f.got.bytes)
	crossed := f.run.net.path.Tallies[f.index]
	crossed.Result(f.spec, v)
	until := f.ended
	if f.completed != clock.Never {
		v[result.Completion] = f.completed.Sub(f.begun).Seconds()
		until = f.completed
	}
	from := max(f.begun, f.run.at(f.run.x.Warmup))
	if f.begun != clock.Never && until > from {
		d := until.Sub(from).Seconds()
		v[result.Goodput] = float64(f.got.bytes-f.got.warm) * 8 / d
		v[result.Throughput] = float64(crossed.Crossed) * 8 / d
	}
	// Goodput can be steady only if the flow lasts for the whole measured time.
	if f.documentApp == nil && f.spec.App.Size == 0 && f.spec.Stop == 0 &&
		f.spec.Start < f.run.x.Warmup {
		s, drift := result.TrendOf(f.got.parts[:])
		v[result.Trend], v[result.Drift] = float64(s), drift
	}
	f.stats.Result(until, v)
	f.requestsResult(v)
	if f.documentApp != nil {
		o.Finished, o.Note = f.documentApp.report(v)
	}
	if f.tx != nil {
		i := f.tx.TCP().Info()
		v[result.Retransmits] = float64(i.TotalRetrans)
		v[result.Timeouts] = float64(i.TotalRTO)
		v[result.Recoveries] = float64(i.FastRecoveries)
	}
	return o
}

func (f *flow) requestsResult(v result.Values) {
	if len(f.requests) == 0 {
		return
	}
	var h Histogram
	for _, q := range f.requests {
		h.Add(q.done - q.asked)
	}
	v[result.RequestMean] = h.Mean().Seconds()
	v[result.RequestP95] = h.Percentile(.95).Seconds()
}

// outcome reports whether the flow was complete, and the reason if it was not.
func (f *flow) outcome() (bool, string) {
	switch {
	case f.corrupted != "":
		return false, f.corrupted
	case f.completed != clock.Never || f.spec.App.Size == 0 && (f.err == nil || f.stopped):
		return true, ""
	case f.begun == clock.Never:
		return false, "it did not start in time"
	}
	size := f.spec.App.Wanted()
	reached := fmt.Sprintf("%d bytes", f.got.bytes)
	if size > 0 {
		reached = fmt.Sprintf("%d of %d bytes", f.got.bytes, size)
	}
	reached += fmt.Sprintf(", the last after %.3f s", f.progress.Sub(f.begun).Seconds())
	switch {
	case f.stopped:
		return false, "stopped: " + reached
	case f.err != nil:
		return false, f.failure() + ": " + reached
	case f.tx == nil:
		return false, "the connection was not established"
	}
	i := f.tx.TCP().Info()
	if i.Retransmits > 0 {
		reached += fmt.Sprintf(", %s, %d retransmissions without an answer", i.State, i.Retransmits)
	}
	return false, "out of time: " + reached
}

func (f *flow) failure() string {
	text := f.err.Error()
	if f.tx != nil && errors.Is(f.err, tcp.ErrTimeout) {
		// The last timeout exceeded the limit of retries, so it sent nothing.
		if n := f.tx.TCP().Info().Retransmits - 1; n > 0 {
			text += fmt.Sprintf(" after %d retransmissions", n)
		}
	}
	return text
}
