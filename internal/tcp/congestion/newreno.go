package congestion

// newreno is RFC 6582. Partial acknowledgments and what is sent again are loss
// recovery's; what is left of it here is how fast recovery ends.
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

// OnExit is RFC 6582 §3.2 step 3 for a full acknowledgment, its first choice: the window is what is
// in flight and a segment more, not all of ssthresh at once, lest the flight be one burst.
func (r *newreno) OnExit(e *Exit) {
	if r.fast && !e.Spurious {
		r.cwnd = min(r.ssthresh, max(e.InFlight, e.MSS)+e.MSS)
	}
	r.fast = false
	r.window.OnExit(e)
}
