package play

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A record is bounded: so many samples, segments and points of all flows together, at least
// minRows of each flow, and so many events of a link. What exceeds that is thinned, in doubling
// steps and evenly over the run, and the record says so: see thinner.
const (
	maxSamples  = 1 << 16
	maxSegments = 1 << 17
	maxPoints   = 1 << 16
	maxEvents   = 1 << 17
	minRows     = 1 << 9
)

// flowTape is what is recorded of a flow.
type flowTape struct {
	samples        thinner[result.Sample]
	sent, received thinner[result.Segment]
	points         thinner[result.Point]
	mss            int
	threshold      bool   // there is one for slow start from the beginning
	unset          int    // what stands for none
	rows           uint64 // so far
}

// newFlowTape returns a tape for one of n flows.
func newFlowTape(n int) *flowTape {
	share := func(most int) int { return max(most/n, minRows) }
	way := thinner[result.Segment]{limit: share(maxSegments / 2), merge: mergeSegments}
	return &flowTape{
		samples: thinner[result.Sample]{
			limit: share(maxSamples), merge: mergeSamples, same: sameInstant,
		},
		sent: way, received: way,
		points: thinner[result.Point]{
			limit: share(maxPoints),
			merge: func(_ *result.Point, b result.Point) (result.Point, bool) { return b, true },
		},
	}
}

// place returns the place of the next row.
func (f *flowTape) place() uint64 {
	f.rows++
	return f.rows
}

// sample records a sample of the sender; fresh says that it has a measurement of the round
// trip that no other had.
func (f *flowTape) sample(at time.Duration, s *tcp.Sample, fresh bool) {
	f.mss = max(f.mss, s.SendMSS)
	r := result.Sample{
		At: at, Cwnd: s.Cwnd, Ssthresh: s.Ssthresh, SRTT: s.SRTT, RTTVar: s.RTTVar,
		MinRTT: s.MinRTT, RTO: s.RTO, Unacked: int(s.Nxt - s.Una), InFlight: s.Pipe,
		Sacked: s.Sacked, Lost: s.Lost, Retrans: s.Retrans, SendWindow: s.SendWindow,
		BytesAcked: s.BytesAcked, BytesSent: s.BytesSent,
		Retransmits: s.Retransmits, Timeouts: s.Timeouts, DupAcks: s.DupAcks,
		DeliveryRate: s.DeliveryRate, PacingRate: s.PacingRate, State: s.Recovery,
	}
	if f.unset == 0 && !f.threshold {
		f.unset = s.Ssthresh
	}
	if r.Ssthresh == f.unset {
		r.Ssthresh = 0
	}
	if fresh {
		r.RTT = s.LatestRTT
	}
	f.samples.add(r, f.place())
}

// mergeSamples leaves the earlier of two samples out, unless something happened with it.
func mergeSamples(a *result.Sample, b result.Sample) (result.Sample, bool) {
	quiet := a.State == b.State && a.Retransmits == b.Retransmits && a.Timeouts == b.Timeouts &&
		a.Ssthresh == b.Ssthresh
	if quiet && b.RTT == 0 {
		b.RTT = a.RTT
	}
	return b, quiet
}

// sameInstant is of two samples of which the later says all: an acknowledgment and what it let
// out.
func sameInstant(a, b *result.Sample) bool { return a.At == b.At && (a.RTT == 0 || b.RTT == 0) }

// segment records a segment at the sender.
func (f *flowTape) segment(at time.Duration, s *sim.Segment) {
	r := result.Segment{
		At: at, Received: !s.Sent, Seq: s.Seq, Len: s.Len, Ack: s.Ack, Window: s.Window,
		Again: s.Again && s.Len > 0,
	}
	for _, b := range s.SACK {
		r.SACK = append(r.SACK, [2]uint64{b.Start, b.End})
	}
	way := &f.sent
	if r.Received {
		way = &f.received
	}
	way.add(r, f.place())
}

// mergeSegments makes one segment of two that carry on one another, and leaves out an
// acknowledgment that the next one goes beyond.
func mergeSegments(a *result.Segment, b result.Segment) (result.Segment, bool) {
	switch {
	case a.Received != b.Received || a.Again || b.Again || len(a.SACK)+len(b.SACK) > 0:
		return b, false
	case a.Received:
		return b, a.Len == 0 && b.Len == 0 && b.Ack > a.Ack
	case a.Seq+uint64(a.Len) != b.Seq:
		return b, false
	}
	b.Seq, b.Len = a.Seq, a.Len+b.Len
	return b, true
}

// got records what the receiving application has got.
func (f *flowTape) got(at time.Duration, bytes uint64) {
	f.points.add(result.Point{At: at, Value: float64(bytes)}, f.place())
}

// linkTape is what is recorded of a direction of the bottleneck: what comes and what leaves of
// each flow, of nobody too, and what happens beside.
type linkTape struct {
	come, leave []*thinner[result.LinkEvent] // by flow, from -1 on
	chances     thinner[result.LinkEvent]
	other       thinner[result.LinkEvent]
	rows        uint64
}

