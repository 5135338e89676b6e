//go:build !linux

package link

// openTUN always fails.
func openTUN(cfg TUNConfig) (*TUN, error) { return nil, tunError(cfg, ErrNoTUN, "") }

// Raise does nothing.
func (d *TUN) Raise() error { return nil }

// Raised does nothing.
func (d *TUN) Raised() error { return nil }

func (d *TUN) forgetRoutes() {}
