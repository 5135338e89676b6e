package lnx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// network is the files of one network, indexed for CheckNetwork.
type network struct {
	reports []report
	whole   bool // no file of it is left out
	// The owner of each address and of each UDP socket, from the first file that names it.
	addrs   map[netip.Addr]owner
	sockets map[string]owner
}

// owner is an interface of one of the files.
type owner struct {
	config *Config
	iface  *Interface
}

func (o owner) String() string { return o.iface.Name + " of " + o.config.Name }

// CheckNetwork compares files that are valid one by one and together describe one
// network. Duplicate addresses and sockets are mistakes, and so are neighbours whose
// UDP address leads to another node; anything that may be intended is a note. A nil
// stands for an invalid file: CheckNetwork then reports no missing node, because that
// file may describe it.
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

// addInterfaces puts one file's interfaces into the index.
func (n *network) addInterfaces(c *Config, r *report) {
	for i := range c.Interfaces {
		iface := &c.Interfaces[i]
		addr := iface.Addr.Addr()
		if first, taken := n.addrs[addr]; taken {
			r.add(iface.addrAt, addr.String(), addr.String()+" is also the address of "+
				first.String(), "an address of its own")
		} else {
			n.addrs[addr] = owner{c, iface}
		}
		if iface.Tun != nil {
			continue
		}
		first, taken := n.sockets[iface.UDP.key()]
		switch {
		case !taken:
			n.sockets[iface.UDP.key()] = owner{c, iface}
		case first.config != c: // a shared socket is taken by the node itself
			r.add(iface.udpAt, iface.UDP.String(), iface.UDP.String()+
				" is also the UDP address of "+first.String(), "an address of its own")
		}
	}
}

// checkNeighbor compares what a file says of a neighbour with what the
// neighbour's own file says.
func (n *network) checkNeighbor(c *Config, neighbor *Neighbor, r *report) {
	text, udp := neighbor.Addr.String(), neighbor.UDP.String()
	first, bound := n.sockets[neighbor.UDP.key()]
	if !bound {
		if n.whole {
			r.note(neighbor.udpAt, udp, "no node of this network has the UDP address "+udp)
		}
		return
	}
	peer := first.config
	i := slices.IndexFunc(peer.Interfaces, func(i Interface) bool {
		return i.Tun == nil && i.UDP.key() == neighbor.UDP.key() && i.Addr.Addr() == neighbor.Addr
	})
	if i < 0 {
		r.add(neighbor.Pos, text, text+" at "+udp+" is another node",
			peer.Name+" with "+peer.addrsAt(neighbor.UDP))
		return
	}
	checkReverse(c, neighbor, owner{peer, &peer.Interfaces[i]}, r)
	checkRIPLink(c, neighbor, owner{peer, &peer.Interfaces[i]}, r)
}

// addrsAt lists the virtual addresses of the interfaces that bind a socket.
func (c *Config) addrsAt(udp HostPort) string {
	var addrs []string
	for i := range c.Interfaces {
		if c.Interfaces[i].Tun == nil && c.Interfaces[i].UDP.key() == udp.key() {
			addrs = append(addrs, c.Interfaces[i].Addr.Addr().String())
		}
	}
	return oneOf(addrs)
}

// checkReverse notes a link that its other end sees differently.
func checkReverse(c *Config, neighbor *Neighbor, peer owner, r *report) {
	ours, ok := c.Interface(neighbor.Iface)
	if !ok {
		return // of a Config that Parse did not make
	}
	i := slices.IndexFunc(peer.config.Neighbors, func(back Neighbor) bool {
		return back.Addr == ours.Addr.Addr()
	})
	text := neighbor.Addr.String()
	switch {
	case i < 0:
		r.note(neighbor.Pos, text, peer.config.Name+" does not list "+ours.Addr.Addr().String()+
			" as its neighbor")
	case peer.config.Neighbors[i].UDP.key() != ours.UDP.key():
		r.note(neighbor.Pos, text, peer.config.Name+" answers to "+
			peer.config.Neighbors[i].UDP.String()+", but "+ours.Name+" has "+ours.UDP.String())
	case ours.Addr.Bits() != peer.iface.Addr.Bits():
		r.note(neighbor.Pos, text, "the two ends of the link have subnets of different size, "+
			ours.Addr.String()+" and "+peer.iface.Addr.String())
	}
}

// checkRIPLink notes two routers on a link of which one will not understand the other.
func checkRIPLink(c *Config, neighbor *Neighbor, peer owner, r *report) {
	ours, ok := c.Interface(neighbor.Iface)
	if !ok || !c.speaksRIP() || !peer.config.speaksRIP() {
		return
	}
	text, them := neighbor.Addr.String(), peer.config.Name
	say := func(msg string) { r.note(neighbor.Pos, text, msg) }
	keys := peer.iface.RIP.Keys
	switch {
	case c.Routing != peer.config.Routing:
		say(fmt.Sprintf("routing is %s here and %s at %s: they do not understand each other",
			c.Routing, peer.config.Routing, them))
	case c.Routing != RoutingRIP2 || ours.RIP.Passive || ours.RIP.Send == "none":
	case len(ours.RIP.Keys) == 0 && len(keys) > 0:
		say(them + " requires authentication, and this file has no key for it")
	case len(ours.RIP.Keys) > 0 && !slices.Contains(keys, ours.RIP.Keys[0]):
		say(fmt.Sprintf("%s does not know our %s, so it refuses our messages", them,
			ours.RIP.Keys[0].name()))
	}
}
