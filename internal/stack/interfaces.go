package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Interface attaches the node to a link.
type Interface struct {
	Name string
	Addr netip.Prefix // the node's IPv4 address, with the prefix length of the link's network
	// IPv6 are the node's IPv6 addresses on the link, with the prefix length of the link's network.
	// If none of them is link-local, the node adds the one that ip.LinkLocal derives from the
	// first.
	IPv6 []netip.Prefix
	MTU  int // MTU in bytes, including the IP header; 0: DefaultMTU
	// DefaultMSS assumes an MSS of 536 bytes for TCP peers on the link that send no MSS option (RFC
	// 9293 §3.7.1). If it is false, the MTU limits the segments, as course nodes expect.
	DefaultMSS bool
	// Discovery runs neighbor discovery on the link. Nil: its neighbors are configured.
	Discovery *Discovery
	// Neighbors are the nodes on the link; nil: unknown. If none of them is link-local, the node
	// derives a link-local address from each IPv6 one, as it does for its own addresses.
	Neighbors []netip.Addr
	// NAT translates the packets that the router forwards over the interface. The interface's
	// address is the outside address. The stack ignores the NAT's Addr, Own and Rand. Nil: no NAT.
	NAT *nat.Config

	// These are results of discovery: on-link prefixes from routers, and addresses that are used
	// only if no other fits.
	onLink     []netip.Prefix
	deprecated []netip.Addr
	hopLimit   uint8 // hop limit of IPv6 packets, from a router; 0: defaultTTL
}

// Direction is the direction of a packet at an interface.
type Direction uint8

// These are the directions.
const (
	Inbound Direction = iota
	Outbound
)

// Tap is called when a packet arrives, leaves or is dropped. The pieces are only valid during the
// call. The reason is ip.DropNone for a packet that is not dropped.
type Tap func(now clock.Time, iface int, dir Direction, reason ip.DropReason, pieces [][]byte)

// Interfaces contains the interfaces' addresses, groups and counters.
type Interfaces struct {
	list        []iface
	addrs       addresses
	groups      map[membership]int // memberships, except those of UDP sockets
	joins       int                // number of changes of groups
	udp         *udp.Host
	tcp         *tcp.Host
	translators translators
	router      bool // the node forwards packets
	in          *incoming
	discovery   *discoverers
	candidates  []icmp.Candidate // memory that Source reuses
	tap         Tap
	one         [1][]byte // memory for calls of the tap
}

// iface is the state of an interface.
type iface struct {
	Interface
	addr     netip.Addr       // IPv4 address; 0.0.0.0: none
	ipv4     network          // network of addr
	link     netip.Addr       // the link-local address, with the interface as its zone
	networks []netip.Prefix   // networks of the addresses, and onLink; without fe80::/64
	sources  []icmp.Candidate // IPv6 addresses of the interface that are not link-local
	nat      *nat.NAT
	up       bool
	loss     float64 // share of forwarded packets to drop, from 0 to 1
	rx       counters
	tx       counters
}

type counters struct {
	packets, bytes uint64
	// fragments counts received fragments for this node, or sent fragments; fragmented counts the
	// packets that were reassembled, or sent as fragments.
	fragments, fragmented uint64
	// Every received packet is counted once, as delivered to a protocol, as forwarded, or in drops.
	// A delivered packet and its fragments count as one.
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

// check sets defaults, and returns an error if the interface is invalid.
func (c *Interface) check() error {
	if c.Addr.IsValid() && !c.Addr.Addr().Is4() {
		return fmt.Errorf("stack: interface %s: address %v is not IPv4", c.Name, c.Addr)
	}
	least := ip.MinMTU
	if len(c.IPv6) > 0 {
		least = ip.MinMTU6 // minimum of RFC 8200 §5
	}
	for _, p := range c.IPv6 {
		if a := p.Addr(); !a.Is6() || isSpecial(a) || a.Zone() != "" {
			return fmt.Errorf("stack: interface %s: %v is not the IPv6 address of a node",
				c.Name, p)
		}
	}
	c.addLinkLocal()
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.MTU < least || c.MTU > ip.MaxPacketLen {
		return fmt.Errorf("stack: interface %s: MTU %d: must be %d to %d", c.Name, c.MTU,
			least, ip.MaxPacketLen)
	}
	return c.checkNAT()
}

// Addrs returns the interface's addresses, IPv4 first.
func (c *Interface) Addrs() []netip.Prefix {
	if !c.Addr.IsValid() {
		return c.IPv6
	}
	return append([]netip.Prefix{c.Addr}, c.IPv6...)
}

// exists reports whether the interface has an address. One that has none was deleted.
func (c *Interface) exists() bool { return c.Addr.IsValid() || len(c.IPv6) > 0 }

// addLinkLocal adds the link-local addresses that are not configured (RFC 4291 §2.8). A host
// without an address forms one (RFC 7217).
func (c *Interface) addLinkLocal() {
	if d := c.Discovery; len(c.IPv6) == 0 && d != nil && d.Auto {
		c.IPv6 = []netip.Prefix{icmp.StableLinkLocal(c.Name, d.Secret)}
	}
	if len(c.IPv6) > 0 && !slices.ContainsFunc(c.IPv6, isLinkLocal) {
		p := netip.PrefixFrom(ip.LinkLocal(c.IPv6[0].Addr()), 64)
		c.IPv6 = append(slices.Clip(c.IPv6), p)
	}
	if !slices.ContainsFunc(c.Neighbors, netip.Addr.IsLinkLocalUnicast) {
		for _, a := range c.Neighbors {
			if a.Is6() {
				c.Neighbors = append(slices.Clip(c.Neighbors), ip.LinkLocal(a))
			}
		}
	}
}

// zoned returns an address with the interface as its zone if the address is link-local. Such an
// address identifies a node only on its link (RFC 4007 §6).
func (c *Interface) zoned(a netip.Addr) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(c.Name)
	}
	return a
}

