package stack

import (
	"github.com/tidepool-net/tidepool/internal/ip"
)

// flow is the decision about one packet. Later packets between the same two addresses that arrive
// by the same interface take it.
type flow struct {
	ends  uint64 // the addresses, as ip.Ends reads them
	in    int
	ours  bool // they are for this node, and their ends can be those of a connection
	lossy bool // they are for others, and loss is drawn for each
	// mtu is that of the interface out, by which what is for others leaves for the next hop. It is
	// zero for what is ours, and where nothing was decided.
	mtu int
	out int
	hop ip.Addr
}

// flows are the flows of recent packets. Each has one place in the table and replaces the flow that
// is there. Routing.forget clears the table; whatever changes what a decision rests on calls it.
type flows [1 << flowBits]flow

const flowBits = 6

func (f *flows) of(ends uint64) *flow { return &f[ends*0x9e3779b97f4a7c15>>(64-flowBits)] }

// run is one or more packets for others that leave one after another for one next hop: each of
// size bytes but the last, which may be shorter.
type run struct {
	iface   int
	hop     ip.Addr
	size    int
	packets int
	at      int  // bytes of the first one's payload that have left in fragments, if it is cut
	sound   bool // the checksums of the transport were checked; forwarding changes nothing in them
	short   bool // the last is shorter, and none joins it
}
