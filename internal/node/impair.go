package node

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// impair puts between a device and the node what the file says of its links. A device
// of whose links it says nothing stays as it is.
func (n *Node) impair(d link.Device, faces []link.Interface) (link.Device, error) {
	var list []link.Impairment
	some := false
	seed := n.cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, face := range faces {
		f := &n.cfg.LNX.Interfaces[face.ID]
		some = some || f.Impair != (lnx.Impairments{})
		cfg := impairment(&f.Impair)
		list = append(list, link.Impairment{
			Iface: face.ID, Out: cfg, In: cfg, Stream: func(part string) *rand.Rand {
				return netem.Streams(seed)(face.Name + " " + part)
			},
		})
	}
	if !some {
		return d, nil
	}
	impaired, err := link.Impair(d, n.now, list...)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n.delaying = append(n.delaying, delaying{token: len(n.devices), device: impaired})
	return impaired, nil
}

// What a link's rate implies: a queue that holds what passes in so much time, and so
// many bytes however slow it is.
const (
	queueTime  = 200 * time.Millisecond
	queueBytes = 32 << 10
)

// lateness is up to how much later than their turn reordered packets arrive on a link
// without delay, where there is nobody to overtake.
const lateness = time.Millisecond

// impairment translates what a file says into what each direction of the link does.
func impairment(i *lnx.Impairments) netem.Config {
	c := netem.Config{
		Delay: i.Delay, Duplicate: i.Duplicate.Fraction(),
		Corrupt: netem.Corrupt{Share: i.Corrupt.Fraction()},
		Reorder: netem.Reorder{Share: i.Reorder.Fraction()},
	}
	if i.Delay == 0 {
		c.Reorder.Late = lateness
	}
	if i.Loss > 0 {
		c.Loss = netem.UniformLoss(i.Loss.Fraction())
	}
	if i.Jitter > 0 {
		c.Jitter = netem.UniformJitter(i.Jitter)
	}
	if i.RateBitsPerSec > 0 {
		c.Rate = netem.BitsPerSecond(i.RateBitsPerSec)
		const inTime = int64(time.Second / queueTime)
		c.Queue = netem.DropTail{Bytes: int(max(i.RateBitsPerSec/8/inTime, queueBytes))}
	}
	return c
}

// delaying is a device that holds packets back.
type delaying struct {
	token  int
	device link.Delayer
}

// held is when a device hands over next what it holds back.
func (n *Node) held() clock.Time {
	first := clock.Never
	for i := range n.delaying {
		first = clock.Earliest(first, n.delaying[i].device.Deadline())
	}
	return first
}

// ripe has the next turn read the devices that hold something that is due.
func (n *Node) ripe(tokens []int) []int {
	if len(n.delaying) == 0 {
		return tokens
	}
	now := n.now()
	for i := range n.delaying {
		if n.delaying[i].device.Deadline().Due(now) {
			tokens = appendToken(tokens, n.delaying[i].token)
		}
	}
	return tokens
}

// bare is a device without what impairs it.
func bare(d link.Device) link.Device {
	if i, ok := d.(*link.Impaired); ok {
		return i.Unwrap()
	}
	return d
}

// impairmentDrops adds to an interface's snapshot what its link lost on purpose.
func (n *Node) impairmentDrops(i int, f *control.Interface) {
	d, ok := n.devices[n.ifaceDevice[i]].(*link.Impaired)
	if !ok {
		return
	}
	out, in := d.Impairments(i)
	for _, way := range []struct {
		counts *netem.Counters
		to     *control.Counters
	}{{&out, &f.Out}, {&in, &f.In}} {
		for _, drop := range []control.Drop{
			{Reason: "lost by the link", Packets: way.counts.Lost},
			{Reason: "link's queue full", Packets: way.counts.QueueDropped + way.counts.Overflowed},
		} {
			if drop.Packets > 0 {
				way.to.Drops = append(way.to.Drops, drop)
			}
		}
	}
}
