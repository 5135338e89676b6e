package stack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// RIP connects the routing protocol's Speaker to the stack: it passes messages in both directions,
// and adds the routes that the Speaker learns to the routing table.
type RIP struct {
	ifs     *Interfaces
	routing *Routing
	out     *sender
	events  *events
	rng     *rand.Rand

	speaker      *rip.Speaker // nil: the node does not run RIP
	cfg          *rip.Config  // nil if speaker is
	originated   []rip.External
	redistribute *rip.External
	watch        func(rip.Change)
}

// Speaker returns the protocol's engine, or nil if the node does not run RIP. Only the stack's
// owner may call it.
func (rp *RIP) Speaker() *rip.Speaker { return rp.speaker }

// start creates the Speaker, gives it the local routes and starts it. The new Speaker takes over
// the routes of the previous one, unless that is nil.
func (rp *RIP) start(now clock.Time, before *rip.Speaker) error {
	if rp.cfg == nil {
		return nil
	}
	speaker, err := rip.NewSpeaker(rp.config())
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	rp.speaker = speaker
	for i := range rp.ifs.list {
		if !rp.ifs.list[i].Addr.IsValid() {
			continue // it was removed
		}
		rp.speaker.SetLocal(now, rp.ifs.list[i].Addr.Masked(), i, true)
		if rp.speaks2() {
			// RFC 2453 §4.5: on every interface. No IGMP is sent.
			if err := rp.ifs.Join(i, rip.Multicast); err != nil {
				return err
			}
		}
	}
	for _, e := range rp.originated {
		if !rp.ifs.isNetwork(e.Prefix) {
			rp.speaker.SetExternal(now, e, true)
		}
	}
	rp.routing.reinstallAll(now)
	if before != nil {
		rp.speaker.Inherit(now, before)
	}
	rp.speaker.Start(now)
	return nil
}

// config returns the Speaker's configuration. If no interfaces are configured, RIPv2 runs on all of
// them.
func (rp *RIP) config() rip.Config {
	cfg := *rp.cfg
	if cfg.Dialect != rip.RIPv2 {
		return cfg
	}
	if len(cfg.Interfaces) == 0 {
		for i := range rp.ifs.list {
			f := &rp.ifs.list[i]
			cfg.Interfaces = append(cfg.Interfaces, rip.Interface{Addr: f.Addr, MTU: f.MTU})
		}
	}
	if cfg.Rand == nil { // routers with equal random numbers would stay synchronised
		cfg.Rand = rand.New(rand.NewPCG(rp.rng.Uint64(), uint64(v4Of(rp.ifs.list[0].addr))))
	}
	return cfg
}

// Watch calls f with every route that RIP learns, changes or loses, before the routing table
// changes. Nil ends it.
func (rp *RIP) Watch(f func(rip.Change)) { rp.watch = f }

func (rp *RIP) speaks2() bool { return rp.speaker != nil && rp.cfg.Dialect == rip.RIPv2 }

// originate makes RIP announce or withdraw a configured prefix. A prefix with a static route is
// announced while that route exists, an interface's network while the interface is up, and any
// other prefix always.
func (rp *RIP) originate(now clock.Time, r ip.Route, up bool) {
	if rp.speaker == nil || rp.ifs.isNetwork(r.Prefix) {
		return
	}
	var e rip.External
	named := func(e rip.External) bool { return e.Prefix == r.Prefix }
	switch i := slices.IndexFunc(rp.originated, named); {
	case i >= 0:
		e = rp.originated[i]
	case rp.redistribute != nil:
		e = *rp.redistribute
	default:
		return
	}
	e.Prefix, e.NextHop, e.Iface = r.Prefix, r.NextHop, r.Iface
	if !r.NextHop.IsValid() {
		e.Iface = -1
	}
	rp.speaker.SetExternal(now, e, up)
	rp.learn()
}

