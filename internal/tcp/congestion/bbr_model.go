package congestion

import "github.com/tidepool-net/tidepool/internal/clock"

// bbrMax is the maximum of the last ten rounds, with a slot for each. A round without a sample does
// not discard older samples.
type bbrMax struct {
	most  float64
	slots [bbrBWRounds]float64
	round uint64 // the round of the last sample
}

func (m *bbrMax) add(round uint64, v float64) {
	if round-m.round >= bbrBWRounds {
		m.slots = [bbrBWRounds]float64{}
	} else {
		for r := m.round + 1; r <= round; r++ {
			m.slots[r%bbrBWRounds] = 0
		}
	}
	m.round = round
	slot := &m.slots[round%bbrBWRounds]
	*slot = max(*slot, v)
	m.most = 0
	for _, v := range m.slots {
		m.most = max(m.most, v)
	}
}

// bbrExtra is the largest volume that was acknowledged at once beyond the estimated bandwidth, in
// the current rounds and in the previous ones.
type bbrExtra struct {
	now, before float64
	since       uint64 // the round in which the current maximum started
}

// updateBW adds a bandwidth sample (BBRUpdateBtlBw). Application-limited samples count only if they
// raise the maximum.
func (b *bbr) updateBW(a *Ack, limited bool) {
	b.round.update(a)
	b.loss.conserve = b.loss.conserve && !b.round.start
	if rate := float64(a.Rate); rate > 0 && (rate >= b.bw.most || !limited) {
		b.bw.add(b.round.count, rate)
	}
}

func (b *bbr) aggregation(a *Ack) {
	e := &b.extra
	if b.round.start && b.round.count-e.since >= bbrExtraRounds {
		e.before, e.now, e.since = e.now, 0, b.round.count
	}
	e.now = max(e.now, b.surplus(a, b.bw.most))
}

// aggregated returns the window's extra room for aggregated acknowledgments.
func (b *bbr) aggregated() float64 {
	if !b.full.reached {
		return 0
	}
	return min(max(b.extra.now, b.extra.before), bbrExtraMost*b.bw.most)
}

// checkFull adds the bandwidth of a new round to the detection of a full pipe (BBRCheckFullPipe).
func (b *bbr) checkFull(limited bool) {
	if !b.full.reached && b.round.start && !limited {
		b.full.observe(b.bw.most)
	}
}

// checkDrain enters Drain when the pipe is full, and then ProbeBW (BBRCheckDrain).
func (b *bbr) checkDrain(a *Ack) {
	if b.state == bbrStartup && b.full.reached {
		b.enter(bbrDrain)
	}
	if b.state == bbrDrain && float64(a.InFlight) <= b.inflight(1, 0) {
		b.enterProbeBW(a.Now)
	}
}

// enterProbeBW enters ProbeBW (BBREnterProbeBW). Flows start at a random phase of the cycle, but
// not at the phase that drains the queue.
func (b *bbr) enterProbeBW(now clock.Time) {
	b.enter(bbrProbeBW)
	b.cycle.phase = bbrPhases - 1 - b.rng.IntN(bbrPhases-1)
	b.advanceCycle(now)
}

// advanceCycle starts the next phase of the cycle (BBRAdvanceCyclePhase). The rate is higher than
// the bandwidth for one phase, lower for one, and equal for six.
func (b *bbr) advanceCycle(now clock.Time) {
	b.cycle = bbrCycle{(b.cycle.phase + 1) % bbrPhases, now}
	switch b.cycle.phase {
	case 0:
		b.pacing = 1.25
	case 1:
		b.pacing = 0.75
	default:
		b.pacing = 1
	}
}

// checkCycle ends a phase after a round trip (BBRCheckCyclePhase). The faster phase goes on until
// the additional data is in flight or lost. The slower one ends early if that data is drained.
func (b *bbr) checkCycle(a *Ack) {
	if b.state != bbrProbeBW {
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

// updateRTT updates the minimum round-trip time of ten seconds, and enters ProbeRTT
// (BBRUpdateRTprop, BBRCheckProbeRTT). After ten seconds without a new minimum, ProbeRTT leaves
// almost no data in flight for 200 ms.
func (b *bbr) updateRTT(a *Ack) {
	r := &b.rtt
	if r.minAt == clock.Never {
		r.minAt = a.Now
	}
	r.expired = elapsed(a.Now, r.minAt, bbrMinRTTWindow)
	if a.RTT > 0 && (r.min == 0 || a.RTT <= r.min || r.expired) {
		r.min, r.minAt = a.RTT, a.Now
	}
	if r.expired && !r.idle && b.state != bbrProbeRTT {
		b.saveCwnd(b.cut())
		b.enter(bbrProbeRTT)
		r.done = clock.Never
	}
	if b.state == bbrProbeRTT && b.drained(a, b.minPipe()) {
		b.checkProbeRTTDone(a.Now)
	}
	r.idle = false
}

// checkProbeRTTDone leaves ProbeRTT after the 200 ms (BBRExitProbeRTT).
func (b *bbr) checkProbeRTTDone(now clock.Time) {
	if !b.rtt.over(now) {
		return
	}
	b.rtt.minAt = now
	b.restoreCwnd()
	if b.full.reached {
		b.enterProbeBW(now)
		return
	}
	b.enter(bbrStartup)
}
