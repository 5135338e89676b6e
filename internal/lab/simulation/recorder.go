package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A record has a limited size. There are limits on the samples, segments and points of all flows
// together, with at least minRows for each flow, and on the events of a link. Longer series are
// thinned evenly, by powers of two, and the record says so: see thinner.
const (
	MaxSamples  = 1 << 16
	MaxSegments = 1 << 17
	MaxPoints   = 1 << 16
	MaxEvents   = 1 << 17
	minRows     = 1 << 9
)

// FlowRecorder records a flow.
type FlowRecorder struct {
	samples        thinner[result.Sample]
	sent, received thinner[result.Segment]
	points         thinner[result.Point]
	mss            int
	threshold      bool   // the first slow start ends at ssthresh
	unset          int    // value of ssthresh that stands for "not set"
	rows           uint64 // total number of rows so far
	ownNames       []string
	own            []float64 // current values of a script's variables
	// Rows that are reused, because a local variable would be allocated on each call.
	sample result.Sample
	point  result.Point
}

// NewFlowRecorder returns a recorder for one of n flows. threshold is set if its first slow start
// ends at ssthresh.
func NewFlowRecorder(n int, threshold bool) *FlowRecorder {
	share := func(most int) int { return max(most/n, minRows) }
	segments := thinner[result.Segment]{limit: share(MaxSegments / 2), merge: mergeSegments}
	return &FlowRecorder{
		threshold: threshold,
		samples: thinner[result.Sample]{
			limit: share(MaxSamples), merge: mergeSamples, same: sameInstant,
		},
		sent: segments, received: segments,
		points: thinner[result.Point]{
			limit: share(MaxPoints),
			merge: func(a, b *result.Point) bool { *a = *b; return true },
		},
	}
}

func (f *FlowRecorder) place() uint64 {
	f.rows++
	return f.rows
}

// Sample records a sample of the sender's TCP. fresh means that the sample has a new round-trip
// measurement.
func (f *FlowRecorder) Sample(at time.Duration, s *tcp.Info, fresh bool) {
	f.SetMSS(s.SndMSS)
	r := &f.sample
	*r = result.Sample{
		At: at, Cwnd: s.SndCwnd, Ssthresh: s.SndSsthresh, SRTT: s.RTT, RTTVar: s.RTTVar,
		MinRTT: s.MinRTT, RTO: s.RTO, Unacked: int(s.Nxt - s.Una), InFlight: s.Pipe,
		Sacked: s.Sacked, Lost: s.Lost, Retrans: s.Retrans, SendWindow: s.SndWnd,
		BytesAcked: s.BytesAcked, BytesSent: s.BytesSent,
		Retransmits: s.TotalRetrans, Timeouts: s.TotalRTO, DupAcks: s.DupAcks,
		DeliveryRate: int64(s.DeliveryRate / 8), PacingRate: int64(s.PacingRate / 8),
		State: s.CAState,
	}
	if f.unset == 0 && !f.threshold {
		f.unset = s.SndSsthresh
	}
	if r.Ssthresh == f.unset {
		r.Ssthresh = 0
	}
	if fresh {
		r.RTT = s.LatestRTT
	}
	r.Own = slices.Clone(f.own)
	f.Row(r)
}

// Own records the value of a script's variable. Each later sample contains it.
func (f *FlowRecorder) Own(name string, value float64) {
	i := slices.Index(f.ownNames, name)
	if i < 0 {
		i = len(f.ownNames)
		f.ownNames, f.own = append(f.ownNames, name), append(f.own, value)
	}
	f.own[i] = value
}

// SetMSS sets the sender's MSS.
func (f *FlowRecorder) SetMSS(bytes int) { f.mss = max(f.mss, bytes) }

// Row records a complete sample.
func (f *FlowRecorder) Row(r *result.Sample) { f.samples.add(r, f.place()) }

// mergeSamples overwrites a with the later sample b, but keeps a's RTT if b has none. It reports
// false and changes nothing if the two differ in their state, ssthresh or a loss counter.
func mergeSamples(a, b *result.Sample) bool {
	if a.State != b.State || a.Retransmits != b.Retransmits || a.Timeouts != b.Timeouts ||
		a.Ssthresh != b.Ssthresh {
		return false
	}
	rtt := cmp.Or(b.RTT, a.RTT)
	*a = *b
	a.RTT = rtt
	return true
}

