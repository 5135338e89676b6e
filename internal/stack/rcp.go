package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rcp"
)

// RCP is one UDP port whose datagrams are RCP's, and the router that they are for.
type RCP struct {
	*Port
	// Router is the port's. Its owner is the stack's owner.
	Router *rcp.Router
}

// OpenRCP opens a port for RCP on one of the node's addresses, or on all, as BindUDP; with
// a valid remote for that peer alone, as DialUDPFrom. The stack fills in the Config's Rand.
// What rcp.NewRouter has against the Config is its error, too.
func (s *Stack) OpenRCP(local, remote netip.AddrPort, cfg rcp.Config) (*RCP, error) {
	cfg.Rand = s.rng
	r, err := rcp.NewRouter(cfg)
	if err != nil {
		return nil, err
	}
	p, err := s.openPort(local, remote, routing{r})
	if err != nil {
		return nil, err
	}
	return &RCP{Port: p, Router: r}, nil
}

// CloseRCP ends a port and its sockets, and frees its number.
func (s *Stack) CloseRCP(p *RCP) {
	p.Router.Close()
	s.ClosePort(p.Port)
}

// routing is a router of RCP as an engine.
type routing struct{ *rcp.Router }

// Input implements engine. The router counts what it thinks of a packet.
func (r routing) Input(now clock.Time, from netip.AddrPort, payload []byte) {
	r.Router.Input(now, from, payload)
}

func (r routing) output(now clock.Time) (to netip.AddrPort, payload []byte, ok bool) {
	var d rcp.Datagram
	ok = r.Output(now, &d)
	return d.Peer, d.Data, ok
}
