package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/nat"
)

// flow is the decision about one packet. The node reuses it for later packets between the same two
// addresses that arrive at the same interface.
type flow struct {
	in    int
	ours  bool // the packets are for this node, between addresses that can have a connection
	lossy bool // the packets are forwarded, with a loss draw for each
	// mtu is the outgoing interface's MTU; 0: the packets are not forwarded by this decision.
	mtu int
	out int
	hop netip.Addr
	// nat translates the packets to be forwarded. The decision for packets from outside is only
	// valid for the host inside: packets to other inside hosts need decisions of their own.
	nat    *nat.NAT
	inward bool
	inside netip.Addr
}

// flows caches the decisions about recent packets. Each flow has one place in the table of its
// family, and replaces another flow there. Routing.forget clears the tables after every change of
// addresses, routes or interfaces.
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

// of returns the flow of packet b, or nil if b has no complete header. If another flow has the
// place, of replaces it by a new flow without a decision.
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

// forwardCached forwards a packet by the cached decision of its flow, and returns the flow. done is
// false if the packet needs full processing, for example because no decision is cached, it has
// options that every router reads, or its TTL expires.
func (fw *forwarder) forwardCached(now clock.Time, i int, b []byte) (f *flow, done bool) {
	f = fw.routing.flows.of(b)
	if f == nil || f.in != i || len(b) > f.mtu || !ip.IsPlain(b) ||
		f.nat != nil && !fw.translateCached(now, f, b) {
		return f, false
	}
	fw.local.flushTrain(now) // keeps the order of delivered and forwarded packets
	ifs := fw.ifs
	in := &ifs.list[i].rx
	in.packets++
	in.bytes += uint64(len(b))
	in.forwarded++
	if ifs.tap != nil {
		ifs.show(now, i, Inbound, b)
	}
	if f.lossy && fw.loses(i, f.out) {
		ifs.dropOne(now, f.out, Outbound, ip.DropLossy, b)
		return f, true
	}
	ip.DecrementTTL(b)
	fw.enqueue(f.out, f.hop, b)
	return f, true
}
