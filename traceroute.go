package tidepool

import (
	"context"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// TracerouteOptions say how Traceroute goes about it. The zero TracerouteOptions are
// those of the program of that name.
type TracerouteOptions struct {
	// Protocol is what is sent: "udp" and empty, "icmp" or "tcp".
	Protocol string
	// First and MaxHops are the TTLs to begin and to end with; 0: 1 and 30.
	First, MaxHops int
	// Queries is how many probes a TTL has, up to 10; 0: 3.
	Queries int
	// Parallel is how many probes may wait for an answer at once; 0: 16.
	Parallel int
	// Port is the first UDP port (0: 33434), the first echo's number (0: 1), or the TCP
	// port (0: 80).
	Port int
	// Size is how long a packet is, its IP header included; 0: 60.
	Size int
	// DontFragment sets DF.
	DontFragment bool
	// PathMTU finds the MTU of the path: probes are as large as it takes, one after
	// another. Not with "tcp".
	PathMTU bool
	// Source is an address of the node to send from; invalid: that of the way out.
	Source netip.Addr
	// Timeout is how long an answer is waited for; 0: 5 s. It is less where others have
	// come: three times as long as one of the same TTL took, ten times one of a later.
	Timeout time.Duration
	// Each, if set, is called with every hop as it is found.
	Each func(Hop)
}

// Hop is what was found at one distance.
type Hop struct {
	TTL    int
	Probes []HopReply // one a probe
}

// HopReply is the answer to one probe. The zero HopReply is none.
type HopReply struct {
	From netip.Addr
	RTT  time.Duration
	// PathMTU is what the MTU up to here was found to be; 0: nothing new.
	PathMTU int
	// Err is nil for the router whose TTL it was and for the host that was asked for, and
	// an *ICMPError where there is no way on.
	Err error
}

// Traceroute finds the routers on the way to a host, an address or a name that the node
// knows, by packets whose TTL grows. Its error says why nothing could be sent, or is the
// cause of ctx's end; the hops that were found until then are returned too.
func (n *Node) Traceroute(ctx context.Context, host string, o TracerouteOptions) ([]Hop, error) {
	t, err := n.StartTraceroute(host, o)
	if err != nil {
		return nil, err
	}
	return t.Wait(ctx)
}

// Tracer is a traceroute under way.
type Tracer struct {
	trace *node.Trace
	each  func(Hop)
	host  netip.Addr
}

// StartTraceroute begins a traceroute and returns at once: what is due later happens
// while time passes, by itself or by a Clock's Advance. Somebody must call Wait then.
func (n *Node) StartTraceroute(host string, o TracerouteOptions) (*Tracer, error) {
	addr, err := n.lookup("traceroute", "ip4", host)
	if err != nil {
		return nil, err
	}
	r := control.Traceroute{
		Addr: addr, Kind: control.ProbeKind(o.Protocol), First: o.First, MaxHops: o.MaxHops,
		Queries: o.Queries, Parallel: o.Parallel, Port: o.Port, Size: o.Size, Wait: o.Timeout,
		DontFragment: o.DontFragment, PathMTU: o.PathMTU,
	}
	if o.Source.IsValid() {
		r.Source = o.Source.String()
	}
	t, err := n.inner().StartTrace(&r)
	if err != nil {
		return nil, probeError("traceroute", addr, err)
	}
	return &Tracer{trace: t, each: o.Each, host: addr}, nil
}

// Wait returns what the traceroute has found out when it is over, or ends it with ctx.
func (t *Tracer) Wait(ctx context.Context) ([]Hop, error) {
	if t.trace == nil {
		return nil, probeError("traceroute", t.host, control.ErrClosed)
	}
	var hops []Hop
	_, err := t.trace.Wait(ctx, func(h control.Hop) {
		hop := Hop{TTL: h.TTL}
		for i := range h.Replies {
			r := &h.Replies[i]
			hop.Probes = append(hop.Probes, HopReply{
				From: r.From, RTT: r.RTT, PathMTU: r.PathMTU, Err: icmpError(r),
			})
		}
		hops = append(hops, hop)
		if t.each != nil {
			t.each(hop)
		}
	})
	if err != nil {
		return hops, probeError("traceroute", t.host, err)
	}
	return hops, nil
}
