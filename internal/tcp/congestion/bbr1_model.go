package congestion

import "github.com/tidepool-net/tidepool/internal/clock"

// bbr1Max is the most of the last ten rounds, a slot each. A round without a sample makes
// nothing forgotten.
type bbr1Max struct {
	most  float64
	slots [bbr1BWRounds]float64
	round uint64 // of the last sample
}

func (m *bbr1Max) add(round uint64, v float64) {
	if round-m.round >= bbr1BWRounds {
		m.slots = [bbr1BWRounds]float64{}
	} else {
		for r := m.round + 1; r <= round; r++ {
			m.slots[r%bbr1BWRounds] = 0
		}
	}
	m.round = round
	slot := &m.slots[round%bbr1BWRounds]
	*slot = max(*slot, v)
	m.most = 0
	for _, v := range m.slots {
		m.most = max(m.most, v)
	}
}

// bbr1Extra measures how much more arrives at once than the bandwidth explains, the most in
// these rounds and in those before.
type bbr1Extra struct {
	start       clock.Time
	delivered   float64
	now, before float64
	since       uint64 // the round in which now began
}

// updateBW is BBRUpdateBtlBw: what the application limited counts only if it shows more.
func (b *bbr1) updateBW(a *Ack, limited bool) {
	r, rate := &b.round, float64(a.Rate)
	if r.start = a.PriorDelivered >= r.next; r.start {
		r.next = a.TotalDelivered
		r.count++
		b.loss.conserve = false
	}
	if rate > 0 && (rate >= b.bw.most || !limited) {
		b.bw.add(r.count, rate)
	}
}

func (b *bbr1) aggregation(a *Ack) {
	e := &b.extra
	if b.round.start && b.round.count-e.since >= bbr1ExtraRounds {
		e.before, e.now, e.since = e.now, 0, b.round.count
	}
	expected := b.bw.most * a.Now.Sub(e.start).Seconds()
	if e.start == clock.Never || e.delivered <= expected {
		e.start, e.delivered, expected = a.Now, 0, 0
	}
	e.delivered += float64(a.Delivered)
	e.now = max(e.now, min(e.delivered-expected, b.cwnd))
}

// aggregated is what the window holds beyond the path for that.
func (b *bbr1) aggregated() float64 {
	if !b.full.reached {
		return 0
	}
	return min(max(b.extra.now, b.extra.before), bbr1ExtraMost*b.bw.most)
}

// checkFull is BBRCheckFullPipe: three rounds in which sending faster has delivered little
// more.
func (b *bbr1) checkFull(limited bool) {
	f := &b.full
	if f.reached || !b.round.start || limited {
		return
	}
	if b.bw.most >= f.bw*bbrFullGrowth {
		f.reset(b.bw.most)
		return
	}
	f.count++
	f.reached = f.count >= bbrFullRounds
}

// checkDrain is BBRCheckDrain.
func (b *bbr1) checkDrain(a *Ack) {
	if b.state == bbr1Startup && b.full.reached {
		b.enter(bbr1Drain)
	}
	if b.state == bbr1Drain && float64(a.InFlight) <= b.inflight(1, 0) {
		b.enterProbeBW(a.Now)
	}
}

// enterProbeBW is BBREnterProbeBW: flows begin anywhere in the cycle but where they would
// drain what they have not filled.
func (b *bbr1) enterProbeBW(now clock.Time) {
	b.enter(bbr1ProbeBW)
	b.cycle.phase = bbr1Phases - 1 - b.rng.IntN(bbr1Phases-1)
	b.advanceCycle(now)
}

// advanceCycle is BBRAdvanceCyclePhase: faster for a round trip, slower for one, and six at
// the bandwidth.
func (b *bbr1) advanceCycle(now clock.Time) {
	b.cycle = bbr1Cycle{(b.cycle.phase + 1) % bbr1Phases, now}
	switch b.cycle.phase {
	case 0:
		b.pacing = 1.25
	case 1:
		b.pacing = 0.75
	default:
		b.pacing = 1
	}
}

// checkCycle is BBRCheckCyclePhase: the faster phase lasts until what it sends more is in
// flight, or lost, the slower one no longer than until that has drained.
func (b *bbr1) checkCycle(a *Ack) {
	if b.state != bbr1ProbeBW {
		return
	}
	over := a.Now.Sub(b.cycle.since) > b.rtt.min
	switch {
	case b.pacing > 1:
		over = over && (a.Lost > 0 || float64(a.Prior) >= b.inflight(b.pacing, 0))
	case b.pacing < 1:
		over = over || float64(a.Prior) <= b.inflight(1, 0)
	}
	if over {
		b.advanceCycle(a.Now)
	}
}

// updateRTT is BBRUpdateRTprop and BBRCheckProbeRTT: the minimum of ten seconds, and after
// as many without a new one, 200 ms with next to nothing in flight.
func (b *bbr1) updateRTT(a *Ack) {
	r := &b.rtt
	if r.minAt == clock.Never {
		r.minAt = a.Now
	}
	r.expired = elapsed(a.Now, r.minAt, bbr1MinRTTEvery)
	if a.RTT > 0 && (r.min == 0 || a.RTT <= r.min || r.expired) {
		r.min, r.minAt = a.RTT, a.Now
	}
	if r.expired && !r.idle && b.state != bbr1ProbeRTT {
		b.saveCwnd()
		b.enter(bbr1ProbeRTT)
		r.done = clock.Never
	}
	if b.state == bbr1ProbeRTT {
		b.handleProbeRTT(a)
	}
	r.idle = false
}

// handleProbeRTT is BBRHandleProbeRTT: the low rates of this state say nothing of the path.
func (b *bbr1) handleProbeRTT(a *Ack) {
	r := &b.rtt
	b.bubble = a.TotalDelivered + uint64(a.InFlight) + 1
	if r.done == clock.Never {
		if float64(a.InFlight) <= b.minPipe() {
			r.done, r.roundDone = a.Now.Add(bbrProbeRTTTime), false
			b.round.next = a.TotalDelivered
		}
		return
	}
	r.roundDone = r.roundDone || b.round.start
	if r.roundDone {
		b.checkProbeRTTDone(a.Now)
	}
}

// checkProbeRTTDone is BBRExitProbeRTT, once the time is over.
func (b *bbr1) checkProbeRTTDone(now clock.Time) {
	r := &b.rtt
	if r.done == clock.Never || now <= r.done {
		return
	}
	r.minAt = now
	b.restoreCwnd()
	if b.full.reached {
		b.enterProbeBW(now)
		return
	}
	b.enter(bbr1Startup)
}