// newLinkTape returns a tape for n flows.
func newLinkTape(n int) *linkTape {
	list := func(limit int) thinner[result.LinkEvent] {
		return thinner[result.LinkEvent]{limit: max(limit, minRows), merge: mergeEvents}
	}
	t := &linkTape{chances: list(maxEvents / 2), other: list(maxEvents)}
	for range n + 1 {
		come, leave := list(maxEvents/n/2), list(maxEvents/n/2)
		t.come, t.leave = append(t.come, &come), append(t.leave, &leave)
	}
	return t
}

func (t *linkTape) add(e result.LinkEvent) {
	t.rows++
	switch e.Kind {
	case result.Arrival:
		t.come[e.Flow+1].add(e, t.rows)
	case result.Departure:
		t.leave[e.Flow+1].add(e, t.rows)
	case result.Opportunity:
		t.chances.add(e, t.rows)
	case result.Drop, result.Marked:
		t.other.add(e, t.rows)
	}
}

// events returns all, and for how many packets one may stand.
func (t *linkTape) events() (all []result.LinkEvent, most uint64) {
	lists := append([]*thinner[result.LinkEvent]{&t.chances, &t.other}, t.come...)
	lists = append(lists, t.leave...)
	for _, l := range lists {
		most = max(most, l.stride)
	}
	return together(lists...), most
}

// mergeEvents makes one event of two: of so many bytes, and the longer wait. What befalls few
// packets is left as it is.
func mergeEvents(a *result.LinkEvent, b result.LinkEvent) (result.LinkEvent, bool) {
	if a.Kind != b.Kind || a.Kind == result.Drop || a.Kind == result.Marked {
		return b, false
	}
	b.Bytes += a.Bytes
	b.Wait = max(a.Wait, b.Wait)
	return b, true
}

// record makes tapes for all that is recorded.
func (r *run) record() {
	n := len(r.flows)
	r.down.record()
	r.up.record()
	for _, f := range r.flows {
		f.tape = newFlowTape(n)
		f.tape.threshold = f.Ssthresh > 0
		f.sender.Trace(func(s *sim.Segment) { f.tape.segment(r.since(s.Time), s) })
	}
}

// recorded returns what the tapes hold.
func (r *run) recorded(title string) *result.Record {
	path := &r.x.Path
	out := &result.Record{
		Title: title, Duration: r.since(r.Now()), RTT: path.Down.Delay + path.Up.Delay,
		Rate: r.dataMeter().meanRate(), Marks: r.marks(),
	}
	thinned := false
	for _, f := range r.flows {
		t, samples := f.tape, f.samples()
		out.Flows = append(out.Flows, result.FlowRecord{
			Name: f.Name, Label: f.label(), Start: f.Start, RTT: out.RTT + 4*f.Delay, MSS: t.mss,
			Upward: f.Upward, Samples: samples,
			Segments: together(&t.sent, &t.received), Progress: together(&t.points),
		})
		out.Objects = append(out.Objects, f.objects()...)
		most := max(t.samples.stride, t.sent.stride, t.received.stride, t.points.stride)
		thinned = thinned || most > 0
	}
	for _, m := range []*meter{r.down, r.up} {
		l := result.LinkRecord{Name: m.name, Rate: m.meanRate(), Limit: m.limit(), Rates: m.rates()}
		var most uint64
		if l.Events, most = m.tape.events(); most > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf(
				"%s: an event stands for up to %d packets, all but drops and marks", m.name, most))
		}
		out.Links = append(out.Links, l)
	}
	if thinned {
		out.Notes = append(out.Notes, fmt.Sprintf("samples, segments and progress are thinned to "+
			"%d, %d and %d, evenly over the run", maxSamples, maxSegments, maxPoints))
	}
	return out
}

// samples are those of the sender.
func (f *flow) samples() []result.Sample {
	if g, ok := f.guest.(notes); ok {
		f.tape.mss = notebookBytes
		g.record(f)
	}
	return together(&f.tape.samples)
}

// objects are the answers that the flow's application asked for.
func (f *flow) objects() []result.Object {
	if g, ok := f.guest.(fetch); ok {
		return g.objects(f.Name, f.Start)
	}
	var all []result.Object
	for i, q := range f.requests {
		all = append(all, result.Object{
			Flow: f.Name, Name: fmt.Sprintf("request %d", i+1), Size: int(f.App.Size),
			Start: q.asked, End: q.done, Done: true,
		})
	}
	if f.asked > len(all) {
		all = append(all, result.Object{
			Flow: f.Name, Name: fmt.Sprintf("request %d", len(all)+1), Size: int(f.App.Size),
			Start: f.run.since(f.asking),
		})
	}
	return all
}

// Title names a trial of a cell, by what is special about it.
func Title(cell *plan.Cell, trial int) string {
	words := []string{cell.Name}
	for _, s := range cell.Set {
		words = append(words, s.Key+" "+s.Value)
	}
	return strings.Join(append(words, fmt.Sprintf("trial %d", trial)), ", ")
}
