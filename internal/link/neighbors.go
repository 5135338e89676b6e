package link

import "net/netip"

// iface is one interface of a device.
type iface struct {
	Interface
	up       bool
	hops     map[[4]byte]*neighbor
	counters Counters
}

// neighbor is one node on an interface.
type neighbor struct {
	Neighbor
	on *iface
	to address // 0: the name has no address yet
	// failed is set by the socket when the kernel would not send there: the
	// name may mean another address by now.
	failed bool
	down   bool // the last packet met a TUN device that is not up

	heard, out uint64 // packets that came, and went
	refusals   uint64 // messages that nobody is there
	refusal    error  // what the last said; nil: that nobody has the port
	problem    error  // why the last packet did not go; nil: it went
}

// bounced is what the network has said of a datagram of ours.
type bounced struct {
	to      address
	refused bool // nobody has the port
	err     error
}

// sent accounts for packets that the kernel took.
func (n *neighbor) sent(packets, bytes int) {
	n.on.counters.TxPackets += uint64(packets)
	n.on.counters.TxBytes += uint64(bytes)
	n.out += uint64(packets)
	n.problem, n.down = nil, false
}

// lost accounts for packets that the kernel would not send.
func (n *neighbor) lost(packets int, why Drop) {
	n.on.counters.Drops[why] += uint64(packets)
	n.failed = n.failed || why == DropRefused
	n.down = why == DropKernelDown
}

// table is who is where: the interfaces by number, and for a UDP address the
// neighbours that send from it.
type table struct {
	ifaces    []*iface // as configured
	byID      []*iface // nil where the number is another device's
	neighbors []*neighbor
	maxMTU    int
	from      map[address][]*neighbor

	// The last answer, for what comes in a row.
	lastFrom  address
	lastOwner []*neighbor
}

func newTable(interfaces []Interface) *table {
	t := &table{}
	for _, cfg := range interfaces {
		f := &iface{Interface: cfg, up: true, hops: map[[4]byte]*neighbor{}}
		for len(t.byID) <= cfg.ID {
			t.byID = append(t.byID, nil)
		}
		t.byID[cfg.ID] = f
		t.ifaces = append(t.ifaces, f)
		t.maxMTU = max(t.maxMTU, f.MTU)
		for _, nb := range cfg.Neighbors {
			n := &neighbor{Neighbor: nb, on: f}
			f.hops[nb.Addr] = n
			t.neighbors = append(t.neighbors, n)
		}
	}
	return t
}

// names returns the names among the neighbours' hosts.
func (t *table) names() []string {
	var names []string
	seen := map[string]bool{}
	for _, n := range t.neighbors {
		if _, ok := literal(n.Host); !ok && !seen[n.Host] {
			seen[n.Host] = true
			names = append(names, n.Host)
		}
	}
	return names
}

// learn gives every neighbour the address that its host has now.
func (t *table) learn(addrs map[string]netip.Addr) {
	t.from = make(map[address][]*neighbor, len(t.neighbors))
	t.lastFrom, t.lastOwner = 0, nil
	for _, n := range t.neighbors {
		ip, ok := literal(n.Host)
		if !ok {
			ip = addrs[n.Host]
		}
		n.to, n.failed = addressOf(netip.AddrPortFrom(ip, n.Port)), false
		if n.to != 0 {
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

// senders returns the neighbours that send from a UDP address: more than one
// when several links lead to one peer.
func (t *table) senders(from address) []*neighbor {
	if from != t.lastFrom {
		t.lastFrom, t.lastOwner = from, t.from[from]
	}
	return t.lastOwner
}

// Where the addresses of an IPv4 packet are (RFC 791 §3.1). Nothing else of the
// packet is looked at here.
const (
	sourceAt      = 12
	destinationAt = 16
	addressesEnd  = 20
)

// linkOf tells which of several links to one peer a packet came over: by its
// source, if that is the peer's end of one, else by its destination, if that is
// our end of one. What is on its way through bears neither: then any link is as
// good, and it is the first that is up.
func linkOf(senders []*neighbor, packet []byte) *neighbor {
	if len(packet) >= addressesEnd {
		src := [4]byte(packet[sourceAt:destinationAt])
		for _, n := range senders {
			if n.Addr == src {
				return n
			}
		}
		dst := [4]byte(packet[destinationAt:addressesEnd])
		for _, n := range senders {
			if n.on.Local == dst {
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

// literal reads a host that needs no resolver. RFC 6761 §6.3: localhost is the
// loopback address, whatever a resolver says.
func literal(host string) (netip.Addr, bool) {
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	a, err := netip.ParseAddr(host)
	return a, err == nil
}
