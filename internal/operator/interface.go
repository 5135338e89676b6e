package operator

import (
	"context"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func (h *Requests) handleInterfaces() {
	look(h, func(s *stack.Stack, now clock.Time, _ control.Interfaces) (
		list []control.Interface, err error,
	) {
		list = h.interfaces(s)
		for i := range list {
			s.Interfaces().Discovered(now, &list[i])
		}
		return list, nil
	})
	look(h, func(_ *stack.Stack, now clock.Time, _ control.Neighbors) ([]control.Neighbor, error) {
		return h.node.Neighbors.List(now), nil
	})
	look(h, func(s *stack.Stack, _ clock.Time, r control.Loss) ([]control.LinkLoss, error) {
		return h.losses(s, r.Iface)
	})
	look(h, h.setLoss)
	order(h, h.clearCounters)
	control.Handle(h.Handlers, h.setLink)
}

// faces returns the interface of that name, or all of them if the name is empty.
func (h *Requests) faces(name string) (list []int, err error) {
	if name != "" {
		i, err := h.node.Iface(name)
		if err != nil {
			return nil, err
		}
		return []int{i}, nil
	}
	for i, f := range h.node.Ifaces() {
		if f.Name != "" { // an interface without a name was deleted
			list = append(list, i)
		}
	}
	return list, nil
}

// interfaces returns snapshots from the stack and the devices. Loop only.
func (h *Requests) interfaces(s *stack.Stack) []control.Interface {
	list := s.Interfaces().Infos()
	for i := range list {
		h.deviceInfo(list[i].Index, &list[i])
	}
	return list
}

// counting is a device with counters.
type counting interface {
	Info() link.Info
	Counters(id int) link.Counters
}

// deviceInfo adds a device's state to its interface's snapshot.
func (h *Requests) deviceInfo(i int, f *control.Interface) {
	f.UDP, f.Problem = h.node.Devices.Underneath(i), h.node.Devices.Problem(i)
	h.impairmentDrops(i, f)
	device := h.node.Devices.Unimpaired(i)
	d, ok := device.(counting)
	if !ok {
		return
	}
	f.Offload = d.Info().Offload.String()
	c := d.Counters(i)
	if before := h.cleared[i]; before.device == device {
		c.Sub(&before.counts)
	}
	f.Device = &control.DeviceCounters{
		InPackets: c.RxPackets, InBytes: c.RxBytes, OutPackets: c.TxPackets, OutBytes: c.TxBytes,
		Oversize: c.Oversize, Waited: c.Queued,
	}
	for reason, packets := range c.Drops {
		if packets == 0 {
			continue
		}
		drop := control.Drop{Reason: link.Drop(reason).String(), Packets: packets}
		switch link.Drop(reason) {
		case link.DropUnknown, link.DropEmpty, link.DropKernel, link.DropMalformed:
			f.In.Drops = append(f.In.Drops, drop)
			f.In.Errors += packets
		default:
			f.Out.Drops = append(f.Out.Drops, drop)
			f.Out.Errors += packets
		}
	}
}

// clearCounters sets counters to zero. Devices cannot do that, so the node subtracts their current
// counts from later ones.
func (h *Requests) clearCounters(s *stack.Stack, _ clock.Time, r control.ClearCounters) error {
	which, err := h.faces(r.Iface)
	for _, i := range which {
		s.Interfaces().ClearCounters(i)
		if m := h.node.Devices.Impaired(i); m != nil {
			m.Clear(i)
		}
		device := h.node.Devices.Unimpaired(i)
		if d, ok := device.(counting); ok {
			h.cleared[i] = cleared{device, d.Counters(i)}
		}
	}
	return err
}

// forgetDevices removes the cleared counts of devices that are gone. Loop only.
func (h *Requests) forgetDevices(clock.Time) {
	for i, c := range h.cleared {
		if c.device != h.node.Devices.Unimpaired(i) {
			delete(h.cleared, i)
		}
	}
}

func (h *Requests) setLink(
	_ context.Context, r control.SetLink,
) (answer control.Interface, err error) {
	i, err := h.node.Iface(r.Iface)
	if err != nil {
		return answer, err
	}
	if r.Up {
		if err := h.node.Devices.Reopen(i); err != nil {
			return answer, err
		}
	}
	err = h.node.Ask(func(s *stack.Stack, now clock.Time) error {
		before := s.Interfaces().Up(i)
		s.SetUp(now, i, r.Up)
		if d, ok := h.node.Devices.Unimpaired(i).(*link.UDP); ok {
			d.SetUp(i, r.Up)
		}
		for _, f := range h.interfaces(s) {
			if f.Index == i {
				answer = f
			}
		}
		if before != r.Up {
			h.node.Watchers.Announce(control.LinkChanged{Interface: answer})
		}
		return nil
	})
	return answer, err
}

// setLoss makes a router drop a share of the packets that it forwards.
func (h *Requests) setLoss(
	s *stack.Stack, _ clock.Time, r control.SetLoss,
) ([]control.LinkLoss, error) {
	if !(r.Percent >= 0 && r.Percent <= 100) {
		return nil, fmt.Errorf("loss of %v percent: %w: must be 0 to 100", r.Percent,
			control.ErrUsage)
	}
	which, _ := h.faces(r.Iface) // losses returns the error
	for _, i := range which {
		s.SetLoss(i, r.Percent/100)
	}
	return h.losses(s, r.Iface)
}

func (h *Requests) losses(s *stack.Stack, name string) (list []control.LinkLoss, err error) {
	which, err := h.faces(name)
	for _, i := range which {
		list = append(list, control.LinkLoss{
			Iface:   h.node.IfaceName(i),
			Percent: s.Interfaces().Loss(i) * 100, Dropped: s.Interfaces().Lossy(i),
		})
	}
	return list, err
}
