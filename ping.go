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

// PingOptions configure Ping. The zero PingOptions send one echo request with 56 bytes of data.
type PingOptions struct {
	// Count is the number of requests. 0: one. Negative: until the context ends.
	Count int
	// Interval is the time between requests. 0: 1 s.
	Interval time.Duration
	// Size is the amount of data in a request, in bytes, up to 65507. 0: 56. Negative: no data.
	Size int
	// Pattern, up to 16 bytes, is repeated as the data. Empty: the bytes count up.
	Pattern []byte
	// TTL is the time to live of the requests. 0: 64.
	TTL int
	// DontFragment sets the DF bit. A request that is too large for the first link fails with
	// EMSGSIZE.
	DontFragment bool
	// Source is the source address, one of the node's. Invalid: the outgoing interface's address.
	Source netip.Addr
	// Broadcast permits a broadcast address, from which many hosts can reply.
	Broadcast bool
	// Timeout is how long Ping waits for a first reply after the last request. 0: 10 s. After a
	// reply it waits twice the longest round-trip time, but at least Interval and 1 s.
	Timeout time.Duration
	// Each, if not nil, is called with each reply, by the goroutine that runs Wait or Ping.
	Each func(PingReply)
}

// PingReply is the answer to an echo request.
type PingReply struct {
	Seq  int        // the request: 1 is the first; 0 follows 65535
	From netip.Addr // the sender; invalid for a local error
	TTL  int        // of the reply when it arrived
	Size int        // bytes of ICMP: the data and 8 bytes of header
	RTT  time.Duration
	At   time.Time
	// Duplicate: an earlier reply answered the same request.
	Duplicate bool
	// Err is nil for an echo reply, an *ICMPError for an ICMP error, and another error if the
	// request could not be sent.
	Err error
}

// maxReplies is the largest number of replies in a PingResult.
const maxReplies = 1 << 16

// PingResult is the result of a ping. A request without an answer is not an error: it is missing in
// Replies.
type PingResult struct {
	// Replies are the first 65536 answers, errors included.
	Replies []PingReply
	Sent    int
	// Received counts the requests with a reply, Duplicates the additional replies, and Errors the
	// requests that were answered by an ICMP error or could not be sent.
	Received, Duplicates, Errors int
	// The round-trip times of all replies. StdDev is the mdev of ping.
	Min, Avg, Max, StdDev time.Duration
}

// Loss returns the share of requests without a reply, from 0 to 1.
func (r *PingResult) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return float64(r.Sent-r.Received) / float64(r.Sent)
}

// Ping sends ICMP echo requests to a host, which is an address or a name from Config.Hosts, and
// waits for replies. It returns an error if nothing could be sent, or the cause of ctx when ctx
// ends. The result includes what was received until then.
func (n *Node) Ping(ctx context.Context, host string, o PingOptions) (PingResult, error) {
	p, err := n.StartPing(host, o)
	if err != nil {
		return PingResult{}, err
	}
	return p.Wait(ctx)
}

// Pinger is a running ping.
type Pinger struct {
	ping *operator.Ping
	opt  PingOptions
	host netip.Addr
}

// StartPing starts to ping a host and returns at once. Requests are sent as time passes, or as
// Advance moves a Clock. The caller must call Wait.
func (n *Node) StartPing(host string, o PingOptions) (*Pinger, error) {
	addr, err := n.lookup(context.Background(), "ping", "ip:icmp", host)
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

// Wait returns the result when the ping has ended. When ctx ends, Wait ends the ping.
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

// probeError wraps an error of a ping or traceroute in a *net.OpError.
func probeError(op string, to netip.Addr, err error) error {
	if errors.Is(err, control.ErrClosed) {
		err = net.ErrClosed
	}
	network := "ip4:icmp"
	if to.Is6() {
		network = "ip6:ipv6-icmp"
	}
	return &net.OpError{
		Op: op, Net: network, Addr: &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()}, Err: err,
	}
}

