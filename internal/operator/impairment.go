package operator

import (
	"context"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func (h *Requests) handleImpairments() {
	look(h, func(_ *stack.Stack, _ clock.Time, r control.Impairments) (
		list []control.Impairment, err error,
	) {
		which, err := h.faces(r.Iface)
		for _, i := range which {
			list = append(list, h.impairment(i, control.WayOut), h.impairment(i, control.WayIn))
		}
		return list, err
	})
	control.Handle(h.Handlers, h.impair)
}

func (h *Requests) impair(
	ctx context.Context, r control.Impair,
) (answer []control.Impairment, err error) {
	switch r.Way {
	case "", control.WayBoth, control.WayIn, control.WayOut:
	default:
		return nil, fmt.Errorf("direction %q: %w: must be in, out or both", r.Way, control.ErrUsage)
	}
	cfg, err := node.ParseImpairment(r.Words, files.Of(ctx))
	if err != nil {
		return nil, control.Also(err, control.ErrUsage)
	}
	which, err := h.faces(r.Iface)
	if err != nil {
		return nil, err
	}
	err = h.node.Ask(func(*stack.Stack, clock.Time) error {
		for _, i := range which {
			if err := h.node.Devices.Impair(i, r.Way, &cfg); err != nil {
				return err
			}
			for _, way := range []control.Way{control.WayOut, control.WayIn} {
				if r.Way == way || r.Way == "" || r.Way == control.WayBoth {
					answer = append(answer, h.impairment(i, way))
				}
			}
		}
		return nil
	})
	return answer, err
}

// impairment describes one direction of an interface. Loop only.
func (h *Requests) impairment(i int, way control.Way) control.Impairment {
	a := control.Impairment{
		Iface: h.node.IfaceName(i), Way: way, Words: netem.Config{}.String(),
	}
	m := h.node.Devices.Impaired(i)
	if m == nil {
		return a
	}
	l, in := m.Links(i)
	cfg, inCfg := m.Configs(i)
	if way == control.WayIn {
		l, cfg = in, inCfg
	}
	c := l.Counters()
	a.Words = cfg.String()
	if cfg.Random() {
		a.Seed = h.node.Devices.Seed(i, way)
	}
	a.Seen, a.SeenBytes, a.Passed, a.PassedBytes = c.In, c.InBytes, c.Out, c.OutBytes
	a.Lost, a.QueueDropped, a.Overflowed = c.Lost, c.QueueDropped+c.Policed, c.Overflowed
	a.Duplicated, a.Corrupted, a.Truncated = c.Duplicated, c.Corrupted, c.Truncated
	a.Reordered, a.Delayed, a.Marked = c.Reordered, c.Delayed, c.Marked
	a.Inside, _ = l.Inside()
	a.Waiting, _ = l.Queued()
	return a
}

// impairmentDrops adds a link's dropped packets to its interface's snapshot.
func (h *Requests) impairmentDrops(i int, f *control.Interface) {
	m := h.node.Devices.Impaired(i)
	if m == nil {
		return
	}
	out, in := m.Impairments(i)
	for _, way := range []struct {
		counts *netem.Counters
		to     *control.Counters
	}{{&out, &f.Out}, {&in, &f.In}} {
		for _, drop := range []control.Drop{
			{Reason: node.LostByLink, Packets: way.counts.Lost},
			{Reason: node.LinkQueueFull, Packets: way.counts.QueueDropped + way.counts.Policed +
				way.counts.Overflowed},
		} {
			if drop.Packets > 0 {
				way.to.Drops = append(way.to.Drops, drop)
			}
		}
	}
}
