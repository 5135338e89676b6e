package link

import (
	"net/netip"
	"slices"
)

// iface is one interface of a device.
type iface struct {
	Interface
	up       bool
	hops     map[netip.Addr]*neighbor
	counters Counters
}

// neighbor is one node on an interface.
type neighbor struct {
	Neighbor
	on *iface
	to address // UDP address; none: the name has no address yet
	// failed is set by the socket when the kernel could not send, because the name's address may
	// have changed.
	failed bool
	down   bool // the TUN device was down when the last packet was sent

	rx, tx   uint64 // packets received from the neighbor, and sent to it
	refusals uint64 // number of ICMP errors
	refusal  error  // the last ICMP error; nil: port unreachable
	problem  error  // why the last packet was not sent; nil: it was sent
}

// icmpError is an ICMP error about a sent datagram.
type icmpError struct {
	to      address
	refused bool // the error says that the port is unreachable
	err     error
}

// sent counts packets that the kernel accepted.
func (n *neighbor) sent(packets, bytes int) {
	n.on.counters.TxPackets += uint64(packets)
	n.on.counters.TxBytes += uint64(bytes)
	n.tx += uint64(packets)
	n.problem, n.down = nil, false
}

// lost counts packets that the kernel did not send.
func (n *neighbor) lost(packets int, why Drop) {
	n.on.counters.Drops[why] += uint64(packets)
	n.failed = n.failed || why == DropRefused
	n.down = why == DropKernelDown
}

// table holds the interfaces by number, and the neighbors by UDP address.
type table struct {
	ifaces    []*iface // interfaces in the order of the configuration
	byID      []*iface // interfaces by number; nil: the interface belongs to another device
	neighbors []*neighbor
	maxMTU    int
	network   string // network of the bound address, as in Config
	from      map[address][]*neighbor

	// The following fields are the last result, for consecutive datagrams of one sender.
	lastFrom  address
	lastOwner []*neighbor
}

func newTable(c Config) *table {
	t := &table{network: c.network}
	for _, cfg := range c.Interfaces {
		f := &iface{Interface: cfg, up: true, hops: map[netip.Addr]*neighbor{}}
		for len(t.byID) <= cfg.ID {
			t.byID = append(t.byID, nil)
		}
		t.byID[cfg.ID] = f
		t.ifaces = append(t.ifaces, f)
		t.maxMTU = max(t.maxMTU, f.MTU)
		for _, nb := range cfg.Neighbors {
			n := &neighbor{Neighbor: nb, on: f}
			f.hops[nb.Addr] = n
			for _, a := range nb.Others {
				f.hops[a] = n
			}
			t.neighbors = append(t.neighbors, n)
		}
	}
	return t
}

// names returns the host names of the neighbors.
func (t *table) names() []string {
	var names []string
	seen := map[string]bool{}
	for _, n := range t.neighbors {
		if _, ok := parseLiteral(n.Host); !ok && !seen[n.Host] {
			seen[n.Host] = true
			names = append(names, n.Host)
		}
	}
	return names
}

// learn updates the address of every neighbor.
func (t *table) learn(addrs map[string]netip.Addr) {
	t.from = make(map[address][]*neighbor, len(t.neighbors))
	t.lastFrom, t.lastOwner = address{}, nil
	for _, n := range t.neighbors {
		ip, ok := parseLiteral(n.Host)
		if !ok {
			ip = addrs[n.Host]
		}
		n.to, n.failed = address{}, false
		if fits(t.network, ip) {
			n.to = addressOf(netip.AddrPortFrom(ip, n.Port))
		}
		if n.to.port != 0 {
			t.from[n.to] = append(t.from[n.to], n)
		}
	}
}

// at returns the interface with the node's number id, or nil.
func (t *table) at(id int) *iface {
	if id < 0 || id >= len(t.byID) {
		return nil
	}
	return t.byID[id]
}

// senders returns the neighbors with a UDP address. There are several if several links lead to one
// peer.
func (t *table) senders(from address) []*neighbor {
	if from != t.lastFrom {
		t.lastFrom, t.lastOwner = from, t.from[from]
	}
	return t.lastOwner
}

// These are offsets of the addresses in a packet of IPv4 (RFC 791 §3.1) and IPv6 (RFC 8200 §3).
const (
	sourceAt       = 12
	destinationAt  = 16
	sourceAt6      = 8
	destinationAt6 = 24
)

// addresses returns the addresses of a packet; false: the packet is too short.
func addresses(b []byte) (src, dst netip.Addr, ok bool) {
	switch {
	case len(b) >= ip6Len && b[0]>>4 == 6:
		src = netip.AddrFrom16([16]byte(b[sourceAt6:]))
		return src, netip.AddrFrom16([16]byte(b[destinationAt6:])), true
	case len(b) >= ipMinLen:
		src = netip.AddrFrom4([4]byte(b[sourceAt:]))
		return src, netip.AddrFrom4([4]byte(b[destinationAt:])), true
	}
	return src, dst, false
}

// linkOf finds which of several links to one peer a packet came over: by its source, if that is the
// peer's address on a link, or else by its destination, if that is ours. A forwarded packet has
// neither; linkOf then returns the first link that is up.
func linkOf(senders []*neighbor, packet []byte) *neighbor {
	if src, dst, ok := addresses(packet); ok {
		for _, n := range senders {
			if n.Addr == src || slices.Contains(n.Others, src) {
				return n
			}
		}
		for _, n := range senders {
			if n.on.Local == dst || slices.Contains(n.on.Others, dst) {
				return n
			}
		}
	}
	for _, n := range senders {
		if n.on.up {
			return n
		}
	}
	return senders[0]
}

// parseLiteral parses a host that needs no resolver. RFC 6761 §6.3: localhost is the loopback
// address, whatever a resolver says.
func parseLiteral(host string) (netip.Addr, bool) {
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	a, err := netip.ParseAddr(host)
	return a, err == nil
}
