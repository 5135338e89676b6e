package congestion

// reno is RFC 5681 with byte counting (RFC 3465).
type reno struct {
	cwnd, ssthresh int
	max            int
	// acked counts towards the next segment of growth in congestion avoidance.
	acked int
}

func newReno(cfg Config) Controller {
	return &reno{
		cwnd:     min(cfg.InitialWindow, cfg.MaxWindow),
		ssthresh: cfg.MaxWindow, // RFC 5681 §3.1: arbitrarily high
		max:      cfg.MaxWindow,
	}
}

func (r *reno) Cwnd() int         { return r.cwnd }
func (r *reno) Ssthresh() int     { return r.ssthresh }
func (r *reno) PacingRate() int64 { return 0 }

func (r *reno) OnAck(a *Ack) {
	if a.Recovering || !a.CwndLimited {
		return
	}
	n := a.Delivered
	if r.cwnd < r.ssthresh {
		// RFC 3465 §2.2 without its limit L: one acknowledgment here stands for a whole train,
		// and counting two segments of it would make growth depend on how segments were merged.
		grow := min(n, r.ssthresh-r.cwnd)
		r.cwnd = min(r.cwnd+grow, r.max)
		n -= grow
	}
	// RFC 5681 §3.1 (3): one segment a window.
	for r.acked += n; r.acked >= r.cwnd; {
		r.acked -= r.cwnd
		r.cwnd = min(r.cwnd+a.MSS, r.max)
	}
}

func (r *reno) OnLoss(l *Loss) {
	// RFC 5681 §3.1 (4): half the flight, which an application that left the window unused
	// has not earned more of.
	if l.Kind != TimeoutAgain {
		r.ssthresh = max(min(l.FlightSize, r.cwnd)/2, 2*l.MSS)
	}
	r.acked = 0
	if l.Kind == Timeout || l.Kind == TimeoutAgain {
		r.cwnd = l.MSS
		return
	}
	r.cwnd = r.ssthresh
}

func (r *reno) OnExit(*Exit) { r.acked = 0 }
