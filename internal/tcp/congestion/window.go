package congestion

// window is the arithmetic that the loss-based algorithms share: RFC 5681 with
// byte counting, and the memory that takes a reduction back.
type window struct {
	cwnd, ssthresh int
	initial, max   int
	// acked counts towards the next segment of growth in congestion avoidance.
	acked  int
	before undo
}

// undo is what a window was before a loss episode.
type undo struct {
	open           bool // the episode has not ended
	valid          bool // nothing has been sent since that would make it stale
	cwnd, ssthresh int
}

func newWindow(cfg *Config) window {
	return window{
		cwnd: cfg.FirstCwnd(), ssthresh: cfg.FirstSsthresh(),
		initial: min(cfg.InitialWindow, cfg.MaxWindow), max: cfg.MaxWindow,
	}
}

func (w *window) Cwnd() int         { return w.cwnd }
func (w *window) Ssthresh() int     { return w.ssthresh }
func (w *window) PacingRate() int64 { return 0 }

// OnAck is slow start and congestion avoidance, RFC 5681 §3.1.
func (w *window) OnAck(a *Ack) {
	if a.Recovering || !a.CwndLimited {
		return
	}
	w.avoid(w.slowStart(a.Delivered), a.MSS)
}

// slowStart grows the window by what was delivered, up to ssthresh, and returns
// how much of it is left.
func (w *window) slowStart(n int) int {
	// RFC 3465 §2.2 without its limit L: one acknowledgment here stands for a whole train, and
	// counting two segments of it would make growth depend on how segments were merged.
	grow := max(0, min(n, w.ssthresh-w.cwnd))
	w.cwnd = min(w.cwnd+grow, w.max)
	return n - grow
}

// avoid is RFC 5681 §3.1 (3): one segment a window.
func (w *window) avoid(n, mss int) {
	for w.acked += n; w.acked >= w.cwnd; {
		w.acked -= w.cwnd
		w.cwnd = min(w.cwnd+mss, w.max)
	}
}

// reduce lowers ssthresh to half the flight, RFC 5681 §3.1 (4), which an
// application that left the window unused has not earned more of; and the
// window to it, or after a time-out to the loss window of one segment.
func (w *window) reduce(l *Loss) {
	w.save(l.Kind)
	if l.Kind != TimeoutAgain {
		w.ssthresh = max(min(l.FlightSize, w.cwnd)/2, 2*l.MSS)
	}
	w.acked = 0
	switch l.Kind {
	case Timeout, TimeoutAgain:
		w.cwnd = l.MSS
	case Detected, Echo:
		// RFC 3168 §6.1.2: a mark weighs what a loss does.
		w.cwnd = min(w.cwnd, w.ssthresh)
	}
}

// save remembers the window at the first loss of an episode.
func (w *window) save(k Kind) {
	if k == Echo {
		w.before = undo{} // congestion is certain: what was before must not come back
		return
	}
	if !w.before.open {
		w.before = undo{open: true, valid: true, cwnd: w.cwnd, ssthresh: w.ssthresh}
	}
}

// OnExit ends an episode, and takes its reduction back if it was spurious.
func (w *window) OnExit(e *Exit) {
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

// OnRestart is RFC 5681 §4.1: after a silence of more than a time-out there is
// no acknowledgment to clock out a whole window. The threshold keeps what was
// learnt (RFC 7661 §4.4.3), so that slow start leads back there.
func (w *window) OnRestart(r *Restart) {
	if r.Unvalidated && w.cwnd > w.initial {
		w.ssthresh = max(w.ssthresh, w.cwnd/4*3)
		w.cwnd = max(w.cwnd/2, w.initial)
		return
	}
	if r.Idle <= r.RTO || w.cwnd <= w.initial {
		return
	}
	w.ssthresh = max(w.ssthresh, w.cwnd/4*3)
	w.cwnd = w.initial
	w.acked = 0
}
