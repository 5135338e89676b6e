package congestion

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

const simMSS = 1000

// bottleneck is a link with a drop-tail queue shared by flows, in virtual time. The acknowledgment
// of a packet arrives one propagation delay after the packet has left the link. The sender detects
// a dropped packet when its acknowledgment would have arrived.
type bottleneck struct {
	now    clock.Time
	rate   float64 // bytes per second
	buffer int     // queue limit in bytes
	loss   float64 // probability for each packet
	rng    *rand.Rand
	free   clock.Time // when the link is free
	events simEvents
	flows  []*flow
}

// flow is a sender with endless data.
type flow struct {
	c          Controller
	rtt        time.Duration // propagation delay
	start      clock.Time
	next       clock.Time // paced departure
	sent       uint64     // packets
	acked      uint64     // bytes
	ackedAt    clock.Time
	firstSent  clock.Time
	lost       int
	toldLost   int
	inFlight   int
	recover    uint64
	recovering bool
	srtt, min  time.Duration
	roundEnd   uint64
	used, last bool
	appLimited uint64
	budget     func(now clock.Time) bool // whether the application has data to send
	losses     int                       // episodes
	drops      int
	waiting    bool // for pacing
	watch      func(a *Ack)
}

type simPacket struct {
	num                       uint64
	flow                      *flow
	sentAt, ackedAt, firstAt  clock.Time
	acked                     uint64
	pipe, lost                int
	dropped, pace, appLimited bool
	at                        clock.Time
	order                     int
}

type simEvents []*simPacket

func (h simEvents) Len() int { return len(h) }
func (h simEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h simEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *simEvents) Push(x any)   { *h = append(*h, x.(*simPacket)) }
func (h *simEvents) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newBottleneck(rate float64, buffer int) *bottleneck {
	return &bottleneck{
		now: clock.Time(time.Hour), rate: rate, buffer: buffer, rng: rand.New(rand.NewPCG(3, 1)),
	}
}

// add adds a flow that starts after the given time.
func (b *bottleneck) add(t *testing.T, name string, rtt, after time.Duration) *flow {
	t.Helper()
	c, err := New(name, Config{
		MSS: simMSS, InitialWindow: 10 * simMSS, MaxWindow: 1 << 30, SACK: true, Seed: uint64(len(b.flows)),
	})
	require.NoError(t, err)
	f := &flow{c: c, rtt: rtt, start: b.now.Add(after), budget: func(clock.Time) bool { return true }}
	b.flows = append(b.flows, f)
	b.push(&simPacket{flow: f, pace: true, at: f.start})
	return f
}

func (b *bottleneck) push(p *simPacket) {
	p.order = len(b.events) + int(p.num)
	heap.Push(&b.events, p)
}

// run advances the clock by d.
func (b *bottleneck) run(d time.Duration) {
	end := b.now.Add(d)
	for len(b.events) > 0 && b.events[0].at <= end {
		p := heap.Pop(&b.events).(*simPacket)
		b.now = max(b.now, p.at)
		switch {
		case p.pace:
			p.flow.waiting = false
		case p.dropped:
			p.flow.miss(b.now, p)
		default:
			p.flow.ack(b.now, p)
		}
		b.send(p.flow)
	}
	b.now = end
}

// queue returns the number of bytes in the queue.
func (b *bottleneck) queue() int {
	return int(max(b.free.Sub(b.now).Seconds(), 0) * b.rate)
}

func (b *bottleneck) send(f *flow) {
	for {
		if !f.budget(b.now) {
			f.appLimited = f.acked + uint64(f.inFlight) + 1
			b.wait(f, b.now.Add(time.Millisecond))
			return
		}
		if f.inFlight+simMSS > f.c.Cwnd() {
			f.used = true
			return
		}
		rate := f.c.PacingRate()
		if rate > 0 {
			if f.next > b.now {
				b.wait(f, f.next)
				return
			}
			f.next = max(f.next, b.now.Add(-time.Millisecond)).
				Add(time.Duration(simMSS * 1e9 / rate))
		}
		b.transmit(f)
	}
}

func (b *bottleneck) wait(f *flow, at clock.Time) {
	if !f.waiting {
		f.waiting = true
		b.push(&simPacket{flow: f, pace: true, at: at})
	}
}

