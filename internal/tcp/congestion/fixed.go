package congestion

// fixed is a window that never changes: the sliding window of a textbook.
type fixed struct{ window int }

func newFixed(cfg Config) Controller {
	w := cfg.FixedWindow
	if w == 0 {
		w = cfg.InitialWindow
	}
	return &fixed{window: min(w, cfg.MaxWindow)}
}

func (f *fixed) OnAck(*Ack)        {}
func (f *fixed) OnLoss(*Loss)      {}
func (f *fixed) OnExit(*Exit)      {}
func (f *fixed) Cwnd() int         { return f.window }
func (f *fixed) Ssthresh() int     { return 0 }
func (f *fixed) PacingRate() int64 { return 0 }
