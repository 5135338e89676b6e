package congestion

// bbrFull tells when the pipe is full, draft-ietf-ccwg-bbr §5.3.1.2: when three
// rounds of sending faster have delivered little more.
type bbrFull struct {
	reached bool // it was, once
	now     bool // it is, since the search last began
	bw      float64
	count   int
}

// reset begins a search, from a bandwidth.
func (f *bbrFull) reset(bw float64) { f.bw, f.count, f.now = bw, 0, false }

// checkFull is CheckFullBWReached. A round whose first acknowledgment gives no
// sample says nothing.
func (b *bbr) checkFull(a *Ack, limited bool) {
	f, rate := &b.full, float64(a.Rate)
	if f.now || !b.round.start || limited || a.Rate == 0 {
		return
	}
	if rate >= f.bw*bbrFullGrowth {
		f.reset(rate)
		return
	}
	f.count++
	if f.now = f.count >= bbrFullRounds; f.now {
		f.reached = true
	}
}

// checkStartup is CheckStartupDone, §5.3.1.
func (b *bbr) checkStartup(a *Ack) {
	b.checkStartupLoss(a)
	if b.state == bbrStartup && b.full.reached {
		b.enter(bbrDrain)
		b.drainRound = b.round.count
	}
}

// checkStartupLoss is CheckStartupHighLoss, §5.3.1.3: after a full round of fast
// recovery with too much loss, in several places, the path is taken for full.
// Without SACK only one loss a round shows, so that any counts.
func (b *bbr) checkStartupLoss(a *Ack) {
	e := &b.episode
	if b.state == bbrStartup && !b.full.reached && e.fast {
		tooHigh := e.roundStart && e.gaps >= bbrStartupLosses &&
			b.tooHigh(float64(a.TxInFlight), float64(a.LostSince))
		if tooHigh || !b.cfg.SACK && a.LostSince > 0 {
			e.undo.state = bbrStartup
			b.full.reached = true
			b.model.inflightLong = max(b.bdp(b.model.maxBW, 1), b.model.inflightLatest)
		}
	}
	if e.roundStart {
		e.gaps = 0
	}
}

// checkDrain is CheckDrainDone, §5.3.2.
func (b *bbr) checkDrain(a *Ack) {
	if b.state == bbrDrain && (float64(a.InFlight) <= b.budget(b.bdp(b.model.bw, 1)) ||
		b.round.count > b.drainRound+3) {
		b.startDown(a)
	}
}
