package congestion

// reno implements RFC 5681 with byte counting (RFC 3465).
type reno struct{ lossBased }

func newReno(cfg Config) Controller { return &reno{newLossBased(&cfg)} }

// OnLoss halves the window, or sets it to one segment after a timeout.
func (r *reno) OnLoss(l *Loss) { r.reduce(l) }
