package congestion

// newNone returns a controller whose window limits nothing. Only the receiver's window and the send
// buffer limit the data in flight, as in the course's TCP without congestion control.
func newNone(cfg Config) Controller { return &fixed{window: cfg.MaxWindow} }