// configure computes, from the configuration, the state that packet processing needs.
func (f *iface) configure(c Interface) {
	f.Interface = c
	f.addr, f.ipv4, f.link = netip.IPv4Unspecified(), network{}, netip.Addr{}
	f.networks, f.sources = slices.Clone(c.onLink), nil
	if c.Addr.IsValid() {
		f.addr, f.ipv4 = c.Addr.Addr(), networkOf(c.Addr)
		f.networks = append(f.networks, c.Addr.Masked())
	}
	for _, p := range c.IPv6 {
		if a := f.zoned(p.Addr()); a.Zone() == "" {
			if !slices.Contains(f.networks, p.Masked()) {
				f.networks = append(f.networks, p.Masked())
			}
			f.sources = append(f.sources, icmp.Candidate{
				Addr: a, Bits: p.Bits(), Deprecated: slices.Contains(c.deprecated, a),
			})
		} else if !f.link.IsValid() {
			f.link = a
		}
	}
}

// hasFamily reports whether the interface has an address of a's family.
func (f *iface) hasFamily(a netip.Addr) bool {
	if a.Is6() {
		return len(f.IPv6) > 0
	}
	return f.Addr.IsValid()
}

// zone returns the interface that is the zone of an address.
func (ifs *Interfaces) zone(a netip.Addr) (int, bool) {
	i := slices.IndexFunc(ifs.list, func(f iface) bool { return f.Name == a.Zone() && f.exists() })
	return max(i, 0), i >= 0
}

// Scope returns a destination with the zone that it needs, as control.Scope does.
func (ifs *Interfaces) Scope(a netip.Addr) (netip.Addr, error) {
	if a.Zone() == "" && !(a.Is6() && a.IsLinkLocalUnicast()) {
		return a, nil
	}
	var links []string
	for i := range ifs.list {
		if f := &ifs.list[i]; f.exists() && f.link.IsValid() {
			links = append(links, f.Name)
		}
	}
	return control.Scope(a, links)
}

// set replaces the interfaces. checkInterfaces has checked the list.
func (ifs *Interfaces) set(list []Interface) {
	ifs.addrs = addresses{byAddr: map[v4]int{}, ipv6: map[netip.Addr]int{}}
	for i, c := range list {
		if i == len(ifs.list) {
			ifs.list = append(ifs.list, iface{})
		}
		f := &ifs.list[i]
		f.up = c.exists() && (f.up || !f.exists())
		f.configure(c)
		ifs.addrs.add(f, i)
	}
	ifs.setNATs()
}

func (ifs *Interfaces) configs() (list []Interface) {
	for i := range ifs.list {
		list = append(list, ifs.list[i].Interface)
	}
	return list
}

// checkInterfaces sets defaults in a new list of interfaces, and returns an error if the list is
// invalid.
func (ifs *Interfaces) checkInterfaces(list []Interface) error {
	if len(list) < len(ifs.list) {
		return errors.New("stack: the new list has fewer interfaces than the old one")
	}
	own, exists := map[netip.Addr]string{}, false
	for i := range list {
		c := &list[i]
		if !c.exists() && (c.Discovery == nil || !c.Discovery.Auto) {
			*c = Interface{}
			continue
		}
		exists = true
		if err := c.check(); err != nil {
			return err
		}
		for _, p := range c.Addrs() {
			a := c.zoned(p.Addr())
			if other, dup := own[a]; dup {
				return fmt.Errorf("stack: interfaces %s and %s have the same address %v", other,
					c.Name, a)
			}
			own[a] = c.Name
		}
	}
	if !exists {
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
	return ifs.addrs.find(a)
}

// Infos returns a snapshot of every interface, without the fields that only the device can fill in.
func (ifs *Interfaces) Infos() []control.Interface {
	list := make([]control.Interface, 0, len(ifs.list))
	for i := range ifs.list {
		f := &ifs.list[i]
		if !f.exists() {
			continue // the interface was deleted
		}
		list = append(list, control.Interface{
			Index: i, Name: f.Name, Addr: f.Addr, IPv6: f.IPv6, Up: f.up, MTU: f.MTU,
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

// dropOne is like drop, for a packet in one piece.
func (ifs *Interfaces) dropOne(
	now clock.Time, i int, dir Direction, reason ip.DropReason, b []byte,
) {
	ifs.one[0] = b
	ifs.drop(now, i, dir, reason, ifs.one[:])
}

// show passes a packet in one piece to the tap, which must not be nil.
func (ifs *Interfaces) show(now clock.Time, i int, dir Direction, b []byte) {
	ifs.one[0] = b
	ifs.tap(now, i, dir, ip.DropNone, ifs.one[:])
}

// showLast passes the last packet of a batch to the tap, which must not be nil.
func (ifs *Interfaces) showLast(now clock.Time, i int, b *buffer.Batch) {
	trains := b.Trains()
	last := &trains[len(trains)-1]
	ifs.tap(now, i, Outbound, ip.DropNone, last.Packet(last.Count-1))
}
