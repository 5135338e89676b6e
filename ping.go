package tidepool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// PingOptions say how Ping goes about it. The zero PingOptions send one echo request of
// 56 bytes.
type PingOptions struct {
	// Count is how many requests are sent; 0: one. Negative: until the context ends.
	Count int
	// Interval is the time between requests; 0: a second.
	Interval time.Duration
	// Size is how many bytes a request carries, up to 65507; 0: 56. Negative: none.
	Size int
	// Pattern, up to 16 bytes, fills them; empty: they count up.
	Pattern []byte
	// TTL is how many routers a request may pass, and one more; 0: 64.
	TTL int
	// DontFragment has no router cut a request to pieces, nor the node: it fails with
	// EMSGSIZE where it is too large for a link.
	DontFragment bool
	// Source is an address of the node to send from; invalid: that of the way out.
	Source netip.Addr
	// Broadcast allows a broadcast address, for which many may reply.
	Broadcast bool
	// Timeout is how long the first reply is waited for behind the last request; 0: 10 s.
	// When there was one it is twice the longest round trip, at least Interval and a second.
	Timeout time.Duration
	// Each, if set, is called with every reply as Wait, or Ping, sees it.
	Each func(PingReply)
}

// PingReply is what came back for an echo request.
type PingReply struct {
	Seq  int        // which request: 1 is the first; after 65535 comes 0
	From netip.Addr // who sent it; of a local error it is invalid
	TTL  int        // that it arrived with
	Size int        // bytes of ICMP: the data and 8
	RTT  time.Duration
	At   time.Time
	// Duplicate is another reply to a request that had one.
	Duplicate bool
	// Err is nil for a reply, an *ICMPError for a report that the request did not arrive,
	// and another error when it could not be sent.
	Err error
}

// maxReplies bounds what a PingResult lists.
const maxReplies = 1 << 16

// PingResult is what a ping has found out. Requests that nothing came back for are no
// error, they are missing among the replies.
type PingResult struct {
	// Replies are the first 65536 that came back, errors among them.
	Replies []PingReply
	Sent    int
	// Received is how many requests were replied to, Duplicates how many replies came
	// beside those, and Errors how many requests somebody reported lost.
	Received, Duplicates, Errors int
	// The round trips of all replies; StdDev is ping's mdev.
	Min, Avg, Max, StdDev time.Duration
}

// Loss is the share, 0 to 1, of requests without a reply.
func (r *PingResult) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return float64(r.Sent-r.Received) / float64(r.Sent)
}

// Ping sends ICMP echo requests to a host, an address or a name that the node knows,
// and waits for replies. Its error says why nothing could be sent, or is the cause of
// ctx's end; the result holds what was found out until then.
func (n *Node) Ping(ctx context.Context, host string, o PingOptions) (PingResult, error) {
	p, err := n.StartPing(host, o)
	if err != nil {
		return PingResult{}, err
	}
	return p.Wait(ctx)
}

// Pinger is a ping under way.
type Pinger struct {
	ping *operator.Ping
	opt  PingOptions
	host netip.Addr
}

// StartPing begins to ping a host and returns at once: what is due later happens while
// time passes, by itself or by a Clock's Advance. Somebody must call Wait then.
func (n *Node) StartPing(host string, o PingOptions) (*Pinger, error) {
	addr, err := n.lookup("ping", "ip4:icmp", host)
	if err != nil {
		return nil, err
	}
	r := control.Ping{
		Addr: addr, Count: max(o.Count, 0), Interval: o.Interval, Size: o.Size,
		Pattern: o.Pattern, TTL: o.TTL, Timeout: o.Timeout, Broadcast: o.Broadcast,
	}
	if o.Count == 0 {
		r.Count = 1
	}
	if o.DontFragment {
		r.Fragment = "do"
	}
	if o.Source.IsValid() {
		r.Source = o.Source.String()
	}
	p, err := n.inner().Requests.StartPing(&r)
	if err != nil {
		return nil, probeError("ping", addr, err)
	}
	return &Pinger{ping: p, opt: o, host: addr}, nil
}

// Wait returns what the ping has found out when it is over, or ends it with ctx.
func (p *Pinger) Wait(ctx context.Context) (PingResult, error) {
	if p.ping == nil {
		return PingResult{}, probeError("ping", p.host, control.ErrClosed)
	}
	var replies []PingReply
	stats, over := p.ping.Wait(ctx, func(r control.Reply) {
		reply := pingReply(&r)
		if len(replies) < maxReplies {
			replies = append(replies, reply)
		}
		if p.opt.Each != nil {
			p.opt.Each(reply)
		}
	})
	result := PingResult{
		Replies: replies, Sent: stats.Sent, Received: stats.Received,
		Duplicates: stats.Duplicates, Errors: stats.Errors,
		Min: stats.Min, Avg: stats.Avg, Max: stats.Max, StdDev: stats.Mdev,
	}
	if over != nil {
		return result, probeError("ping", p.host, over)
	}
	return result, nil
}

