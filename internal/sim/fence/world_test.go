package fence

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Network is the document's: the client's host, a router B that loses packets, and the
// server's. The zero Network loses nothing.
type Network struct {
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
	defaultWire  = 15 * time.Microsecond
	defaultLimit = 2 * time.Minute
	serverPort   = 1234 // as in the document
)

// Build returns the network as a world: the client's host is on the left.
func (n Network) Build(seed uint64) (*sim.Line, error) {
	or(&n.Wire, defaultWire)
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
	n Network, seed uint64, attach attachment[C, A], cfg C,
) (a A, hash uint64, err error) {
	or(&n.Limit, defaultLimit)
	l, err := n.Build(seed)
	if err != nil {
		return a, 0, err
	}
	if a, err = attach(l.Left, l.Right, l.Address(serverPort), cfg); err != nil {
		return a, 0, err
	}
	l.RunUntil(n.Limit, a.Done)
	return a, l.Hash(), nil
}

// Run is the document's experiment, over RCP. Two runs with one hash went the same way.
func (n Network) Run(seed uint64, cfg Config) (r Result, hash uint64, err error) {
	a, hash, err := play(n, seed, Attach, cfg)
	if err != nil {
		return Result{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunTCP is the document's experiment over TCP: the honest arm.
func (n Network) RunTCP(seed uint64, cfg Config) (r Result, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachTCP, cfg)
	if err != nil {
		return Result{}, 0, err
	}
	return a.Result(), hash, nil
}

// RunBurst is the document's thought experiment.
func (n Network) RunBurst(seed uint64, cfg BurstConfig) (r BurstResult, hash uint64, err error) {
	a, hash, err := play(n, seed, AttachBurst, cfg)
	if err != nil {
		return BurstResult{}, 0, err
	}
	return a.Result(), hash, nil
}
