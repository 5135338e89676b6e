//go:build !linux

package link

// openTUN has nothing to open.
func openTUN(cfg TUNConfig) (*TUN, error) { return nil, tunError(cfg, ErrNoTUN, "") }

// Raise has nothing to set up.
func (d *TUN) Raise() error { return nil }

// Raised has nobody to tell.
func (d *TUN) Raised() error { return nil }

// forgetRoutes has nothing to forget.
func (d *TUN) forgetRoutes() {}