// learn applies RIP's changes to the routing table.
func (rp *RIP) learn() {
	changed := false
	for {
		c, ok := rp.speaker.NextChange()
		if !ok {
			break
		}
		changed = true
		if rp.watch != nil {
			rp.watch(c)
		}
		if c.Gone {
			rp.routing.table.Remove(c.Prefix, ip.RIP)
			continue
		}
		rp.routing.table.Insert(ip.Route{
			Prefix: c.Prefix, NextHop: c.NextHop, Iface: c.Iface, Origin: ip.RIP, Cost: c.Cost,
		})
	}
	if changed {
		rp.routing.changed()
	}
	for _, e := range rp.speaker.Events() {
		rp.events.tell(Event{RIP: &e})
	}
}

// Farewell tells RIP's neighbours that no network can be reached through this node. Call it before
// the node stops; otherwise the neighbours send packets here until their routes time out. Output
// returns the messages.
func (rp *RIP) Farewell(now clock.Time) {
	if rp.speaker == nil {
		return
	}
	for i := range rp.ifs.list {
		rp.speaker.Farewell(i)
	}
	rp.output(now)
}

// inputCourse handles a message of the course's dialect.
func (rp *RIP) inputCourse(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	if rp.speaker == nil || rp.speaks2() {
		return ip.DropRIP
	}
	return rp.input(now, i, h.Src, 0, payload)
}

// inputDatagram handles a datagram if it is a RIPv2 message, and reports whether it was.
func (rp *RIP) inputDatagram(
	now clock.Time, i int, h *ip.Header, payload []byte,
) (reason ip.DropReason, mine bool) {
	if !rp.speaks2() {
		return ip.DropNone, false
	}
	u, text, ok := udp.ParseHeader(payload)
	if !ok || u.DstPort != rip.Port {
		return ip.DropNone, false
	}
	if !u.Verify(h.Src, h.Dst, payload) {
		return ip.DropUDPChecksum, true
	}
	return rp.input(now, i, h.Src, u.SrcPort, text), true
}

// input passes a message to the Speaker.
func (rp *RIP) input(
	now clock.Time, i int, src netip.Addr, port uint16, payload []byte,
) ip.DropReason {
	r := rp.speaker.Input(now, netip.AddrPortFrom(src, port), i, payload)
	rp.learn()
	if r != rip.Taken {
		return ip.DropRIP
	}
	return ip.DropNone
}

const (
	linkTTL = 1 // of RIPv2: routers do not forward it (RFC 2453 §4.5)
	// routingTOS is the precedence of routing protocols, Internetwork Control (RFC 791 §3.1).
	routingTOS = 0xc0
)

// output queues the messages that RIP has to send.
func (rp *RIP) output(now clock.Time) {
	if rp.speaker == nil {
		return
	}
	for rp.out.bytes < maxQueuedBytes/2 {
		var m rip.Message
		if !rp.speaker.Output(now, &m) {
			return
		}
		h := ip.Header{Protocol: ip.ProtoRIP, TTL: courseTTL, Dst: m.To}
		if rp.speaks2() {
			h.Src = rp.ifs.list[m.Iface].addr
			h.Protocol, h.TTL, h.TOS = ip.ProtoUDP, linkTTL, routingTOS
			u := udp.Header{SrcPort: rip.Port, DstPort: m.Port}
			rp.out.datagram = u.Append(rp.out.datagram[:0], h.Src, h.Dst, m.Payload)
			m.Payload = rp.out.datagram
		}
		// If the interface went down meanwhile, sendVia counts the drop.
		_ = rp.out.sendVia(now, m.Iface, h.Dst, h, m.Payload)
	}
}

// Restart changes RIP's configuration to that of cfg, on the current interfaces. Routes from
// neighbors that remain are kept, and all neighbors are asked for their routes again; routes that
// no neighbor confirms are withdrawn. Restart cannot enable or disable RIP, nor change its dialect.
func (rp *RIP) Restart(now clock.Time, cfg Config) error {
	if rp.speaker == nil || cfg.RIP == nil || cfg.RIP.Dialect != rp.cfg.Dialect {
		return fmt.Errorf("stack: RIP that begins, ends or is another: %w", rip.ErrConfig)
	}
	before := *rp
	rp.cfg, rp.originated, rp.redistribute = cfg.RIP, cfg.Originate, cfg.Redistribute
	if _, err := rip.NewSpeaker(rp.config()); err != nil {
		*rp = before
		return fmt.Errorf("stack: %w", err)
	}
	rp.learn() // apply the pending changes first
	for i := range rp.ifs.list {
		if rp.cfg.Dialect == rip.RIPv2 {
			_ = rp.ifs.Leave(i, rip.Multicast) // start joins again
		}
	}
	err := rp.start(now, before.speaker)
	for i := range rp.ifs.list {
		if f := &rp.ifs.list[i]; f.Addr.IsValid() && !f.up {
			rp.speaker.SetLocal(now, f.Addr.Masked(), i, false)
		}
	}
	rp.learn()
	rp.routing.changed()
	return err
}

