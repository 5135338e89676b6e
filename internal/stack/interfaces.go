package stack

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Interface attaches the node to a link.
type Interface struct {
	Name string
	Addr netip.Prefix // the node's address, with the length of the link's prefix
	MTU  int          // in bytes, with the IP header; 0: DefaultMTU
	// DefaultMSS assumes an MSS of 536 bytes for TCP peers on the link that send no MSS option (RFC
	// 9293 §3.7.1). Otherwise the MTU limits them, as course nodes expect.
	DefaultMSS bool
	// Neighbors are the nodes on the link; nil: unknown.
	Neighbors []netip.Addr
}

// Direction is the direction of a packet at an interface.
type Direction uint8

// The directions.
const (
	Inbound Direction = iota
	Outbound
)

// Tap is called when a packet arrives, leaves or is dropped. The pieces are only valid during the
// call. The reason is ip.DropNone for a packet that is not dropped.
type Tap func(now clock.Time, iface int, dir Direction, reason ip.DropReason, pieces [][]byte)

// Interfaces holds the interfaces' addresses, groups and counters.
type Interfaces struct {
	list   []iface
	addrs  addresses
	groups map[membership]int // joined, except by UDP sockets
	udp    *udp.Host
	in     *incoming
	tap    Tap
	one    [1][]byte // for the tap
}

// iface is the state of an interface.
type iface struct {
	Interface
	addr    netip.Addr
	network network
	up      bool
	loss    float64 // share of forwarded packets to drop, 0 to 1
	rx      counters
	tx      counters
}

type counters struct {
	packets, bytes uint64
	// fragments counts received fragments for this node, or sent fragments; fragmented counts the
	// packets that were sent as fragments.
	fragments, fragmented uint64
	// Every received packet is counted once: delivered to a protocol, forwarded, or in drops.
	delivered, forwarded uint64
	drops                ip.Drops
}

func (c *counters) info() control.Counters {
	info := control.Counters{
		Packets: c.packets, Bytes: c.bytes, Delivered: c.delivered, Forwarded: c.forwarded,
		Fragments: c.fragments, Fragmented: c.fragmented, Drops: []control.Drop{},
	}
	for reason, n := range c.drops {
		if n > 0 {
			info.Drops = append(info.Drops, control.Drop{
				Reason: ip.DropReason(reason).String(), Packets: n,
			})
		}
	}
	return info
}

// check sets defaults, and returns the error of an interface.
func (c *Interface) check() error {
	if !c.Addr.IsValid() || !c.Addr.Addr().Is4() {
		return fmt.Errorf("stack: interface %s: address %v is not IPv4", c.Name, c.Addr)
	}
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.MTU < ip.MinMTU || c.MTU > ip.MaxPacketLen {
		return fmt.Errorf("stack: interface %s: MTU %d: must be %d to %d", c.Name, c.MTU,
			ip.MinMTU, ip.MaxPacketLen)
	}
	return nil
}

// set replaces the interfaces. checkWires has checked the list.
func (ifs *Interfaces) set(list []Interface) {
	ifs.addrs = addresses{byAddr: map[v4]int{}}
	for i, c := range list {
		if i == len(ifs.list) {
			ifs.list = append(ifs.list, iface{})
		}
		f := &ifs.list[i]
		appears := !f.Addr.IsValid() && c.Addr.IsValid()
		f.Interface = c
		if !c.Addr.IsValid() {
			f.addr, f.network, f.up = netip.IPv4Unspecified(), network{}, false
			continue
		}
		f.addr, f.network, f.up = c.Addr.Addr(), networkOf(c.Addr), f.up || appears
		ifs.addrs.add(f, i)
	}
}

// checkWires sets defaults in a new list of interfaces, and returns its error.
func (ifs *Interfaces) checkWires(list []Interface) error {
	if len(list) < len(ifs.list) {
		return errors.New("stack: the new list is shorter than that of the numbered interfaces")
	}
	own := map[netip.Addr]string{}
	for i := range list {
		c := &list[i]
		if !c.Addr.IsValid() {
			*c = Interface{}
			continue
		}
		if err := c.check(); err != nil {
			return err
		}
		if other, dup := own[c.Addr.Addr()]; dup {
			return fmt.Errorf("stack: interfaces %s and %s have the same address %v", other, c.Name,
				c.Addr.Addr())
		}
		own[c.Addr.Addr()] = c.Name
	}
	if len(own) == 0 {
		return errors.New("stack: no interfaces")
	}
	return nil
}

// name returns an interface's name, or "" if there is no interface i.
func (ifs *Interfaces) name(i int) string {
	if i < 0 || i >= len(ifs.list) {
		return ""
	}
	return ifs.list[i].Name
}

// Up reports whether interface i is up.
func (ifs *Interfaces) Up(i int) bool { return ifs.list[i].up }

// Loss returns the share, from 0 to 1, of the packets forwarded over interface i in either
// direction that are dropped at random.
func (ifs *Interfaces) Loss(i int) float64 { return ifs.list[i].loss }

// Lossy returns how many packets SetLoss has dropped on their way out of interface i.
func (ifs *Interfaces) Lossy(i int) uint64 { return ifs.list[i].tx.drops[ip.DropLossy] }

// ClearCounters sets the counters of interface i to zero.
func (ifs *Interfaces) ClearCounters(i int) {
	f := &ifs.list[i]
	f.rx, f.tx = counters{}, counters{}
}

// Owns returns the interface with the address.
func (ifs *Interfaces) Owns(a netip.Addr) (int, bool) {
	return ifs.addrs.find(v4Of(a))
}

// Infos returns a snapshot of every interface, without what only its device knows.
func (ifs *Interfaces) Infos() []control.Interface {
	list := make([]control.Interface, 0, len(ifs.list))
	for i := range ifs.list {
		f := &ifs.list[i]
		if !f.Addr.IsValid() {
			continue // it was deleted
		}
		list = append(list, control.Interface{
			Index: i, Name: f.Name, Addr: f.Addr, Up: f.up, MTU: f.MTU,
			LossPercent: f.loss * 100, In: f.rx.info(), Out: f.tx.info(),
		})
	}
	return list
}

// drop counts a packet that is dropped at interface i and passes it to the tap.
func (ifs *Interfaces) drop(
	now clock.Time, i int, dir Direction, reason ip.DropReason, pieces [][]byte,
) {
	c := &ifs.list[i].rx
	if dir == Outbound {
		c = &ifs.list[i].tx
	}
	c.drops[reason]++
	if ifs.tap != nil {
		ifs.tap(now, i, dir, reason, pieces)
	}
}

// dropOne is drop for a packet in one piece.
func (ifs *Interfaces) dropOne(
	now clock.Time, i int, dir Direction, reason ip.DropReason, b []byte,
) {
	ifs.one[0] = b
	ifs.drop(now, i, dir, reason, ifs.one[:])
}

// show passes a packet in one piece to the tap, which must be set.
func (ifs *Interfaces) show(now clock.Time, i int, dir Direction, b []byte) {
	ifs.one[0] = b
	ifs.tap(now, i, dir, ip.DropNone, ifs.one[:])
}

// showLast passes the last packet of a batch to the tap, which must be set.
func (ifs *Interfaces) showLast(now clock.Time, i int, b *buffer.Batch) {
	trains := b.Trains()
	last := &trains[len(trains)-1]
	ifs.tap(now, i, Outbound, ip.DropNone, last.Packet(last.Count-1))
}
