package workload

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ObjectsNetwork is two hosts and the link between them. The zero ObjectsNetwork has no
// impairments.
type ObjectsNetwork struct {
	// Down is the link from the server to the client, and Up is the link from the client to the
	// server. The document put its netem rules on a container's only interface.
	Down, Up netem.Config
	// TCP is the TCP configuration of both hosts.
	TCP tcp.Config
	// MTU is the link's MTU; 0: stack.DefaultMTU.
	MTU int
	// Limit is the maximum time of a run; 0: five minutes. A run that is not finished by then
	// reports that.
	Limit time.Duration
}

const (
	defaultLimit = 5 * time.Minute
	serverPort   = 65432 // the document's port
)

// Build returns the network as a world: the client's host is on the left.
func (n ObjectsNetwork) Build(seed uint64) (*sim.Line, error) {
	return sim.NewLine(seed, sim.LineConfig{
		Left: n.TCP, Right: n.TCP, Links: []sim.LinkConfig{{AB: n.Up, BA: n.Down, MTU: n.MTU}},
	})
}

// Run transfers the objects once. Two runs with the same hash sent the same packets.
func (n ObjectsNetwork) Run(seed uint64, cfg ObjectsConfig) (r ObjectsResult, hash uint64, err error) {
	l, err := n.Build(seed)
	if err != nil {
		return ObjectsResult{}, 0, err
	}
	a, err := AttachObjects(l.Left, l.Right, l.Address(serverPort), cfg)
	if err != nil {
		return ObjectsResult{}, 0, err
	}
	limit := n.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	l.RunUntil(limit, a.Done)
	return a.Result(), l.Hash(), nil
}

// AttachObjects makes a client on one host fetch objects from a server on the other, at the address
// and port at. The hosts' configuration determines TCP's. Errors: ErrObjectsConfig, the errors of
// rdt.Config, and a port in use.
func AttachObjects(client, server *sim.Host, at netip.AddrPort, cfg ObjectsConfig) (*ObjectsApp, error) {
	var cache ObjectCache
	return cache.Attach(client, server, at, cfg)
}
