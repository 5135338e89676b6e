package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// These are the defaults and limits of traceroute(8).
const (
	defaultHops     = 30
	maxHops         = 255
	defaultQueries  = 3
	maxQueries      = 10
	defaultParallel = 16
	maxParallel     = 255
	defaultTraceLen = 40 // size of a packet without its IP header
	maxTraceLen     = 65000
	defaultUDPPort  = 33434
	defaultTCPPort  = 80
	defaultPatience = 5 * time.Second
	defaultGap      = 200 * time.Microsecond
	defaultHere     = 3
	defaultNear     = 10
	// synPorts is the first source port of a TCP traceroute. A connection rarely has the same port
	// and peer.
	synPorts = 62500
)

// Trace is a running traceroute.
type Trace struct {
	run
	trace   *icmp.Trace // the running trace; loop only
	port    *udp.Socket // socket that reserves the source port; nil: not needed
	news    *node.Queue[control.Hop]
	failure error // why a probe was not sent; valid when news has ended
}

// StartTrace starts a traceroute and returns at once.
func (h *Requests) StartTrace(r *control.Traceroute) (*Trace, error) {
	cfg, err := traceConfig(*r)
	if err != nil {
		return nil, err
	}
	t := &Trace{news: node.NewQueue[control.Hop](maxFindings)}
	if err := h.node.Ask(func(s *stack.Stack, _ clock.Time) error {
		if err := h.prepareTrace(s, t, r, cfg); err != nil {
			return err
		}
		t.trace = icmp.NewTrace(*cfg)
		t.run = run{host: h, engine: t.trace, stop: t.trace.Stop, take: t.found}
		err := t.start(s)
		if err != nil && t.port != nil {
			t.port.Close()
		}
		return err
	}); err != nil {
		return nil, err
	}
	return t, nil
}

// traceConfig adds the defaults. It returns an error for an invalid request.
func traceConfig(r control.Traceroute) (*icmp.TraceConfig, error) {
	fill := func(v *int, value int) {
		if *v == 0 {
			*v = value
		}
	}
	kind, port, header := icmp.Datagram, defaultUDPPort, udp.HeaderLen
	outer := ip.HeaderLen
	if r.Addr.Is6() {
		outer = ip.HeaderLen6
	}
	switch r.Kind {
	case "", control.ProbeUDP:
	case control.ProbeICMP:
		kind, port = icmp.Echo, 1
	case control.ProbeTCP:
		kind, port, header = icmp.SYN, defaultTCPPort, 20
	default:
		return nil, control.Misuse("kind %q: must be udp, icmp or tcp", r.Kind)
	}
	if r.PathMTU {
		fill(&r.Size, maxTraceLen)
		r.Parallel, r.DontFragment = 1, true
	}
	fill(&r.First, 1)
	fill(&r.MaxHops, defaultHops)
	fill(&r.Queries, defaultQueries)
	fill(&r.Parallel, defaultParallel)
	fill(&r.Port, port)
	fill(&r.Size, defaultTraceLen+outer)
	if err := checkTrace(&r); err != nil {
		return nil, err
	}
	cfg := &icmp.TraceConfig{
		Dst: r.Addr, Kind: kind, Port: uint16(r.Port), First: r.First, Max: r.MaxHops,
		Queries: r.Queries, Parallel: r.Parallel, TOS: uint8(r.TOS), DF: r.DontFragment,
		Wait: r.Wait, Here: r.Here, Near: r.Near, Gap: r.Gap,
	}
	if cfg.Wait <= 0 {
		cfg.Wait = defaultPatience
	}
	cfg.Gap = cmp.Or(cfg.Gap, defaultGap)
	cfg.Here = cmp.Or(cfg.Here, defaultHere)
	cfg.Near = cmp.Or(cfg.Near, defaultNear)
	if r.PathMTU {
		if kind == icmp.SYN {
			return nil, control.Misuse("path MTU discovery needs UDP or ICMP probes, not TCP")
		}
		cfg.Overhead = outer + header
	}
	if kind != icmp.SYN {
		cfg.Data = pattern(max(0, r.Size-outer-header), []byte("@ABCDEFGHIJKLMNO"))
	}
	return cfg, nil
}

