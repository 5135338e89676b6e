package congestion

// bbr3Episode is what BBR keeps of loss, draft-ietf-ccwg-bbr §5.5.10 and §5.5.11.
type bbr3Episode struct {
	open bool // loss recovery is in progress
	fast bool // and it is fast recovery
	// A round of losses ends when what was sent after its first arrives.
	roundDelivered uint64
	roundStart     bool
	lossInRound    bool
	gaps           int    // runs of lost segments in this round
	lostEnd        uint64 // where the last one ends
	undo           bbr3Undo
}

// bbr3Undo is the model before losses that may turn out to be none.
type bbr3Undo struct {
	state                                bbr3State // to return to
	bwShort, inflightShort, inflightLong float64
}

// tooHigh is IsInflightTooHigh: too much of what was in flight when a segment was sent is lost.
func (b *bbr3) tooHigh(sent, lost float64) bool {
	return lost > sent*bbr3LossThresh || lost > 0 && !b.cfg.SACK
}

// noteLoss is NoteLoss.
func (b *bbr3) noteLoss(delivered uint64) {
	e := &b.episode
	if e.lossInRound {
		return
	}
	e.roundDelivered = delivered
	e.lossInRound = true
	b.saveCwnd(b.cut())
	m := &b.model
	e.undo = bbr3Undo{bbr3NoState, m.bwShort, m.inflightShort, m.inflightLong}
}

// OnSegmentLost is HandleLostPacket, §5.5.10.2.
func (b *bbr3) OnSegmentLost(l *LostSegment) {
	e := &b.episode
	b.noteLoss(l.TotalDelivered)
	if l.Seq != e.lostEnd {
		e.gaps++
	}
	e.lostEnd = l.Seq + uint64(l.Size)
	sent, lost := float64(l.TxInFlight), float64(l.LostSince)
	if !b.probe.sample || !b.tooHigh(sent, lost) {
		return
	}
	// InflightAtLoss: how much could be in flight before the losses became too many.
	before, size := sent-float64(l.Size), float64(l.Size)
	prefix := (float64(bbr3LossThresh*before) - (lost - size)) / (1 - bbr3LossThresh)
	b.foundTooHigh(l, before+prefix)
}

// foundTooHigh is HandleInflightTooHigh: once a probe.
func (b *bbr3) foundTooHigh(l *LostSegment, inflight float64) {
	b.probe.tooHigh, b.probe.sample = true, false
	if !l.AppLimited {
		b.model.inflightLong = max(inflight, bbr3Beta*b.target())
	}
	if b.state == bbr3Up {
		b.episode.undo.state = bbr3Up
		b.startDown(&Ack{Now: l.Now, TotalDelivered: l.TotalDelivered})
	}
}

// OnLoss begins an episode, §5.6.4.4. The model has heard of each segment; a
// time-out leaves room for one segment more than what is still in flight.
func (b *bbr3) OnLoss(l *Loss) {
	e := &b.episode
	switch l.Kind {
	case Echo:
		e.lossInRound = true // RFC 3168 §6.1.2: a mark weighs what a loss does
		return
	case Detected:
		b.saveCwnd(b.cut())
		e.open, e.fast = true, true
	case Timeout, TimeoutAgain:
		b.saveCwnd(b.cut())
		e.open, e.fast = true, false
		b.cwnd = float64(l.InFlight + l.MSS)
	}
	e.lossInRound = true
}

// OnExit ends it: the window is what it was, as far as the model bounds it at the
// next acknowledgment.
func (b *bbr3) OnExit(e *Exit) {
	b.restoreCwnd()
	b.episode.open, b.episode.fast = false, false
	if e.Spurious {
		b.takeBack()
	}
}

// takeBack is HandleSpuriousLossDetection, §5.5.11.2.
func (b *bbr3) takeBack() {
	e, m := &b.episode, &b.model
	e.lossInRound = false
	b.full.reset(0)
	m.bwShort = max(m.bwShort, e.undo.bwShort)
	m.inflightShort = max(m.inflightShort, e.undo.inflightShort)
	m.inflightLong = max(m.inflightLong, e.undo.inflightLong)
	switch {
	case e.undo.state == bbr3Startup && b.state != bbr3Startup:
		b.full.reached = false
		if b.state != bbr3ProbeRTT {
			b.enter(bbr3Startup)
		}
	case e.undo.state == bbr3Up && b.state != bbr3Up && b.state != bbr3ProbeRTT:
		b.startRefill(b.round.next)
	}
	e.undo.state = bbr3NoState
}
