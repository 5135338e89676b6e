package lnx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// network indexes the files of one network for CheckNetwork.
type network struct {
	reports []report
	whole   bool // every file exists and is valid
	// The owner of an address or a UDP socket is the first interface that has it.
	addrs   map[netip.Addr]owner
	sockets map[string]owner
}

// owner is an interface of one of the files.
type owner struct {
	config *Config
	iface  *Interface
}

func (o owner) String() string { return o.iface.Name + " of " + o.config.Name }

// CheckNetwork compares the files of one network, each of which is valid by itself. It reports
// errors for duplicate addresses and sockets, and for neighbors whose UDP address belongs to
// another node. It reports notes for differences that may be intended. A nil stands for an invalid
// file. CheckNetwork then reports no missing nodes, because that file may declare them.
func CheckNetwork(configs ...*Config) Errors {
	whole := !slices.Contains(configs, nil)
	configs = slices.DeleteFunc(slices.Clone(configs), func(c *Config) bool { return c == nil })
	n := network{
		whole:   whole,
		reports: make([]report, len(configs)),
		addrs:   map[netip.Addr]owner{},
		sockets: map[string]owner{},
	}
	for i, c := range configs {
		n.reports[i] = report{file: cmp.Or(c.file, c.Name), lines: c.lines}
		n.addInterfaces(c, &n.reports[i])
	}
	for i, c := range configs {
		for j := range c.Neighbors {
			n.checkNeighbor(c, &c.Neighbors[j], &n.reports[i])
		}
	}
	var all Errors
	for i := range n.reports {
		all = append(all, n.reports[i].sorted()...)
	}
	return all
}

// addInterfaces adds one file's interfaces to the index.
func (n *network) addInterfaces(c *Config, r *report) {
	for i := range c.Interfaces {
		iface := &c.Interfaces[i]
		for _, p := range iface.Addrs() {
			addr := p.Addr()
			if addr.Is6() && addr.IsLinkLocalUnicast() {
				continue // unique only on its link
			}
			if first, taken := n.addrs[addr]; taken {
				r.add(iface.addrAt, addr.String(), addr.String()+" is also the address of "+
					first.String(), "an address of its own")
			} else {
				n.addrs[addr] = owner{c, iface}
			}
		}
		if iface.Tun != nil {
			continue
		}
		first, taken := n.sockets[iface.UDP.Key()]
		switch {
		case !taken:
			n.sockets[iface.UDP.Key()] = owner{c, iface}
		case first.config != c: // interfaces of one node may share a socket
			r.add(iface.udpAt, iface.UDP.String(), iface.UDP.String()+
				" is also the UDP address of "+first.String(), "an address of its own")
		}
	}
}

// checkNeighbor compares a neighbor line of a file with the neighbor's own file.
func (n *network) checkNeighbor(c *Config, neighbor *Neighbor, r *report) {
	text, udp := neighbor.Addr.String(), neighbor.UDP.String()
	first, bound := n.sockets[neighbor.UDP.Key()]
	if !bound {
		if n.whole {
			r.note(neighbor.udpAt, udp, "no node of this network has the UDP address "+udp)
		}
		return
	}
	peer := first.config
	i := slices.IndexFunc(peer.Interfaces, func(i Interface) bool { return i.is(neighbor) })
	if i < 0 {
		r.add(neighbor.Pos, text, text+" is not the address of "+peer.Name+" at "+udp,
			peer.addrsAt(neighbor.UDP))
		return
	}
	checkReverse(c, neighbor, owner{peer, &peer.Interfaces[i]}, r)
	checkRIPLink(c, neighbor, owner{peer, &peer.Interfaces[i]}, r)
}

// is reports whether a neighbor line describes the interface.
func (i *Interface) is(n *Neighbor) bool {
	return i.Tun == nil && i.UDP.Key() == n.UDP.Key() && i.Has(n.Addr)
}

// Describes reports whether a neighbor line of the node describes o, an interface of another node,
// as a neighbor on f. For a link-local address the line must also contain o's UDP address, because
// nodes on other links may have the same address.
func (c *Config) Describes(f, o *Interface) bool {
	return slices.ContainsFunc(c.Neighbors, func(n Neighbor) bool {
		local := n.Addr.Is6() && n.Addr.IsLinkLocalUnicast()
		return n.Iface == f.Name && (o.is(&n) || !local && o.Has(n.Addr))
	})
}

