package workload

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// NotebookNetwork is the document's path: a mahimahi shell with the receivers inside and the
// senders outside. The zero NotebookNetwork is the network of the document's slow experiments.
type NotebookNetwork struct {
	// Rate is the rate of both directions; nil: 2,435,000 bit/s, the mean of the trace called 2.64
	// Mbit/s. PacketOverhead is added to the size of each packet. 0: the 4 bytes that mahimahi
	// counts; negative: none, for a Rate that counts them itself.
	Rate           netem.Rate
	PacketOverhead int
	// Delay is the delay of each direction; 0: 88 ms.
	Delay time.Duration
	// Queue is the limit of the downlink's queue in bytes; 0: 26400. The uplink's queue has no
	// limit.
	Queue int
	// Loss is the downlink's loss; nil: no loss.
	Loss netem.Loss
}

const (
	defaultRate     = netem.BitsPerSecond(2_435_000)
	defaultOverhead = 4
	defaultDelay    = 88 * time.Millisecond
	defaultQueue    = 26400
	firstPort       = 5000
)

// Build returns the network as a world: the senders' host is on the left.
func (n NotebookNetwork) Build(seed uint64) (*sim.Line, error) {
	if n.Rate == nil {
		n.Rate = defaultRate
	}
	if n.PacketOverhead == 0 {
		n.PacketOverhead = defaultOverhead
	}
	if n.Delay == 0 {
		n.Delay = defaultDelay
	}
	if n.Queue == 0 {
		n.Queue = defaultQueue
	}
	up := netem.Config{Rate: n.Rate, Overhead: max(0, n.PacketOverhead), Delay: n.Delay}
	down := up
	down.Queue, down.Loss = netem.DropTail{Bytes: n.Queue}, n.Loss
	return sim.NewLine(seed, sim.LineConfig{Links: []sim.LinkConfig{{AB: down, BA: up}}})
}

// Run makes senders with these strategies share the network and a receivers' process for
// cfg.Duration. Two runs with the same hash sent the same packets.
func (n NotebookNetwork) Run(seed uint64, cfg NotebookConfig, strategies ...Strategy) (
	results []NotebookResult, hash uint64, err error,
) {
	l, err := n.Build(seed)
	if err != nil {
		return nil, 0, err
	}
	apps := make([]*NotebookApp, len(strategies))
	here := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	var process Process
	for i, s := range strategies {
		at := netip.AddrPortFrom(here, uint16(firstPort+i))
		if apps[i], err = process.Attach(l.Left, l.Right, at, s, cfg); err != nil {
			return nil, 0, err
		}
	}
	over := func() bool {
		for _, a := range apps {
			if !a.Done() {
				return false
			}
		}
		return true
	}
	// The handshakes also take time.
	l.RunUntil(cfg.withDefaults().Duration+(handshakeTries+1)*handshakeRetry, over)
	for _, a := range apps {
		results = append(results, a.Result())
	}
	return results, l.Hash(), nil
}
