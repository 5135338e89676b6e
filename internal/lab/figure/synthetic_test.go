package figure

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// synthetic simulates Reno senders over one drop-tail queue, packet by packet. The model is crude,
// but its record contains everything that figures show.
type synthetic struct {
	rec     *result.Record
	rng     *rand.Rand
	queue   eventQueue
	order   int
	now     time.Duration
	free    time.Duration // when the link becomes idle
	held    int           // bytes in the queue
	service time.Duration // service time of a packet
	flows   []*renoSender
}

type renoSender struct {
	s                *synthetic
	i                int
	cwnd, ssthresh   float64
	next, una        int // numbers of segments
	got              map[int]bool
	lost, again      map[int]bool
	dups             int
	recover          int
	recovering       bool
	retrans, expired uint64
	dupAcks          uint64
	srtt             time.Duration
	delivered        float64
}

const (
	synthMSS  = 1448
	synthWire = 1500
	synthRTT  = 40 * time.Millisecond
)

type queuedEvent struct {
	at    time.Duration
	order int
	run   func()
}

type eventQueue []queuedEvent

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(queuedEvent)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// synthesize records flows with these labels. Later flows begin later.
func synthesize(duration time.Duration, mbps float64, queueBytes int, labels ...string) *result.Record {
	s := &synthetic{
		rng:     rand.New(rand.NewPCG(5, 6)),
		service: time.Duration(synthWire * 8 / mbps * 1e3),
		rec: &result.Record{
			Title: "synthetic", Duration: duration, RTT: synthRTT, Rate: mbps * 1e6,
			Links: []result.LinkRecord{{Name: "down", Rate: mbps * 1e6, Limit: queueBytes}},
		},
	}
	for i, label := range labels {
		start := time.Duration(i) * duration / 8
		s.rec.Flows = append(s.rec.Flows, result.FlowRecord{
			Name: string(rune('a' + i)), Label: label, RTT: synthRTT, MSS: synthMSS, Start: start,
		})
		f := &renoSender{
			s: s, i: i, cwnd: 10, ssthresh: 1e9,
			got: map[int]bool{}, lost: map[int]bool{}, again: map[int]bool{},
		}
		s.flows = append(s.flows, f)
		s.at(start, f.send)
	}
	for s.queue.Len() > 0 && s.queue[0].at <= duration {
		e := heap.Pop(&s.queue).(queuedEvent)
		s.now = e.at
		e.run()
	}
	return s.rec
}

func (s *synthetic) at(at time.Duration, run func()) {
	s.order++
	heap.Push(&s.queue, queuedEvent{at, s.order, run})
}

func (s *synthetic) event(e result.LinkEvent) {
	e.At, e.Bytes, e.Queued = s.now, synthWire, s.held
	s.rec.Links[0].Events = append(s.rec.Links[0].Events, e)
}

// pass sends a packet over the link, unless the queue is full. It calls arrived half a round trip
// after the packet has left the link.
func (s *synthetic) pass(flow int, arrived func()) {
	if s.held+synthWire > s.rec.Links[0].Limit {
		s.event(result.LinkEvent{Kind: result.Drop, Flow: flow, Why: "the queue is full"})
		return
	}
	s.held += synthWire
	s.event(result.LinkEvent{Kind: result.Arrival, Flow: flow})
	s.free = max(s.free, s.now) + s.service
	wait := s.free - s.now - s.service
	s.at(s.free, func() {
		s.held -= synthWire
		s.event(result.LinkEvent{Kind: result.Departure, Flow: flow, Wait: wait})
		s.at(s.now+synthRTT/2, arrived)
	})
}

func (f *renoSender) rec() *result.FlowRecord { return &f.s.rec.Flows[f.i] }

func (f *renoSender) inFlight() int { return f.next - f.una - len(f.got) - len(f.lost) }

func (f *renoSender) send() {
	for seg := range f.lost {
		if f.inFlight() >= int(f.cwnd) {
			break
		}
		delete(f.lost, seg)
		f.retrans++
		f.transmit(seg, true)
	}
	for f.inFlight() < int(f.cwnd) {
		f.next++
		f.transmit(f.next-1, false)
	}
}

func (f *renoSender) transmit(seg int, again bool) {
	f.rec().Segments = append(f.rec().Segments, result.Segment{
		At: f.s.now, Seq: uint64(seg) * synthMSS, Len: synthMSS, Again: again,
	})
	sent := f.s.now
	f.s.at(sent+time.Duration(f.s.rng.Int64N(int64(f.s.service))), func() {
		f.s.pass(f.i, func() { f.arrive(seg, sent, again) })
	})
}

func (f *renoSender) arrive(seg int, sent time.Duration, again bool) {
	f.delivered += synthMSS
	f.rec().Progress = append(f.rec().Progress, result.Point{At: f.s.now, Value: f.delivered})
	f.s.at(f.s.now+synthRTT/2, func() { f.acked(seg, f.s.now-sent, again) })
}

func (f *renoSender) acked(seg int, rtt time.Duration, again bool) {
	ack := result.Segment{At: f.s.now, Received: true, Window: 1 << 20}
	if seg >= f.una {
		f.got[seg] = true
	}
	if seg == f.una {
		for f.got[f.una] {
			delete(f.got, f.una)
			f.una++
			f.grow()
		}
		f.dups = 0
		f.recovering = f.recovering && f.una < f.recover
	} else {
		f.dups++
		f.dupAcks++
		ack.SACK = [][2]uint64{{uint64(seg) * synthMSS, uint64(seg+1) * synthMSS}}
		f.suspect(seg)
	}
	ack.Ack = uint64(f.una) * synthMSS
	f.rec().Segments = append(f.rec().Segments, ack)
	if again {
		rtt = 0
	} else if f.srtt += (rtt - f.srtt) / 8; f.srtt < synthRTT {
		f.srtt = rtt
	}
	f.sample(rtt)
	f.send()
}

// suspect marks a segment as lost once a segment three positions later has arrived.
func (f *renoSender) suspect(seg int) {
	for i := f.una; i <= seg-3; i++ {
		if !f.got[i] && !f.again[i] {
			f.again[i], f.lost[i] = true, true
		}
	}
	if len(f.lost) == 0 || f.recovering {
		return
	}
	f.recovering, f.recover = true, f.next
	f.ssthresh = max(f.cwnd/2, 2)
	f.cwnd = f.ssthresh
}

func (f *renoSender) grow() {
	switch {
	case f.recovering:
	case f.cwnd < f.ssthresh:
		f.cwnd++
	default:
		f.cwnd += 1 / f.cwnd
	}
}

func (f *renoSender) sample(rtt time.Duration) {
	state := "open"
	if f.recovering {
		state = "recovery"
	}
	s := result.Sample{
		At: f.s.now, Cwnd: int(f.cwnd * synthMSS), RTT: rtt, SRTT: f.srtt, MinRTT: synthRTT,
		Unacked: (f.next - f.una) * synthMSS, InFlight: f.inFlight() * synthMSS, SendWindow: 1 << 20,
		Retransmits: f.retrans, Timeouts: f.expired, DupAcks: f.dupAcks, State: state,
	}
	if f.ssthresh < 1e9 {
		s.Ssthresh = int(f.ssthresh * synthMSS)
	}
	f.rec().Samples = append(f.rec().Samples, s)
}