func pingReply(r *control.Reply) PingReply {
	return PingReply{
		Seq: r.Seq, From: r.From, TTL: r.TTL, Size: r.Size, RTT: r.RTT, At: r.At,
		Duplicate: r.Duplicate, Err: icmpError(r),
	}
}

// probeError is an error of package net about a probe.
func probeError(op string, to netip.Addr, err error) error {
	if errors.Is(err, control.ErrClosed) {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "ip4:icmp", Addr: &net.IPAddr{IP: to.AsSlice()}, Err: err}
}

// lookup reads a host: an address, or a name that the node knows.
func (n *Node) lookup(op, network, host string) (netip.Addr, error) {
	addr, known := n.hosts[host]
	var err error
	if !known {
		if addr, err = netip.ParseAddr(host); err != nil {
			err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
	}
	if addr = addr.Unmap(); err == nil && !addr.Is4() {
		err = &net.AddrError{Err: "not an IPv4 address", Addr: host}
	}
	if err != nil {
		return addr, &net.OpError{Op: op, Net: network, Err: err}
	}
	return addr, nil
}

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
	trace *operator.Trace
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
	t, err := n.inner().Requests.StartTrace(&r)
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

// Sample is a connection's state at one instant. Where Linux's TCP_INFO has a field
// it has that name here too. Info tells more.
type Sample struct {
	// Time is the instant, of the node's Clock if it has one.
	Time time.Time
	// State is RFC 9293 §3.3.2's name, with underscores; CAState, of loss recovery, is
	// open, recovery or loss.
	State, CAState string
	// SndCwnd and SndSsthresh are the congestion window and where slow start ends, in
	// bytes; a threshold of 0: no loss has set one.
	SndCwnd, SndSsthresh int
	// SndWnd is the peer's window, and Pipe what is in flight (RFC 6675), in bytes.
	SndWnd, Pipe int
	// NotSentBytes wait to be sent for the first time, and Unread to be read.
	NotSentBytes, Unread int
	// RTT and RTTVar are RFC 6298's smoothed round trip and its variation; 0: none was
	// measured yet.
	RTT, RTTVar, MinRTT time.Duration
	// LatestRTT is the last round trip alone, and RTO the retransmission time-out.
	LatestRTT, RTO time.Duration
	// Acked, Sent and Received are how many bytes the peer has acknowledged, how many
	// it was sent, and how many came from it in order.
	Acked, Sent, Received uint64
	// DeliveredBytes are those of the bytes sent that the peer has reported, in order or not.
	DeliveredBytes uint64
	// DeliveryRate is how fast they were delivered lately, in bits per second.
	DeliveryRate uint64
	// TotalRetrans counts segments sent again, and TotalRTO retransmission time-outs.
	TotalRetrans, TotalRTO uint64
	// TailProbes counts those of RFC 8985 §7, and Missed the samples that were not kept
	// because the function lagged behind.
	TailProbes, Missed uint64
	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none.
	Limited string
	// LimitedFor is since when.
	LimitedFor time.Duration
}

// Probe has f called with the connection's state at every acknowledgment that changes
// it, every change of its State and of what limits it, every time-out and probe, and at
// the beginning and end of every recovery. A second Probe takes the first's place, and a
// nil f ends it: when Probe returns, what was set before has had its last call. The end
// of the connection ends it too.
//
// F runs in a goroutine of its own, a call after the other in the order of time, and may
// do whatever it likes but call Probe: the node does not wait for it. Of what happens
// meanwhile the first 4096 samples are kept, and the others counted in Missed. A
// connection without a probe pays nothing for this.
//
// The error of a connection or node that has ended is net.ErrClosed or the
// connection's own. To end a probe is never an error.
func (c *Conn) Probe(f func(Sample)) error {
	if f == nil {
		return c.inner().Probe(nil)
	}
	return c.inner().Probe(func(s node.Sample) { f(Sample(s)) })
}

// String returns the most of it in a line.
func (s Sample) String() string {
	return fmt.Sprintf("%s %s %s cwnd:%d ssthresh:%d pipe:%d snd_wnd:%d rtt:%v/%v rto:%v "+
		"acked:%d notsent:%d retrans:%d delivery_rate:%dbps limited:%s",
		s.Time.Format("15:04:05.000000"), s.State, s.CAState, s.SndCwnd, s.SndSsthresh, s.Pipe,
		s.SndWnd, s.RTT, s.RTTVar, s.RTO, s.Acked, s.NotSentBytes, s.TotalRetrans, s.DeliveryRate,
		s.Limited)
}
