package workload

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// EchoNetwork is the document's: the client's host, a router B that loses packets, and the
// server's. The zero Network loses nothing.
type EchoNetwork struct {
	// There and Back are the shares of packets that B loses, from the client to the server
	// and on the way back.
	There, Back float64
	// Wire is how long each of the two wires is; 0: 15 µs, for the document's ping took 60.
	Wire time.Duration
	// TCP is how both hosts' TCP is.
	TCP tcp.Config
	// Limit is how much time a run has; 0: two minutes. One that has not finished by then
	// says so.
	Limit time.Duration
}

const (
	defaultWire = 15 * time.Microsecond
	echoLimit   = 2 * time.Minute
	echoPort    = 1234 // as in the document
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
		Wires: []sim.Wire{{AB: plain, BA: lossy(n.Back)}, {AB: lossy(n.There), BA: plain}},
	})
}

// attachment is how something is put on two hosts: by Attach or one of its kin.
type attachment[C any, A interface{ Done() bool }] func(
	client, server *sim.Host, at netip.AddrPort, cfg C) (A, error)

// play attaches something to the network and runs until it is done, or the limit.
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

// Run is the document's experiment, over RCP. Two runs with one hash went the same way.
func (n EchoNetwork) Run(seed uint64, cfg EchoConfig) (r EchoResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachEcho, cfg)
	if err != nil {
		return EchoResult{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunTCP is the document's experiment over TCP: the honest arm.
func (n EchoNetwork) RunTCP(seed uint64, cfg EchoConfig) (r EchoResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachEchoTCP, cfg)
	if err != nil {
		return EchoResult{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunBurst is the document's thought experiment.
func (n EchoNetwork) RunBurst(seed uint64, cfg BurstConfig) (r BurstResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachBurst, cfg)
	if err != nil {
		return BurstResult{}, 0, err
	}
	return a.Result(), hash, nil
}
