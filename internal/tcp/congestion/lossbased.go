package congestion

// lossBased implements the common part of the loss-based algorithms: RFC 5681 with byte counting,
// and the undoing of a reduction.
type lossBased struct {
	cwnd, ssthresh int
	initial, max   int
	// acked counts bytes towards the next segment of growth in congestion avoidance.
	acked  int
	before undo
}

// undo is the window before a loss episode.
type undo struct {
	open           bool // the episode is in progress
	valid          bool // the saved window is still usable
	cwnd, ssthresh int
}

func newLossBased(cfg *Config) lossBased {
	return lossBased{
		cwnd: cfg.FirstCwnd(), ssthresh: cfg.FirstSsthresh(),
		initial: min(cfg.InitialWindow, cfg.MaxWindow), max: cfg.MaxWindow,
	}
}

func (w *lossBased) Cwnd() int         { return w.cwnd }
func (w *lossBased) Ssthresh() int     { return w.ssthresh }
func (w *lossBased) PacingRate() int64 { return 0 }

// OnAck grows the window by slow start or congestion avoidance (RFC 5681 §3.1).
func (w *lossBased) OnAck(a *Ack) {
	if a.Recovering || !a.CwndLimited {
		return
	}
	w.avoid(w.slowStart(a.Delivered), a.MSS)
}

// slowStart grows the window by n delivered bytes, up to ssthresh, and returns the bytes that are
// left.
func (w *lossBased) slowStart(n int) int {
	// This is RFC 3465 §2.2 without its limit L: one acknowledgment can stand for a train, and with
	// L the growth would depend on how segments were merged.
	grow := max(0, min(n, w.ssthresh-w.cwnd))
	w.cwnd = min(w.cwnd+grow, w.max)
	return n - grow
}

// avoid grows the window by one segment per window of delivered data (RFC 5681 §3.1 (3)).
func (w *lossBased) avoid(n, mss int) {
	for w.acked += n; w.acked >= w.cwnd; {
		w.acked -= w.cwnd
		w.cwnd = min(w.cwnd+mss, w.max)
	}
}

// reduce sets ssthresh to half the data in flight (RFC 5681 §3.1 (4)). That is less than half the
// window if the application did not use all of it. reduce sets the window to ssthresh, or after a
// timeout to the loss window of one segment.
func (w *lossBased) reduce(l *Loss) {
	w.save(l.Kind)
	if l.Kind != TimeoutAgain {
		w.ssthresh = max(min(l.FlightSize, w.cwnd)/2, 2*l.MSS)
	}
	w.acked = 0
	switch l.Kind {
	case Timeout, TimeoutAgain:
		w.cwnd = l.MSS
	case Detected, Echo:
		// RFC 3168 §6.1.2: a mark counts as a loss.
		w.cwnd = min(w.cwnd, w.ssthresh)
	}
}

// save stores the window at the first loss of an episode.
func (w *lossBased) save(k Kind) {
	if k == Echo {
		w.before = undo{} // congestion is certain: the old window must not return
		return
	}
	if !w.before.open {
		w.before = undo{open: true, valid: true, cwnd: w.cwnd, ssthresh: w.ssthresh}
	}
}

// OnExit ends an episode, and undoes its reduction if it was spurious.
func (w *lossBased) OnExit(e *Exit) {
	w.acked = 0
	if e.Spurious && w.before.valid {
		w.cwnd = max(w.cwnd, w.before.cwnd)
		w.ssthresh = max(w.ssthresh, w.before.ssthresh)
		w.before.valid = false
	}
	if e.Ceiling > 0 && !e.Spurious {
		w.cwnd = min(w.cwnd, e.Ceiling)
	}
	w.before.open = false
}

// OnRestart reduces the window after an idle time longer than the timeout, because no
// acknowledgments clock it out (RFC 5681 §4.1), or if it was long unused (RFC 7661 §4.4.3). The
// threshold becomes at least three quarters of the old window, so that slow start returns there.
func (w *lossBased) OnRestart(r *Restart) {
	if w.cwnd <= w.initial || !r.Unvalidated && r.Idle <= r.RTO {
		return
	}
	w.ssthresh = max(w.ssthresh, w.cwnd/4*3)
	if r.Unvalidated {
		w.cwnd = max(w.cwnd/2, w.initial)
		return
	}
	w.cwnd, w.acked = w.initial, 0
}
