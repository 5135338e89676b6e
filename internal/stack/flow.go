package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/nat"
)

// flow is the decision about one packet. Later packets between the same two addresses that arrive
// by the same interface take it.
type flow struct {
	in    int
	ours  bool // for this node, between addresses that can have a connection
	lossy bool // to be forwarded, with a loss draw for each
	// mtu is that of the outgoing interface. It is zero for packets to this node, and in an empty
	// entry.
	mtu int
	out int
	hop netip.Addr
	// nat translates the packets to be forwarded. Those from outside must be for the host inside:
	// the packets of another need another decision.
	nat    *nat.NAT
	inward bool
	inside netip.Addr
}

// flows caches the decisions about recent packets. Each flow has one place in the table of its
// family and replaces the entry in it. Routing.forget clears them; every change of addresses,
// routes or interfaces calls it.
type flows struct {
	ipv4 [1 << flowBits]flow4
	ipv6 [1 << flowBits]flow6
}

type flow4 struct {
	ends uint64
	flow
}

type flow6 struct {
	ends ip.Ends6
	flow
}

const flowBits = 6

// of returns the flow of b, a packet with a complete header, and nil for another. If the place has
// another flow, the new one replaces it, without a decision.
func (f *flows) of(b []byte) *flow {
	if len(b) < ip.HeaderLen {
		return nil
	}
	if b[0]>>4 == 4 {
		ends := ip.Ends(b)
		e := &f.ipv4[ends*0x9e3779b97f4a7c15>>(64-flowBits)]
		if e.ends != ends {
			e.ends, e.ours, e.mtu = ends, false, 0
		}
		return &e.flow
	}
	if len(b) < ip.HeaderLen6 {
		return nil
	}
	ends := ip.EndsOf6(b)
	e := &f.ipv6[ends.Hash()>>(64-flowBits)]
	if e.ends != ends {
		e.ends, e.ours, e.mtu = ends, false, 0
	}
	return &e.flow
}

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
