package node

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// realDevice is what a device that leaves the process knows beyond a Device.
type realDevice interface {
	Info() link.Info
	Counters(id int) link.Counters
	Neighbors(id int) []link.NeighborInfo
}

// deviceInfo adds what only the device knows to an interface's snapshot.
func (n *Node) deviceInfo(i int, f *control.Interface) {
	f.UDP = underneath(&n.cfg.LNX.Interfaces[i])
	if n.cfg.Devices[n.cfg.LNX.Interfaces[i].Name] != nil {
		f.UDP = "in process"
	}
	f.Problem = n.problem(i)
	n.impairmentDrops(i, f)
	d, ok := bare(n.devices[n.ifaceDevice[i]]).(realDevice)
	if !ok {
		return
	}
	info := d.Info()
	f.Offload = info.Offload.String()
	c := n.deviceCounters(i, d)
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

// underneath is what an interface stands on: a UDP address, or "tun:DEV".
func underneath(f *lnx.Interface) string {
	if f.Tun != nil {
		return "tun:" + f.Tun.Device
	}
	return f.UDP.String()
}

// kernels lists the kernel's ends of the TUN devices that are up.
func (n *Node) kernels() []control.Neighbor {
	var list []control.Neighbor
	for i := range n.cfg.LNX.Interfaces {
		f := &n.cfg.LNX.Interfaces[i]
		if f.Tun != nil && f.Tun.Kernel.IsValid() && n.stack.Up(i) {
			list = append(list, control.Neighbor{
				Iface: f.Name, Addr: f.Tun.Kernel, UDP: underneath(f), Heard: -1,
			})
		}
	}
	return list
}

// neighborUDP returns where packets for a neighbour go now.
func (n *Node) neighborUDP(i int, addr [4]byte, configured string) string {
	d, ok := bare(n.devices[n.ifaceDevice[i]]).(realDevice)
	if !ok {
		return configured
	}
	for _, nb := range d.Neighbors(i) {
		if nb.Addr == addr && nb.UDP.IsValid() {
			return nb.UDP.String()
		}
	}
	return configured
}
