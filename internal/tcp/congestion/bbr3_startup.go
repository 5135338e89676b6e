package congestion

// checkFull adds the bandwidth of a new round to the detection of a full pipe (CheckFullBWReached,
// §5.3.1.2). It ignores a round whose first acknowledgment has no sample.
func (b *bbr3) checkFull(a *Ack, limited bool) {
	if !b.full.now && b.round.start && !limited && a.Rate != 0 {
		b.full.observe(float64(a.Rate))
	}
}

// checkStartup enters Drain when the pipe is full (CheckStartupDone, §5.3.1).
func (b *bbr3) checkStartup(a *Ack) {
	b.checkStartupLoss(a)
	if b.state == bbr3Startup && b.full.reached {
		b.enter(bbr3Drain)
		b.drainRound = b.round.count
	}
}

// checkStartupLoss assumes that the path is full after a full round of fast recovery with too much
// loss in several places (CheckStartupHighLoss, §5.3.1.3). Without SACK only one loss per round is
// visible, so one place is enough.
func (b *bbr3) checkStartupLoss(a *Ack) {
	e := &b.episode
	if b.state == bbr3Startup && !b.full.reached && e.fast {
		tooHigh := e.roundStart && e.gaps >= bbr3StartupLosses &&
			b.tooHigh(float64(a.TxInFlight), float64(a.LostSince))
		if tooHigh || !b.cfg.SACK && a.LostSince > 0 {
			e.undo.state = bbr3Startup
			b.full.reached = true
			b.model.inflightLong = max(b.bdp(b.model.maxBW, 1), b.model.inflightLatest)
		}
	}
	if e.roundStart {
		e.gaps = 0
	}
}

// checkDrain enters Down when the queue is drained, or after three rounds (CheckDrainDone, §5.3.2).
func (b *bbr3) checkDrain(a *Ack) {
	if b.state == bbr3Drain && (float64(a.InFlight) <= b.budget(b.bdp(b.model.bw, 1)) ||
		b.round.count > b.drainRound+3) {
		b.startDown(a)
	}
}
