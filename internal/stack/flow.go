package stack

import "net/netip"

// flow is the decision about one packet. Later packets between the same two addresses that arrive
// by the same interface take it.
type flow struct {
	ends  uint64 // both addresses, as ip.Ends returns them
	in    int
	ours  bool // for this node, between addresses that can have a connection
	lossy bool // to be forwarded, with a loss draw for each
	// mtu is that of the outgoing interface. It is zero for packets to this node, and in an empty
	// entry.
	mtu int
	out int
	hop netip.Addr
}

// flows caches the decisions about recent packets. Each flow has one place in the table and
// replaces the entry that is there. Routing.forget clears the table; every change of addresses,
// routes or interfaces calls it.
type flows [1 << flowBits]flow

const flowBits = 6

func (f *flows) of(ends uint64) *flow { return &f[ends*0x9e3779b97f4a7c15>>(64-flowBits)] }

// run is a sequence of packets to forward to one next hop. All have size bytes, except the last,
// which may be shorter.
type run struct {
	iface   int
	hop     netip.Addr
	size    int
	packets int
	at      int  // bytes of the first packet's payload that were sent in fragments
	checked bool // the transport's checksums are verified; forwarding does not change them
	short   bool // the last packet is shorter, so none may follow it
}
