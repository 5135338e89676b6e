package congestion

import "math"

// bbr3Model is BBR's model of the path, draft-ietf-ccwg-bbr §3.4. Limits that are not set are
// infinite.
type bbr3Model struct {
	maxBW float64    // bytes per second: the maximum of the last ProbeBW cycle and this one
	cycle [2]float64 // the maximum of the last cycle, and of this one
	bw    float64    // maxBW within the short-term limit
	// Short-term limits follow losses outside of probes, and last until the next probe.
	bwShort, inflightShort float64
	// inflightLong is the limit that probing found.
	inflightLong float64
	// The maximum delivered in this round trip, as a rate and as a volume.
	bwLatest, inflightLatest float64
}

// bbr3Extra is the largest volume that was acknowledged at once beyond the estimated bandwidth,
// §5.5.9, in each of the last rounds.
type bbr3Extra struct {
	rounds [bbr3ExtraRounds]float64
	round  uint64
}

func (e *bbr3Extra) most() float64 {
	var m float64
	for _, v := range e.rounds {
		m = max(m, v)
	}
	return m
}

// latest updates the maximum delivered in this round trip (UpdateLatestDeliverySignals, §5.5.10.3).
func (b *bbr3) latest(a *Ack) {
	e := &b.episode
	e.roundStart = false
	b.model.bwLatest = max(b.model.bwLatest, float64(a.Rate))
	b.model.inflightLatest = max(b.model.inflightLatest, float64(a.TotalDelivered-a.PriorDelivered))
	if a.PriorDelivered >= e.roundDelivered {
		e.roundDelivered = a.TotalDelivered
		e.roundStart = true
	}
}

// advanceLatest starts these maxima again with a new round (AdvanceLatestDeliverySignals).
func (b *bbr3) advanceLatest(a *Ack) {
	if b.episode.roundStart {
		b.model.bwLatest = float64(a.Rate)
		b.model.inflightLatest = float64(a.TotalDelivered - a.PriorDelivered)
	}
}

// congestion updates the bandwidth, and the short-term limits once per round with losses
// (UpdateCongestionSignals).
func (b *bbr3) congestion(a *Ack, limited bool) {
	b.updateMaxBW(a, limited)
	if !b.episode.roundStart {
		return
	}
	if b.episode.lossInRound && !b.probing() {
		b.lowerBounds()
	}
	b.episode.lossInRound = false
}

// updateMaxBW adds a bandwidth sample (UpdateMaxBw, §5.5.5). Application-limited samples count only
// if they raise the maximum.
func (b *bbr3) updateMaxBW(a *Ack, limited bool) {
	b.round.update(a)
	if b.round.start {
		b.probe.roundsSince++
	}
	m, rate := &b.model, float64(a.Rate)
	if rate > 0 && (rate >= m.maxBW || !limited) {
		m.cycle[1] = max(m.cycle[1], rate)
		m.maxBW = max(m.cycle[0], m.cycle[1])
	}
}

// advanceFilter starts a new cycle of the bandwidth filter (AdvanceMaxBwFilter, §5.5.6). It
// discards the older of the two cycles, unless the newer one has no sample.
func (m *bbr3Model) advanceFilter() {
	if m.cycle[1] == 0 {
		return
	}
	m.cycle[0], m.cycle[1] = m.cycle[1], 0
	m.maxBW = m.cycle[0]
}

// lowerBounds moves the short-term limits towards what this round delivered
// (AdaptLowerBoundsFromCongestion, §5.5.10.3). The caller calls it once per round with losses.
func (b *bbr3) lowerBounds() {
	m := &b.model
	if math.IsInf(m.bwShort, 1) {
		m.bwShort = m.maxBW
	}
	if math.IsInf(m.inflightShort, 1) {
		m.inflightShort = b.cwnd
	}
	m.bwShort = max(m.bwLatest, bbr3Beta*m.bwShort)
	m.inflightShort = max(m.inflightLatest, bbr3Beta*m.inflightShort)
}

// resetSignals clears the delivery and loss signals of the round (ResetCongestionSignals).
func (b *bbr3) resetSignals() {
	b.episode.lossInRound = false
	b.model.bwLatest, b.model.inflightLatest = 0, 0
}

// resetShortTerm removes the short-term limits (ResetShortTermModel).
func (m *bbr3Model) resetShortTerm() { m.bwShort, m.inflightShort = math.Inf(1), math.Inf(1) }

// aggregation records how much more was acknowledged at once than the bandwidth explains
// (UpdateACKAggregation, §5.5.9).
func (b *bbr3) aggregation(a *Ack) {
	e := &b.extra
	extra := b.surplus(a, b.model.bw)
	switch {
	case !b.full.reached:
		// In Startup only this round counts.
		if e.round != b.round.count {
			e.rounds = [bbr3ExtraRounds]float64{}
		}
	case b.round.count-e.round >= bbr3ExtraRounds:
		e.rounds = [bbr3ExtraRounds]float64{}
	default:
		for ; e.round != b.round.count; e.round++ {
			e.rounds[(e.round+1)%bbr3ExtraRounds] = 0
		}
	}
	e.round = b.round.count
	slot := &e.rounds[e.round%bbr3ExtraRounds]
	*slot = max(*slot, extra)
}
