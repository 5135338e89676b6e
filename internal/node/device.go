package node

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// udpDevice is what a UDP link knows beyond a Device.
type udpDevice interface {
	Info() link.Info
	Counters(id int) link.Counters
	Neighbors(id int) []link.NeighborInfo
}

// deviceInfo adds what only the device knows to an interface's snapshot.
func (n *Node) deviceInfo(i int, f *control.Interface) {
	f.UDP = n.cfg.LNX.Interfaces[i].UDP.String()
	d, ok := n.devices[n.ifaceDevice[i]].(udpDevice)
	if !ok {
		return
	}
	info := d.Info()
	f.Offload = info.Offload.String()
	c := d.Counters(i)
	for reason, packets := range c.Drops {
		if packets == 0 {
			continue
		}
		drop := control.Drop{Reason: link.Drop(reason).String(), Packets: packets}
		switch link.Drop(reason) {
		case link.DropUnknown, link.DropEmpty, link.DropKernel:
			f.In.Drops = append(f.In.Drops, drop)
			f.In.Errors += packets
		default:
			f.Out.Drops = append(f.Out.Drops, drop)
			f.Out.Errors += packets
		}
	}
}

// neighborUDP returns where packets for a neighbour go now.
func (n *Node) neighborUDP(i int, addr [4]byte, configured string) string {
	d, ok := n.devices[n.ifaceDevice[i]].(udpDevice)
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
