package congestion

// newNone returns no congestion control at all: only the receiver's window and
// the send buffer bound the flight, as in the course's plain TCP.
func newNone(cfg Config) Controller { return &fixed{window: cfg.MaxWindow} }
