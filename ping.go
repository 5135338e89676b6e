package tidepool

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
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
	ping *node.Ping
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
	p, err := n.inner().StartPing(&r)
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