// TracerouteOptions configure Traceroute. Zero fields mean the defaults of traceroute(8).
type TracerouteOptions struct {
	// Protocol is the protocol of the probes: "udp", "icmp" or "tcp". Empty: "udp".
	Protocol string
	// First and MaxHops are the first and the last TTL. 0: 1 and 30.
	First, MaxHops int
	// Queries is the number of probes per TTL, up to 10. 0: 3.
	Queries int
	// Parallel is the largest number of unanswered probes. 0: 16.
	Parallel int
	// Port is the first UDP port (0: 33434), the first ICMP sequence number (0: 1), or the TCP port
	// (0: 80).
	Port int
	// Size is the length of a packet with its IP header, in bytes. 0: 60.
	Size int
	// DontFragment sets the DF bit.
	DontFragment bool
	// PathMTU finds the path MTU: it sends one probe at a time, as large as the path allows. Not
	// possible with "tcp".
	PathMTU bool
	// Source is the source address, one of the node's. Invalid: the outgoing interface's address.
	Source netip.Addr
	// Timeout is how long to wait for an answer. 0: 5 s. After other answers the wait is shorter:
	// three times as long as an answer with the same TTL took, ten times as long as one with a
	// larger TTL.
	Timeout time.Duration
	// Each, if not nil, is called with each hop when it is found.
	Each func(Hop)
}

// Hop is the result for one TTL.
type Hop struct {
	TTL    int
	Probes []HopReply // one per probe
}

// HopReply is the answer to one probe. The zero HopReply means no answer.
type HopReply struct {
	From netip.Addr
	RTT  time.Duration
	// PathMTU is the MTU of the path up to this hop, if this probe found a new value. Otherwise 0.
	PathMTU int
	// Err is nil if the answer is the router's time exceeded, or came from the destination. It is
	// an *ICMPError if the destination is unreachable.
	Err error
}

// Traceroute finds the routers on the path to a host, which is an address or a name from
// Config.Hosts, with packets of increasing TTL. It returns an error if nothing could be sent, or
// the cause of ctx when ctx ends, together with the hops that were found until then.
func (n *Node) Traceroute(ctx context.Context, host string, o TracerouteOptions) ([]Hop, error) {
	t, err := n.StartTraceroute(host, o)
	if err != nil {
		return nil, err
	}
	return t.Wait(ctx)
}

// Tracer is a running traceroute.
type Tracer struct {
	trace *operator.Trace
	each  func(Hop)
	host  netip.Addr
}

// StartTraceroute starts a traceroute and returns at once. Probes are sent as time passes, or as
// Advance moves a Clock. The caller must call Wait.
func (n *Node) StartTraceroute(host string, o TracerouteOptions) (*Tracer, error) {
	addr, err := n.lookup(context.Background(), "traceroute", "ip", host)
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

// Wait returns the hops when the traceroute has ended. When ctx ends, Wait ends the traceroute.
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

// Sample is a connection's state at one time: Time, State and the fields of ConnInfo. Acked, Sent
// and Received are bytes: acknowledged by the peer, sent, and received in order. Missed counts the
// samples that were dropped because the function was too slow.
type Sample node.Sample

// Probe calls f with the connection's state: whenever data is sent, at every acknowledgment that
// changes the state, when State or what limits the sender changes, at every timeout, tail loss
// probe and window probe, and when a recovery begins or ends. A second Probe replaces the first. A
// nil f ends it: when Probe returns, the previous function is not called again. The end of the
// connection ends it too.
//
// The calls come from one goroutine, in order of time. The function must not call Probe. The node
// does not wait for it: if it is slow, up to 4096 samples are queued, and Missed counts the others.
// A connection without a probe has no cost.
//
// If the connection or node has ended, the error is net.ErrClosed or the connection's error. Ending
// a probe never returns an error.
func (c *Conn) Probe(f func(Sample)) error {
	if f == nil {
		return c.inner().Probe(nil)
	}
	return c.inner().Probe(func(s node.Sample) { f(Sample(s)) })
}

// String returns a summary in one line.
func (s Sample) String() string {
	return fmt.Sprintf("%s %s %s cwnd:%d ssthresh:%d pipe:%d snd_wnd:%d rtt:%v/%v rto:%v "+
		"acked:%d notsent:%d retrans:%d delivery_rate:%dbps limited:%s",
		s.Time.Format("15:04:05.000000"), s.State, s.CAState, s.SndCwnd, s.SndSsthresh, s.Pipe,
		s.SndWnd, s.RTT, s.RTTVar, s.RTO, s.Acked, s.NotSentBytes, s.TotalRetrans, s.DeliveryRate,
		s.Limited)
}
