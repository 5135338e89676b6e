//go:build !linux

package link

// openTUN has nothing to open.
func openTUN(cfg TUNConfig) (*TUN, error) { return nil, tunError(cfg, ErrNoTUN, "") }

// forgetRoutes has nothing to forget.
func (d *TUN) forgetRoutes() {}
