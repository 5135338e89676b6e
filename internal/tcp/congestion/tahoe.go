package congestion

// tahoe is the algorithm of 1988: every loss, however it was noticed, halves the threshold and
// starts over in slow start from one segment. There is no fast recovery.
type tahoe struct{ window }

func newTahoe(cfg Config) Controller { return &tahoe{newWindow(&cfg)} }

// OnLoss is Jacobson, "Congestion avoidance and control", appendix: the window
// goes to one segment, RFC 5681's loss window, after the fast retransmit too.
func (t *tahoe) OnLoss(l *Loss) {
	t.reduce(l)
	if l.Kind == Detected {
		t.cwnd = l.MSS
	}
}
