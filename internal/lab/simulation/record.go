package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/sim"
)

func (r *run) record() {
	r.net.path.Record()
	for _, f := range r.flows {
		f.recorder = NewFlowRecorder(len(r.flows), f.spec.Ssthresh > 0)
		var one result.Segment
		f.sender.Trace(func(s *sim.Segment) {
			one = Segment(r.since(s.Time), s)
			f.recorder.Segment(&one)
		})
	}
}

// Segment converts a segment at the sender for a record.
func Segment(at time.Duration, s *sim.Segment) result.Segment {
	return result.Segment{
		At: at, Received: !s.Sent, Seq: s.Seq, Len: s.Length, Ack: s.Ack, Window: s.Window,
		Again: s.Repeats && s.Length > 0, SACK: append([][2]uint64(nil), s.SACK...),
	}
}

func (r *run) recorded(title string) *result.Record {
	out := &result.Record{
		Title: title, Duration: r.since(r.world.Now()), RTT: r.x.RTT(&plan.Flow{}),
		Rate: r.net.path.MeanRate(), Marks: r.net.path.Marks(r.world.Now()),
	}
	thinned := false
	for _, f := range r.flows {
		if g, ok := f.documentApp.(notebookApp); ok {
			g.record(f)
		}
		one := FlowRecord(r.x, f.spec)
		thinned = f.recorder.Fill(&one) || thinned
		out.Flows = append(out.Flows, one)
		out.Objects = append(out.Objects, f.objects()...)
	}
	out.Links, out.Notes = r.net.path.Links(r.world.Now())
	if thinned {
		out.Notes = append(out.Notes, Thinned())
	}
	return out
}

// FlowRecord returns the empty record of a flow.
func FlowRecord(x *plan.Experiment, f *plan.Flow) result.FlowRecord {
	return result.FlowRecord{
		Name: f.Name, Label: Label(f), Start: f.Start, RTT: x.RTT(f), Upward: f.Upward,
	}
}

// objects returns the responses that the flow's application requested.
func (f *flow) objects() []result.Object {
	if g, ok := f.documentApp.(objectsApp); ok {
		return Objects(f.spec.Name, f.spec.Start, g.Result().Objects)
	}
	var all []result.Object
	for i, q := range f.requests {
		all = append(all, result.Object{
			Flow: f.spec.Name, Name: fmt.Sprintf("request %d", i+1), Size: int(f.spec.App.Size),
			Start: q.asked, End: q.done, Done: true,
		})
	}
	if f.asked > len(all) {
		all = append(all, result.Object{
			Flow: f.spec.Name, Name: fmt.Sprintf("request %d", len(all)+1),
			Size: int(f.spec.App.Size), Start: f.run.since(f.asking),
		})
	}
	return all
}

// Title names a trial of a cell by its settings.
func Title(cell *plan.Cell, trial int) string {
	words := []string{cell.Name}
	for _, s := range cell.Set {
		words = append(words, s.Key+" "+s.Value)
	}
	return strings.Join(append(words, fmt.Sprintf("trial %d", trial)), ", ")
}
