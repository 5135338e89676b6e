package congestion

// newreno implements the window of RFC 6582 at the end of fast recovery. Loss recovery handles
// partial acknowledgments and retransmissions.
type newreno struct {
	lossBased
	fast bool // in fast recovery
}

func newNewReno(cfg Config) Controller { return &newreno{lossBased: newLossBased(&cfg)} }

// OnLoss halves the window, or sets it to one segment after a timeout.
func (r *newreno) OnLoss(l *Loss) {
	r.fast = l.Kind == Detected
	r.reduce(l)
}

// OnExit sets the window after a full acknowledgment to the data in flight plus one segment.
// Setting it to ssthresh could cause a burst (RFC 6582 §3.2 step 3, option 1).
func (r *newreno) OnExit(e *Exit) {
	if r.fast && !e.Spurious {
		r.cwnd = min(r.ssthresh, max(e.InFlight, e.MSS)+e.MSS)
	}
	r.fast = false
	r.lossBased.OnExit(e)
}
