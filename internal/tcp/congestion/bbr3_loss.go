package congestion

// bbr3Episode is the state of a loss episode, draft-ietf-ccwg-bbr §5.5.10 and §5.5.11.
type bbr3Episode struct {
	open bool // loss recovery is in progress
	fast bool // the recovery is fast recovery
	// A round with losses ends when data that was sent after the first loss is acknowledged.
	roundDelivered uint64
	roundStart     bool
	lossInRound    bool
	gaps           int    // runs of lost segments in this round
	lostEnd        uint64 // the end of the last lost segment
	undo           bbr3Undo
}

// bbr3Undo is the model before losses that may prove to be spurious.
type bbr3Undo struct {
	state                                bbr3State // the state to return to
	bwShort, inflightShort, inflightLong float64
}

// tooHigh reports whether too large a share of the data in flight was lost (IsInflightTooHigh).
func (b *bbr3) tooHigh(sent, lost float64) bool {
	return lost > sent*bbr3LossThresh || lost > 0 && !b.cfg.SACK
}

// noteLoss saves the window and the model at the first loss of a round (NoteLoss).
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

// OnSegmentLost counts a lost segment, and limits the model if a probe has lost too much
// (HandleLostPacket, §5.5.10.2).
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
	// InflightAtLoss: the data in flight at which the losses exceeded the threshold.
	before, size := sent-float64(l.Size), float64(l.Size)
	prefix := (float64(bbr3LossThresh*before) - (lost - size)) / (1 - bbr3LossThresh)
	b.foundTooHigh(l, before+prefix)
}

// foundTooHigh limits the model and ends the probe (HandleInflightTooHigh). It acts once per probe.
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

// OnLoss starts an episode, §5.6.4.4. OnSegmentLost has already updated the model. After a timeout
// the window is the data in flight and one more segment.
func (b *bbr3) OnLoss(l *Loss) {
	e := &b.episode
	switch l.Kind {
	case Echo:
		e.lossInRound = true // RFC 3168 §6.1.2: a mark counts as a loss
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

// OnExit ends an episode and restores the window. The model limits it at the next acknowledgment.
func (b *bbr3) OnExit(e *Exit) {
	b.restoreCwnd()
	b.episode.open, b.episode.fast = false, false
	if e.Spurious {
		b.undoModel()
	}
}

// undoModel restores the model after spurious losses (HandleSpuriousLossDetection, §5.5.11.2).
func (b *bbr3) undoModel() {
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
