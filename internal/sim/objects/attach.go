package objects

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/sim"
)

// Attach has a client on one host fetch objects from a server on the other, whose address and
// port are at. How TCP is, is the hosts' configuration. Errors: ErrConfig, what rdt.Config
// has against itself, and that the port is taken.
func Attach(client, server *sim.Host, at netip.AddrPort, cfg Config) (*App, error) {
	var shelf Shelf
	return shelf.Attach(client, server, at, cfg)
}
