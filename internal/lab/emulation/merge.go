package emulation

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

func (r *run) merge() (*result.Trial, *result.Record) {
	middle := r.reports[0]
	t := &result.Trial{
		Cell: r.cell.Index, Trial: r.trial, Seed: r.seed, Virtual: seconds(middle.Until),
		Whole: middle.Values,
	}
	if t.Whole == nil {
		t.Whole = result.Values{}
	}
	timing := r.timing(t.Whole)
	t.Clock = result.RealTime
	if !timing.OnTime() {
		t.Clock = result.LateTime
	}
	for i := range r.cell.Flows {
		t.Flows = append(t.Flows, r.flow(i))
	}
	t.AddUp()
	if !r.record {
		return t, nil
	}
	return t, r.recorded(timing)
}

func (r *run) ends(flow int) (sender, receiver *report) {
	return r.reports[1+2*flow], r.reports[2+2*flow]
}

// flow combines the results of a flow's ends with the counters of the middle.
func (r *run) flow(i int) result.Flow {
	f := &r.cell.Flows[i]
	sender, receiver := r.ends(i)
	o := result.Flow{
		Name: f.Name, Label: simulation.Label(f), Finished: true, Values: result.Values{},
	}
	until := seconds(r.reports[0].Until)
	for _, end := range []*report{receiver, sender} {
		if end.Done == nil {
			o.Finished = false
			o.Note = strings.TrimPrefix(end.err.Error(), "the ")
			continue
		}
		if !end.Finished {
			if o.Finished || o.Note == "" {
				o.Note = end.Note
			}
			o.Finished = false
		}
		if end.Until > 0 {
			until = min(until, seconds(end.Until))
		}
		maps.Copy(o.Values, end.Values)
	}
	var crossed simulation.Tally
	if list := r.reports[0].Tallies; i < len(list) {
		crossed = list[i]
	}
	v := o.Values
	crossed.Result(f, v)
	if from := max(f.Start, r.cell.Warmup); until > from && f.App.Echo == nil {
		v[result.Throughput] = float64(crossed.Crossed) * 8 / (until - from).Seconds()
	}
	return o
}

// timing adds the values that describe the lateness of the run.
func (r *run) timing(v result.Values) Timing {
	limit := limitOf(&r.cell.Experiment)
	v[result.LateLimit] = limit.Seconds()
	v[result.WakeLimit] = wakeLimitOf(&r.cell.Experiment, limit).Seconds()
	var ends Lateness
	for i, one := range r.reports {
		switch {
		case one.Done == nil:
			continue
		case i == 0:
			v[result.LateP99], v[result.LateMax] = one.Late.P99, one.Late.Max
		default:
			ends = ends.worse(one.Late)
		}
		v[result.SocketDrops] += float64(one.Dropped)
	}
	v[result.WakeP99], v[result.WakeMax] = ends.P99, ends.Max
	return Timing(v)
}

func (r *run) recorded(timing Timing) *result.Record {
	middle := r.reports[0]
	out := &result.Record{
		Title:    simulation.Title(r.cell, r.trial) + ", real",
		Duration: seconds(middle.Until), RTT: r.cell.RTT(&plan.Flow{}),
		Rate: middle.Rate, Marks: middle.Marks, Links: middle.Links,
		Notes: append([]string{fmt.Sprintf("This run %s.", timing)}, middle.Notes...),
	}
	for i := range out.Links {
		out.Links[i].Events = middle.events[min(i, len(middle.events)-1)]
	}
	thinned := false
	for i := range r.cell.Flows {
		f := &r.cell.Flows[i]
		sender, receiver := r.ends(i)
		one := simulation.FlowRecord(&r.cell.Experiment, f)
		for _, end := range []*report{sender, receiver} {
			one.Samples = append(one.Samples, end.samples...)
			one.Segments = append(one.Segments, end.segments...)
			one.Progress = append(one.Progress, end.progress...)
			if end.Done != nil {
				one.MSS = max(one.MSS, end.MSS)
				one.Own = append(one.Own, end.Own...) // only the sender records columns of its own
				out.Objects = append(out.Objects, end.Objects...)
				thinned = thinned || end.Thinned
			}
		}
		out.Flows = append(out.Flows, one)
	}
	if thinned {
		out.Notes = append(out.Notes, simulation.Thinned())
	}
	return out
}

// Estimate returns the approximate duration of a cell's trial.
func Estimate(cell *plan.Cell) time.Duration { return cell.Duration + time.Second }