// HostAddrs returns the node's addresses except link-local ones. Addresses of interfaces with a NAT
// come first, because nodes on both sides can reach them.
func (c *Config) HostAddrs() (list []netip.Addr) {
	outside := 0
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		for _, p := range f.Addrs() {
			a := p.Addr()
			switch {
			case a.IsLinkLocalUnicast() || slices.Contains(list, a):
			case slices.ContainsFunc(c.NATs, func(n NAT) bool { return n.Iface == f.Name }):
				list = slices.Insert(list, outside, a)
				outside++
			default:
				list = append(list, a)
			}
		}
	}
	return list
}

// addrsAt lists the virtual addresses of the interfaces that bind a socket.
func (c *Config) addrsAt(udp HostPort) string {
	var addrs []string
	for i := range c.Interfaces {
		if c.Interfaces[i].Tun == nil && c.Interfaces[i].UDP.Key() == udp.Key() {
			for _, p := range c.Interfaces[i].Addrs() {
				addrs = append(addrs, p.Addr().String())
			}
		}
	}
	return diagnostic.OneOf(addrs)
}

// checkReverse records a note if the neighbor's file does not describe this node in the same way:
// it has no neighbor line for this node, another UDP address, or a subnet of another size.
func checkReverse(c *Config, neighbor *Neighbor, peer owner, r *report) {
	ours, ok := c.Interface(neighbor.Iface)
	if !ok {
		return // the Config was not made by Parse
	}
	family := func(p netip.Prefix) bool { return p.Addr().Is4() == neighbor.Addr.Is4() }
	i := slices.IndexFunc(peer.config.Neighbors, func(back Neighbor) bool {
		return ours.Has(back.Addr) && back.Addr.Is4() == neighbor.Addr.Is4()
	})
	text := neighbor.Addr.String()
	mine := slices.IndexFunc(ours.Addrs(), family)
	theirs := slices.IndexFunc(peer.iface.Addrs(), family)
	if mine < 0 || theirs < 0 {
		return // checkPlace or checkNeighbor reports this error
	}
	own, other := ours.Addrs()[mine], peer.iface.Addrs()[theirs]
	switch {
	case i < 0:
		r.note(neighbor.Pos, text, peer.config.Name+" does not list "+own.Addr().String()+
			" as its neighbor")
	case peer.config.Neighbors[i].UDP.Key() != ours.UDP.Key():
		r.note(neighbor.Pos, text, peer.config.Name+" answers to "+
			peer.config.Neighbors[i].UDP.String()+", but "+ours.Name+" has "+ours.UDP.String())
	case own.Bits() != other.Bits():
		r.note(neighbor.Pos, text, "the two ends of the link have subnets of different size, "+
			own.String()+" and "+other.String())
	}
}

// checkRIPLink records a note if two routers on a link do not understand each other's RIP.
func checkRIPLink(c *Config, neighbor *Neighbor, peer owner, r *report) {
	ours, ok := c.Interface(neighbor.Iface)
	if !ok || !c.SpeaksRIP() || !peer.config.SpeaksRIP() {
		return
	}
	text, them := neighbor.Addr.String(), peer.config.Name
	say := func(msg string) { r.note(neighbor.Pos, text, msg) }
	keys, dialect := peer.iface.RIP.Keys, c.Routing.Dialect(neighbor.Addr)
	switch {
	case dialect != peer.config.Routing.Dialect(neighbor.Addr):
		say(fmt.Sprintf("routing is %s here and %s at %s: they do not understand each other",
			c.Routing, peer.config.Routing, them))
	case dialect != RoutingRIP2 || ours.RIP.Passive || ours.RIP.Send == "none":
	case len(ours.RIP.Keys) == 0 && len(keys) > 0:
		say(them + " requires authentication, and this file has no key for it")
	case len(ours.RIP.Keys) > 0 && !slices.Contains(keys, ours.RIP.Keys[0]):
		say(fmt.Sprintf("%s does not know our %s, so it refuses our messages", them,
			ours.RIP.Keys[0].name()))
	}
}
