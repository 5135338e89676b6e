package workload

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// EchoNetwork is the document's network: the client's host, a router B that loses packets, and the
// server's host. The zero EchoNetwork loses nothing.
type EchoNetwork struct {
	// There is the share of packets that B loses from the client to the server, and Back is the
	// share in the other direction.
	There, Back float64
	// Wire is the delay of each of the two links; 0: 15 µs, because the document's ping took 60 µs.
	Wire time.Duration
	// TCP is the TCP configuration of both hosts.
	TCP tcp.Config
	// Limit is the maximum time of a run; 0: two minutes. A run that has not finished by then
	// reports that.
	Limit time.Duration
}

const (
	defaultWire = 15 * time.Microsecond
	echoLimit   = 2 * time.Minute
	echoPort    = 1234 // the document's port
)

// Build returns the network as a world: the client's host is on the left.
func (n EchoNetwork) Build(seed uint64) (*sim.Line, error) {
	n.Wire = cmp.Or(n.Wire, defaultWire)
	lossy := func(p float64) netem.Config {
		return netem.Config{Delay: n.Wire, Loss: netem.UniformLoss(p)}
	}
	plain := netem.Config{Delay: n.Wire}
	return sim.NewLine(seed, sim.LineConfig{
		Routers: 1, Left: n.TCP, Right: n.TCP,
		Links: []sim.LinkConfig{{AB: plain, BA: lossy(n.Back)}, {AB: lossy(n.There), BA: plain}},
	})
}

// attachment is a function that attaches an application to two hosts, such as AttachEcho.
type attachment[C any, A interface{ Done() bool }] func(
	client, server *sim.Host, at netip.AddrPort, cfg C) (A, error)

// play attaches an application to the network and runs the network until the application is done,
// or until the limit.
func play[C any, A interface{ Done() bool }](
	n EchoNetwork, seed uint64, attach attachment[C, A], cfg C,
) (a A, hash uint64, err error) {
	n.Limit = cmp.Or(n.Limit, echoLimit)
	l, err := n.Build(seed)
	if err != nil {
		return a, 0, err
	}
	if a, err = attach(l.Left, l.Right, l.Address(echoPort), cfg); err != nil {
		return a, 0, err
	}
	l.RunUntil(n.Limit, a.Done)
	return a, l.Hash(), nil
}

// Run runs the document's experiment over RCP. Two runs with the same hash sent the same packets.
func (n EchoNetwork) Run(seed uint64, cfg EchoConfig) (r EchoResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachEcho, cfg)
	if err != nil {
		return EchoResult{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunTCP runs the document's experiment over TCP, for comparison.
func (n EchoNetwork) RunTCP(seed uint64, cfg EchoConfig) (r EchoResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachEchoTCP, cfg)
	if err != nil {
		return EchoResult{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunBurst runs the document's thought experiment.
func (n EchoNetwork) RunBurst(seed uint64, cfg BurstConfig) (r BurstResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachBurst, cfg)
	if err != nil {
		return BurstResult{}, 0, err
	}
	return a.Result(), hash, nil
}
