package congestion

// tahoe is the algorithm of 1988: every loss halves the threshold and restarts slow start from one
// segment. There is no fast recovery.
type tahoe struct{ lossBased }

func newTahoe(cfg Config) Controller { return &tahoe{newLossBased(&cfg)} }

// OnLoss follows Jacobson, "Congestion avoidance and control", appendix: the window becomes one
// segment (the loss window of RFC 5681), also after a fast retransmit.
func (t *tahoe) OnLoss(l *Loss) {
	t.reduce(l)
	if l.Kind == Detected {
		t.cwnd = l.MSS
	}
}