// NeighborLost says that a neighbour on interface i no longer answers: RIP withdraws the routes
// that it learned from it.
func (rp *RIP) NeighborLost(now clock.Time, i int, addr netip.Addr) {
	if rp.speaker != nil {
		rp.speaker.Lost(now, addr, i)
		rp.learn()
	}
}

// NeighborFound says that the neighbour answers again: RIP requests its routes at once.
func (rp *RIP) NeighborFound(i int, addr netip.Addr) {
	if rp.speaker != nil {
		rp.speaker.Found(addr, i)
	}
}

// Info returns the state of the routing protocol for package control.
func (rp *RIP) Info(now clock.Time) control.RIPInfo {
	if rp.speaker == nil {
		return control.RIPInfo{}
	}
	info := rp.speaker.Info(now)
	t, c := info.Timers, info.Counters
	answer := control.RIPInfo{
		Dialect: "rip", NextUpdate: info.NextUpdate,
		Timers: control.RIPTimers{
			Periodic: t.Periodic, Offset: max(t.PeriodicOffset, 0), Timeout: t.Timeout,
			Garbage: t.Garbage, TriggerMin: max(t.TriggerMin, 0),
			TriggerMax: max(t.TriggerMax, 0), HoldDown: max(t.HoldDown, 0),
		},
		Messages: control.RIPMessages{
			RequestsIn: c.RequestsIn, ResponsesIn: c.ResponsesIn, EntriesIn: c.EntriesIn,
			RequestsOut: c.RequestsOut, ResponsesOut: c.ResponsesOut,
			TriggeredOut: c.TriggeredOut, EntriesOut: c.EntriesOut, Expired: c.Expired,
		},
	}
	if info.Dialect == rip.RIPv2 {
		answer.Dialect = "rip2"
	}
	for _, r := range info.Refused {
		answer.Refused = append(answer.Refused, control.Drop{
			Reason: r.Reason.String(), Packets: r.Count,
		})
	}
	rp.describe(&answer, &info)
	return answer
}

// describe fills in the lists of neighbours and routes.
func (rp *RIP) describe(answer *control.RIPInfo, info *rip.Info) {
	for _, f := range info.Interfaces {
		if i := f.Iface; i < len(rp.ifs.list) && !rp.ifs.list[i].Addr.IsValid() {
			continue // it was removed
		}
		answer.Interfaces = append(answer.Interfaces, control.RIPInterface{
			Iface: rp.ifs.name(f.Iface), Up: f.Up, Passive: f.Passive, Cost: f.Cost,
			Send: f.Send, Receive: f.Receive, Auth: f.Auth,
			In: f.Received, Out: f.Sent, Entries: f.SentEntries,
		})
	}
	for _, n := range info.Neighbors {
		answer.Neighbors = append(answer.Neighbors, control.RIPNeighbor{
			Iface: rp.ifs.name(n.Iface), Addr: n.Addr, Configured: n.Configured,
			Silent: n.Silent, Version: int(n.Version), Requests: n.Requests,
			Responses: n.Responses, Refused: n.Refused, Routes: n.Routes,
		})
	}
	for _, r := range info.Routes {
		answer.Routes = append(answer.Routes, control.RIPRoute{
			Prefix: r.Prefix, Cost: r.Cost, Tag: int(r.Tag), NextHop: r.NextHop, From: r.From,
			Iface: rp.ifs.name(r.Iface), Age: r.Age, Left: r.Left, Changed: r.Changed,
		})
	}
}