// sameInstant reports whether two samples count as one: the state after an acknowledgment, and the
// state after the segments that were sent in response.
func sameInstant(a, b *result.Sample) bool { return a.At == b.At && (a.RTT == 0 || b.RTT == 0) }

// Segment records a segment at the sender.
func (f *FlowRecorder) Segment(r *result.Segment) {
	segments := &f.sent
	if r.Received {
		segments = &f.received
	}
	segments.add(r, f.place())
}

// mergeSegments merges two contiguous segments, and drops an acknowledgment that the next one
// exceeds.
func mergeSegments(a, b *result.Segment) bool {
	switch {
	case a.Received != b.Received || a.Again || b.Again || len(a.SACK)+len(b.SACK) > 0:
		return false
	case a.Received:
		if a.Len > 0 || b.Len > 0 || b.Ack <= a.Ack {
			return false
		}
		*a = *b
		return true
	case a.Seq+uint64(a.Len) != b.Seq:
		return false
	}
	seq, n := a.Seq, a.Len+b.Len
	*a = *b
	a.Seq, a.Len = seq, n
	return true
}

// Got records how many bytes the receiving application has read so far.
func (f *FlowRecorder) Got(at time.Duration, bytes uint64) {
	f.point = result.Point{At: at, Value: float64(bytes)}
	f.points.add(&f.point, f.place())
}

// Fill fills in the recorded rows, and reports whether they were thinned.
func (f *FlowRecorder) Fill(r *result.FlowRecord) (thinned bool) {
	r.MSS, r.Own = f.mss, f.ownNames
	r.Samples, r.Progress = mergeRows(&f.samples), mergeRows(&f.points)
	r.Segments = mergeRows(&f.sent, &f.received)
	return f.samples.stride+f.sent.stride+f.received.stride+f.points.stride > 0
}

// Thinned describes what a thinned record omits.
func Thinned() string {
	return fmt.Sprintf("samples, segments and progress are thinned to %d, %d and %d, evenly over "+
		"the run", MaxSamples, MaxSegments, MaxPoints)
}

// linkRecorder records a direction of the bottleneck: arrivals and departures of each flow and of
// other packets, opportunities, drops and marks.
type linkRecorder struct {
	arrivals, departures []*thinner[result.LinkEvent] // indexed by flow, from -1
	opportunities        thinner[result.LinkEvent]
	other                thinner[result.LinkEvent]
	rows                 uint64
}

func newLinkRecorder(n int) *linkRecorder {
	list := func(limit int) thinner[result.LinkEvent] {
		return thinner[result.LinkEvent]{limit: max(limit, minRows), merge: mergeEvents}
	}
	t := &linkRecorder{opportunities: list(MaxEvents / 2), other: list(MaxEvents)}
	for range n + 1 {
		arrivals, departures := list(MaxEvents/n/2), list(MaxEvents/n/2)
		t.arrivals, t.departures = append(t.arrivals, &arrivals), append(t.departures, &departures)
	}
	return t
}

func (t *linkRecorder) add(e *result.LinkEvent) {
	t.rows++
	switch e.Kind {
	case result.Arrival:
		t.arrivals[e.Flow+1].add(e, t.rows)
	case result.Departure:
		t.departures[e.Flow+1].add(e, t.rows)
	case result.Opportunity:
		t.opportunities.add(e, t.rows)
	case result.Drop, result.Marked:
		t.other.add(e, t.rows)
	}
}

// events returns all events. It also returns the largest number of packets that one event stands
// for.
func (t *linkRecorder) events() (all []result.LinkEvent, most uint64) {
	lists := append([]*thinner[result.LinkEvent]{&t.opportunities, &t.other}, t.arrivals...)
	lists = append(lists, t.departures...)
	for _, l := range lists {
		most = max(most, l.stride)
	}
	return mergeRows(lists...), most
}

// mergeEvents merges two events: it adds their bytes and keeps the longer wait. It does not merge
// drops and marks.
func mergeEvents(a, b *result.LinkEvent) bool {
	if a.Kind != b.Kind || a.Kind == result.Drop || a.Kind == result.Marked {
		return false
	}
	a.At, a.Flow, a.Queued = b.At, b.Flow, b.Queued
	a.Bytes += b.Bytes
	a.Wait = max(a.Wait, b.Wait)
	return true
}