func (b *bottleneck) transmit(f *flow) {
	if f.inFlight == 0 {
		if r, ok := f.c.(Restarter); ok && f.sent > 0 {
			r.OnRestart(&Restart{Now: b.now, Idle: b.now.Sub(f.ackedAt), RTO: time.Second, MSS: simMSS})
		}
		f.firstSent, f.ackedAt = b.now, b.now
	}
	f.inFlight += simMSS
	f.sent++
	p := &simPacket{
		num: f.sent, flow: f, sentAt: b.now, ackedAt: f.ackedAt, firstAt: f.firstSent,
		acked: f.acked, pipe: f.inFlight, lost: f.lost, appLimited: f.appLimited > f.acked,
	}
	leave := max(b.free, b.now)
	if b.queue()+simMSS > b.buffer || b.rng.Float64() < b.loss {
		p.dropped = true
		f.drops++
	} else {
		leave = leave.Add(time.Duration(simMSS / b.rate * 1e9))
		b.free = leave
	}
	p.at = leave.Add(f.rtt)
	b.push(p)
}

func (f *flow) miss(now clock.Time, p *simPacket) {
	prior := f.inFlight
	f.inFlight -= simMSS
	f.lost += simMSS
	if w, ok := f.c.(LossWatcher); ok {
		w.OnSegmentLost(&LostSegment{
			Now: now, Seq: p.num * simMSS, Size: simMSS, TxInFlight: p.pipe,
			LostSince: f.lost - p.lost, AppLimited: p.appLimited, TotalDelivered: f.acked,
		})
	}
	if !f.recovering && p.num > f.recover {
		f.recovering, f.recover = true, f.sent
		f.losses++
		f.c.OnLoss(&Loss{
			Now: now, Kind: Detected, FlightSize: prior, InFlight: f.inFlight, MSS: simMSS,
		})
	}
}

func (f *flow) ack(now clock.Time, p *simPacket) {
	prior := f.inFlight
	f.inFlight -= simMSS
	f.acked += simMSS
	f.ackedAt, f.firstSent = now, p.sentAt
	rtt := now.Sub(p.sentAt)
	if f.min == 0 || rtt < f.min {
		f.min = rtt
	}
	if f.srtt == 0 {
		f.srtt = rtt
	}
	f.srtt += (rtt - f.srtt) / 8
	a := &Ack{
		Now: now, Delivered: simMSS, Prior: prior, InFlight: f.inFlight, MSS: simMSS,
		Lost: f.lost - f.toldLost, RTT: rtt, MinRTT: f.min, SRTT: f.srtt,
		TotalDelivered: f.acked, AppLimited: p.appLimited,
		PriorDelivered: p.acked, TxInFlight: p.pipe, LostSince: f.lost - p.lost,
		CwndLimited: f.used || f.last || 2*f.inFlight > f.c.Cwnd() && f.c.Cwnd() < f.c.Ssthresh(),
	}
	f.toldLost = f.lost
	if d := max(now.Sub(p.ackedAt), p.sentAt.Sub(p.firstAt)); d >= f.min {
		a.Rate = int64(float64(f.acked-p.acked) / d.Seconds())
	}
	if f.recovering && p.num > f.recover {
		f.recovering = false
		f.c.OnExit(&Exit{Now: now, InFlight: f.inFlight, MSS: simMSS})
	}
	a.Recovering = f.recovering
	if p.num >= f.roundEnd {
		a.Round, f.roundEnd = true, f.sent
		f.last, f.used = f.used, false
	}
	f.c.OnAck(a)
	if f.watch != nil {
		f.watch(a)
	}
}

// goodput runs for d and returns each flow's bytes per second.
func (b *bottleneck) goodput(d time.Duration) []float64 {
	before := make([]uint64, len(b.flows))
	for i, f := range b.flows {
		before[i] = f.acked
	}
	b.run(d)
	out := make([]float64, len(b.flows))
	for i, f := range b.flows {
		out[i] = float64(f.acked-before[i]) / d.Seconds()
	}
	return out
}

// fairness is Jain's index: 1 means equal shares.
func fairness(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}
