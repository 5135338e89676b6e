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

// RIP is the node's routing protocol: it hears messages for the Speaker, sends the Speaker's, and
// brings into the routing table what the Speaker learns.
type RIP struct {
	ifs     *Interfaces
	routing *Routing
	out     *sender
	events  *events
	rng     *rand.Rand

	speaker      *rip.Speaker // nil: the node speaks no RIP
	cfg          *rip.Config  // nil as well
	originated   []rip.External
	redistribute *rip.External
	watch        func(rip.Change)
}

// Speaker returns the protocol's engine; nil: the node speaks no RIP. Its owner is the stack's.
func (rp *RIP) Speaker() *rip.Speaker { return rp.speaker }

// start makes the Speaker, tells it what is ours and lets it begin. It takes over what the one
// before it knows, nil: there is none.
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
			continue // it is no more
		}
		rp.speaker.SetLocal(now, rp.ifs.list[i].Addr.Masked(), i, true)
		if rp.speaks2() {
			// RFC 2453 §4.5: on every interface, and nobody is told.
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

// config is the configuration with what RIPv2 needs and the stack knows: where no
// interfaces are told, RIPv2 is spoken on all of them.
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
	if cfg.Rand == nil { // routers that draw the same would keep in step
		cfg.Rand = rand.New(rand.NewPCG(rp.rng.Uint64(), uint64(be32(rp.ifs.list[0].addr))))
	}
	return cfg
}

// Watch has f called with every route that RIP learns, changes or loses, before the
// table has it; nil ends it.
func (rp *RIP) Watch(f func(rip.Change)) { rp.watch = f }

func (rp *RIP) speaks2() bool { return rp.speaker != nil && rp.cfg.Dialect == rip.RIPv2 }

// originate has RIP announce a prefix that is configured to be, or withdraw it. One
// that the node has, or has had, a static route to goes with that; an interface's
// network goes with the interface; any other is announced while the node runs.
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

// learn brings what RIP has found out into the route table.
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

// Farewell tells RIP's neighbours that nothing is reached through this node any more. It is
// for an owner that is about to stop: without it they would send here until their routes
// time out. What has to be sent is fetched with Output.
func (rp *RIP) Farewell(now clock.Time) {
	if rp.speaker == nil {
		return
	}
	for i := range rp.ifs.list {
		rp.speaker.Farewell(i)
	}
	rp.output(now)
}

// inputCourse takes a message of the course's dialect.
func (rp *RIP) inputCourse(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	if rp.speaker == nil || rp.speaks2() {
		return ip.DropRIP
	}
	return rp.input(now, i, h.Src, 0, payload)
}

// inputDatagram takes a datagram that is for RIPv2, and reports whether it was.
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

// input gives a message to the Speaker.
func (rp *RIP) input(
	now clock.Time, i int, src ip.Addr, port uint16, payload []byte,
) ip.DropReason {
	r := rp.speaker.Input(now, netip.AddrPortFrom(netip.AddrFrom4(src), port), i, payload)
	rp.learn()
	if r != rip.Taken {
		return ip.DropRIP
	}
	return ip.DropNone
}

const (
	linkTTL = 1 // of RIPv2: it is for the link, and RFC 2453 §4.5 has nobody forward it
	// routingTOS is the precedence of routing: RFC 791 §3.1's Internetwork Control.
	routingTOS = 0xc0
)

// output queues the messages that RIP wants to send.
func (rp *RIP) output(now clock.Time) {
	if rp.speaker == nil {
		return
	}
	for rp.out.bytes < maxQueuedBytes/2 {
		var m rip.Message
		if !rp.speaker.Output(now, &m) {
			return
		}
		h := ip.Header{Protocol: ip.ProtoRIP, TTL: courseTTL, Dst: m.To.As4()}
		if rp.speaks2() {
			h.Src = rp.ifs.list[m.Iface].addr
			h.Protocol, h.TTL, h.TOS = ip.ProtoUDP, linkTTL, routingTOS
			u := udp.Header{SrcPort: rip.Port, DstPort: m.Port}
			rp.out.datagram = u.Append(rp.out.datagram[:0], h.Src, h.Dst, m.Payload)
			m.Payload = rp.out.datagram
		}
		// An interface that went down in the meantime counts the drop itself.
		_ = rp.out.sendVia(now, m.Iface, h.Dst, h, m.Payload)
	}
}

// Restart has the node speak RIP as cfg says from now on, of which it takes what is RIP's, on
// the interfaces that there are now. What was learned from neighbors that stay is kept, and all of
// them are asked anew; what is not reached any more is withdrawn. That there is RIP, and its
// dialect, cannot change.
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
	rp.learn() // what it has found out and nobody has asked for yet
	for i := range rp.ifs.list {
		if rp.cfg.Dialect == rip.RIPv2 {
			_ = rp.ifs.Leave(i, rip.Multicast) // it joins anew
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

// NeighborLost says that nobody is at the address of a neighbour on interface i any more:
// RIP withdraws what it has learned from it.
func (rp *RIP) NeighborLost(now clock.Time, i int, addr netip.Addr) {
	if rp.speaker != nil {
		rp.speaker.Lost(now, addr, i)
		rp.learn()
	}
}

// NeighborFound says that somebody is there again: RIP asks what it would hear in the end.
func (rp *RIP) NeighborFound(i int, addr netip.Addr) {
	if rp.speaker != nil {
		rp.speaker.Found(addr, i)
	}
}

// Info is the routing protocol as an operator sees it.
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

// describe fills in the lists.
func (rp *RIP) describe(answer *control.RIPInfo, info *rip.Info) {
	for _, f := range info.Interfaces {
		if i := f.Iface; i < len(rp.ifs.list) && !rp.ifs.list[i].Addr.IsValid() {
			continue // it is no more
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
