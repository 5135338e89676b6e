package congestion

// newNone returns no congestion control: only the receiver's window and the send buffer limit the
// data in flight, as in the course's plain TCP.
func newNone(cfg Config) Controller { return &fixed{window: cfg.MaxWindow} }