// checkTrace returns an error for an invalid address or numbers that are out of range.
func checkTrace(r *control.Traceroute) error {
	if err := within([]limit{
		{"max hops", r.MaxHops, 1, maxHops},
		{"first hop", r.First, 1, r.MaxHops},
		{"queries", r.Queries, 1, maxQueries},
		{"parallel probes", r.Parallel, 1, maxParallel},
		{"port", r.Port, 1, 65535},
		{"packet length", r.Size, 1, maxTraceLen},
		{"tos", r.TOS, 0, 255},
	}); err != nil {
		return err
	}
	if !control.IsHost(r.Addr) && !r.Addr.IsLoopback() {
		return control.Misuse("%v is not the address of a host", r.Addr)
	}
	return nil
}

// prepareTrace chooses a traceroute's source address and its port or identifier. Loop only.
func (h *Requests) prepareTrace(
	s *stack.Stack, t *Trace, r *control.Traceroute, cfg *icmp.TraceConfig,
) (err error) {
	if cfg.Dst, err = s.Interfaces().Scope(r.Addr); err != nil {
		return fmt.Errorf("%v: %w", r.Addr, err)
	}
	r.Addr = cfg.Dst
	if cfg.Src, cfg.Iface, err = h.sourceOf(s, r.Source, r.Addr); err != nil {
		return err
	}
	local := s.Routing().LocalTo(r.Addr)
	if !local.IsValid() {
		return fmt.Errorf("%v: %w", r.Addr, stack.ErrNoRoute)
	}
	if !cfg.Src.IsValid() {
		cfg.Src = local
	}
	switch cfg.Kind {
	case icmp.Echo:
		cfg.ID = h.freeEcho()
	case icmp.SYN:
		cfg.ID = synPorts
	case icmp.Datagram:
		if t.port, err = s.Datagrams().Bind(h.node.AllAddrs(0)); err != nil {
			return err
		}
		cfg.ID = t.port.Local().Port()
	}
	return nil
}

// found passes on new hops, and reports whether the traceroute is done. Loop only.
func (t *Trace) found() bool {
	for {
		ttl, replies, ok := t.trace.Hop()
		if !ok {
			break
		}
		hop := control.Hop{TTL: ttl}
		for i := range replies {
			hop.Replies = append(hop.Replies, t.replyOf(&replies[i]))
		}
		if t.failure == nil {
			t.news.Add(hop)
		}
	}
	if !t.trace.Done() {
		return false
	}
	if t.port != nil {
		t.port.Close()
	}
	t.news.End()
	return true
}

// replyOf converts a reply. Time exceeded and port unreachable are not problems, because the probes
// provoke them.
func (t *Trace) replyOf(r *icmp.Reply) control.Reply {
	if r.Verdict == icmp.Failed {
		t.failure = r.Err
		return control.Reply{Local: true, Problem: problemOf(r)}
	}
	if !r.From.IsValid() {
		return control.Reply{}
	}
	to := t.host.replyOf(r)
	if to.Mark == "" {
		to.Problem = ""
	}
	return to
}

// Wait calls each, unless each is nil, with every hop until the traceroute ends, and returns all
// hops. If ctx ends, the traceroute ends with the context's cause.
func (t *Trace) Wait(ctx context.Context, each func(control.Hop)) ([]control.Hop, error) {
	var hops []control.Hop
	found := func(h control.Hop) {
		hops = append(hops, h)
		if each != nil {
			each(h)
		}
	}
	t.news.Each(ctx, t.host.node.Stopped(), found)
	whole := t.news.Ended()
	t.end()
	t.news.Rest(found)
	if !t.news.Ended() {
		return hops, control.ErrClosed // the node is closed
	}
	if t.failure != nil {
		return hops, node.NetError(t.failure)
	}
	if !whole {
		return hops, context.Cause(ctx)
	}
	return hops, nil
}

func (h *Requests) traceroute(ctx context.Context, r control.Traceroute) ([]control.Hop, error) {
	t, err := h.StartTrace(&r)
	if err != nil {
		return nil, err
	}
	return t.Wait(ctx, r.Each)
}
