//go:build !linux

package link

// openTUN always fails: this system has no TUN devices.
func openTUN(cfg TUNConfig) (*TUN, error) { return nil, tunError(cfg, ErrNoTUN, "") }

// Raise does nothing: this system has no TUN devices.
func (d *TUN) Raise() error { return nil }

// Raised does nothing: this system has no TUN devices.
func (d *TUN) Raised() error { return nil }

func (d *TUN) removeRoutes() {}
