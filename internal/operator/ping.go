package operator

import (
	"context"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

const (
	maxPingBytes  = 65507 // largest payload of an IPv4 packet after the IP and ICMP headers
	maxPreload    = 65536
	maxPattern    = 16
	icmpOverhead  = 28
	icmpOverhead6 = 48
)

// Ping is a running ping.
type Ping struct {
	run
	ping *icmp.Ping // used only by the loop
	news *node.Queue[control.Reply]
	info control.PingResult // valid once news has ended
}

// StartPing starts a ping and returns at once.
func (h *Requests) StartPing(r *control.Ping) (*Ping, error) {
	if err := checkPing(r); err != nil {
		return nil, err
	}
	cfg := icmp.PingConfig{
		Dst: r.Addr, TTL: uint8(r.TTL), TOS: uint8(r.TOS), Data: pattern(r.Bytes(), r.Pattern),
		Count: r.Count, Interval: r.Interval, Preload: r.Preload, Flood: r.Flood,
		Adaptive: r.Adaptive, Wait: r.Timeout, Deadline: r.Deadline, Outstanding: r.Outstanding,
	}
	p := &Ping{news: node.NewQueue[control.Reply](maxFindings)}
	if err := h.node.Ask(func(s *stack.Stack, now clock.Time) error {
		if err := h.preparePing(s, r, &cfg); err != nil {
			return err
		}
		cfg.ID = h.freeEcho()
		p.ping = icmp.NewPing(now, cfg)
		p.run = run{host: h, engine: p.ping, stop: p.ping.Stop, take: p.found}
		return p.start(s)
	}); err != nil {
		return nil, err
	}
	return p, nil
}

// checkPing returns an error for a request that cannot be sent.
func checkPing(r *control.Ping) error {
	if err := within([]limit{
		{"size", r.Bytes(), 0, maxPingBytes},
		{"ttl", r.TTL, 0, 255},
		{"tos", r.TOS, 0, 255},
		{"preload", r.Preload, 0, maxPreload},
		{"pattern bytes", len(r.Pattern), 0, maxPattern},
		{"count", r.Count, 0, 1<<31 - 1},
	}); err != nil {
		return err
	}
	switch r.Fragment {
	case "", "do", "dont", "want":
	default:
		return control.Misuse("pmtudisc %q: must be do, dont or want", r.Fragment)
	}
	switch {
	case r.Addr.Is4In6():
		return control.Misuse("%v is an IPv4-mapped address: must be %v", r.Addr, r.Addr.Unmap())
	case !r.Addr.IsValid() || r.Addr.IsUnspecified():
		return control.Misuse("%v: must be the address of a host or a multicast group", r.Addr)
	}
	return nil
}

// pattern returns the payload of an echo request: the fill bytes repeated, or the bytes 0, 1, 2 and
// so on.
func pattern(size int, fill []byte) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i)
		if len(fill) > 0 {
			data[i] = fill[i%len(fill)]
		}
	}
	return data
}

// preparePing chooses a ping's source, and checks that there is a route. Loop only.
func (h *Requests) preparePing(s *stack.Stack, r *control.Ping, cfg *icmp.PingConfig) (err error) {
	if cfg.Dst, err = s.Interfaces().Scope(r.Addr); err != nil {
		return fmt.Errorf("%v: %w", r.Addr, err)
	}
	r.Addr = cfg.Dst
	if cfg.Src, cfg.Iface, err = h.sourceOf(s, r.Source, r.Addr); err != nil {
		return err
	}
	cfg.Group = r.Addr.IsMulticast() || s.Interfaces().IsBroadcast(r.Addr)
	if cfg.Group && !r.Addr.IsMulticast() && !r.Broadcast {
		return control.Misuse(
			"%v is a broadcast address: do you want to ping broadcast? Then -b", r.Addr)
	}
	if stack.IsGroup(r.Addr) && cfg.Iface < 0 {
		cfg.Iface = 0 // multicast needs an interface instead of a route
	}
	if cfg.Iface < 0 && !s.Routing().LocalTo(r.Addr).IsValid() {
		return fmt.Errorf("%v: %w", r.Addr, stack.ErrNoRoute)
	}
	size := r.Bytes() + icmpOverhead
	if r.Addr.Is6() {
		size = r.Bytes() + icmpOverhead6
	}
	cfg.DF = r.Fragment == "do" || r.Fragment == "want" && size <= s.Routing().MTUTo(r.Addr)
	return nil
}

// found passes on new replies, and reports whether the ping is done. Loop only.
func (p *Ping) found() bool {
	for {
		r, ok := p.ping.Next()
		if !ok {
			break
		}
		p.news.Add(p.host.replyOf(&r))
	}
	if !p.ping.Done() {
		return false
	}
	p.info = p.ping.Info()
	p.news.End()
	return true
}

// Wait calls each, unless each is nil, with every reply until the ping ends, and returns its
// statistics. If ctx ended the ping, the error is the context's cause. If the node was closed, the
// error is control.ErrClosed.
func (p *Ping) Wait(
	ctx context.Context, each func(control.Reply),
) (result control.PingResult, over error) {
	if each == nil {
		each = func(control.Reply) {}
	}
	p.news.Each(ctx, p.host.node.Stopped(), each)
	if !p.news.Ended() {
		over = context.Cause(ctx)
	}
	p.end()
	p.news.Rest(each)
	if !p.news.Ended() {
		return control.PingResult{}, control.ErrClosed
	}
	return p.info, over
}

// ping handles control.Ping. The end of ctx is not an error.
func (h *Requests) ping(ctx context.Context, r control.Ping) (control.PingResult, error) {
	p, err := h.StartPing(&r)
	if err != nil {
		return control.PingResult{}, err
	}
	if r.Begun != nil {
		r.Begun()
	}
	result, over := p.Wait(ctx, r.Each)
	if over != nil && ctx.Err() == nil {
		return result, over
	}
	return result, nil
}

// sendTest sends a packet of a test protocol.
func (h *Requests) sendTest(
	_ context.Context, r control.SendTest,
) (answer control.TestSent, err error) {
	if !control.IsHost(r.Addr) {
		return answer, fmt.Errorf("address %v: %w: must be the address of a host",
			r.Addr, control.ErrUsage)
	}
	err = h.node.Ask(func(s *stack.Stack, now clock.Time) (err error) {
		if r.Addr, err = s.Interfaces().Scope(r.Addr); err != nil {
			return err
		}
		if r.Addr.Is6() && r.Proto == ip.ProtoTest {
			return control.Misuse("%v: must be an IPv4 address: protocol %d of test packets is "+
				"the Hop-by-Hop Options header of IPv6; use UDP for IPv6", r.Addr, r.Proto)
		}
		answer.Bytes, err = s.SendTest(now, r.Addr, r.Proto, []byte(r.Text))
		return err
	})
	return answer, err
}
