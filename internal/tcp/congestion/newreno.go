package congestion

// newreno is RFC 6582. Loss recovery handles partial acknowledgments and retransmissions; this type
// handles the window at the end of fast recovery.
type newreno struct {
	window
	fast bool // in fast recovery
}

func newNewReno(cfg Config) Controller { return &newreno{window: newWindow(&cfg)} }

// OnLoss halves the window.
func (r *newreno) OnLoss(l *Loss) {
	r.fast = l.Kind == Detected
	r.reduce(l)
}

// OnExit is RFC 6582 §3.2 step 3 for a full acknowledgment, option 1: the window is the data in
// flight and one segment, not ssthresh, to avoid a burst.
func (r *newreno) OnExit(e *Exit) {
	if r.fast && !e.Spurious {
		r.cwnd = min(r.ssthresh, max(e.InFlight, e.MSS)+e.MSS)
	}
	r.fast = false
	r.window.OnExit(e)
}
