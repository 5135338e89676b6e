package stack

import (
	"encoding/binary"
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

// RIP connects one Speaker of the routing protocol to the stack: it passes messages in both
// directions, and adds the routes that the Speaker learns to the routing table. A stack has up to
// two: one for IPv4, and one for IPv6. Each announces the prefixes of its family.
type RIP struct {
	encapsulation
	ifs     *Interfaces
	routing *Routing
	out     *sender
	events  *events
	rng     *rand.Rand

	speaker      *rip.Speaker // engine of the protocol; nil until start
	cfg          *rip.Config
	originated   []rip.External // originated prefixes of both families
	redistribute *rip.External
	watch        func(rip.Change)
}

// encapsulation describes how the messages of a dialect are sent.
type encapsulation struct {
	name     string     // name of the dialect for package control
	protocol uint8      // IP protocol of the messages
	port     uint16     // UDP port; 0: the messages do not use UDP
	group    netip.Addr // multicast group of the routers; invalid: no multicast
	ttl, tos uint8
}

// routingTOS is the precedence of routing protocols, Internetwork Control (RFC 791 §3.1).
const routingTOS = 0xc0

// encapsulations lists the encapsulation of each dialect. Routers do not forward messages of RIPv2
// (RFC 2453 §4.5). The hop limit of RIPng shows that no router has forwarded a message (RFC 2080
// §2.4.2).
var encapsulations = [...]encapsulation{
	rip.Course: {name: "rip", protocol: ip.ProtoRIP, ttl: courseTTL},
	rip.RIPv2:  {"rip2", ip.ProtoUDP, rip.Port, rip.Multicast, 1, routingTOS},
	rip.RIPng:  {"ripng", ip.ProtoUDP, rip.PortNG, rip.MulticastNG, 255, routingTOS},
}

// Speaker returns the protocol's engine. Only the stack's owner may call it.
func (rp *RIP) Speaker() *rip.Speaker { return rp.speaker }

// handles reports whether an address is of the dialect's family.
func (rp *RIP) handles(a netip.Addr) bool { return a.Is6() == rp.group.Is6() }

// start creates the Speaker, gives it the local routes and starts it. The new Speaker takes over
// the routes of the previous one, unless that is nil.
func (rp *RIP) start(now clock.Time, before *rip.Speaker) error {
	speaker, err := rip.NewSpeaker(rp.config())
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	rp.speaker = speaker
	for i := range rp.ifs.list {
		if !rp.ifs.list[i].hasFamily(rp.group) {
			continue // the interface was removed, or has no address of the family
		}
		rp.setLocal(now, i, true)
		if rp.group.IsValid() {
			// RFC 2453 §4.5 and RFC 2080 §2.5.2: the node joins the group on every interface.
			if err := rp.ifs.Join(i, rp.group); err != nil {
				return err
			}
		}
	}
	for _, e := range rp.originated {
		if rp.handles(e.Prefix.Addr()) && !rp.ifs.isNetwork(e.Prefix) {
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

// setLocal reports to the Speaker that interface i, with its networks of the family, is up or down.
func (rp *RIP) setLocal(now clock.Time, i int, up bool) {
	f := &rp.ifs.list[i]
	if !f.hasFamily(rp.group) {
		return
	}
	networks := slices.DeleteFunc(slices.Clone(f.networks), func(p netip.Prefix) bool {
		return !rp.handles(p.Addr())
	})
	if len(networks) == 0 {
		networks = []netip.Prefix{{}} // the interface has only a link-local address
	}
	for _, p := range networks {
		rp.speaker.SetLocal(now, p, i, up)
	}
}

// replaceLocal reports a change of interface i's networks to the Speaker.
func (rp *RIP) replaceLocal(now clock.Time, i int, before []netip.Prefix) {
	f := &rp.ifs.list[i]
	for _, p := range before {
		if rp.handles(p.Addr()) && !slices.Contains(f.networks, p) {
			rp.speaker.SetLocal(now, p, i, false)
		}
	}
	rp.setLocal(now, i, f.up)
	rp.applyChanges()
}

// config returns the Speaker's configuration, with the interfaces' addresses. If no interfaces are
// configured, RIPv2 and RIPng run on all of them.
func (rp *RIP) config() rip.Config {
	cfg := *rp.cfg
	if cfg.Dialect == rip.Course {
		return cfg
	}
	cfg.Interfaces = slices.Clone(cfg.Interfaces)
	for i := range rp.ifs.list {
		f := &rp.ifs.list[i]
		if len(rp.cfg.Interfaces) == 0 {
			cfg.Interfaces = append(cfg.Interfaces, rip.Interface{MTU: f.MTU})
		}
		switch {
		case i >= len(cfg.Interfaces):
		case !f.hasFamily(rp.group):
			cfg.Interfaces[i] = rip.Interface{
				Passive: true, Send: rip.SendNone, Receive: rip.ReceiveNone,
			}
		case rp.group.Is6():
			cfg.Interfaces[i].Addr = netip.PrefixFrom(f.link.WithZone(""), 64)
		default:
			cfg.Interfaces[i].Addr = f.Addr
		}
	}
	if cfg.Rand == nil { // routers with equal random numbers would stay synchronized
		f := &rp.ifs.list[0]
		link := f.link.As16()
		id := uint64(v4Of(f.addr))
		if rp.group.Is6() {
			id = binary.BigEndian.Uint64(link[8:])
		}
		cfg.Rand = rand.New(rand.NewPCG(rp.rng.Uint64(), id))
	}
	return cfg
}

// Watch calls f with every route that RIP learns, changes or loses, before the routing table
// changes. A nil f ends this.
func (rp *RIP) Watch(f func(rip.Change)) { rp.watch = f }

// originate makes RIP announce or withdraw a configured prefix. A prefix with a static route is
// announced while that route is usable, an interface's network while the interface is up, and any
// other prefix always.
func (rp *RIP) originate(now clock.Time, r ip.Route, up bool) {
	if rp.speaker == nil || !rp.handles(r.Prefix.Addr()) || rp.ifs.isNetwork(r.Prefix) {
		return
	}
	var e rip.External
	samePrefix := func(e rip.External) bool { return e.Prefix == r.Prefix }
	switch i := slices.IndexFunc(rp.originated, samePrefix); {
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
	rp.applyChanges()
}

// applyChanges applies RIP's changes to the routing table.
func (rp *RIP) applyChanges() {
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
		rp.events.add(Event{RIP: &e})
	}
}

// Withdraw withdraws all routes from RIP's neighbors. Call it before the node stops. Otherwise the
// neighbors send packets here until their routes time out. Output returns the messages.
func (rp *RIP) Withdraw(now clock.Time) {
	for i := range rp.ifs.list {
		rp.speaker.Withdraw(i)
	}
	rp.output(now)
}

// inputCourse handles a message of the course's dialect.
func (l *local) inputCourse(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	for _, rp := range l.rips {
		if rp.protocol == ip.ProtoRIP {
			return rp.input(now, i, h, 0, payload)
		}
	}
	return ip.DropRIP
}

// inputRIP handles a datagram if it is a message of RIPv2 or RIPng, and reports whether it was.
func (l *local) inputRIP(
	now clock.Time, i int, h *ip.Header, payload []byte,
) (reason ip.DropReason, mine bool) {
	for _, rp := range l.rips {
		u, text, ok := udp.ParseHeader(payload)
		if !ok || rp.port == 0 || u.DstPort != rp.port || !rp.handles(h.Src) {
			continue
		}
		if !u.Verify(h.Src, h.Dst, payload) {
			return ip.DropUDPChecksum, true
		}
		return rp.input(now, i, h, u.SrcPort, text), true
	}
	return ip.DropNone, false
}

// input passes a message to the Speaker. A router's message whose hop limit is not 255 comes from
// another link (RFC 2080 §2.4.2).
func (rp *RIP) input(
	now clock.Time, i int, h *ip.Header, port uint16, payload []byte,
) ip.DropReason {
	var r rip.Refusal
	from := netip.AddrPortFrom(h.Src.WithZone(""), port)
	if h.Is6() && port == rp.port && h.TTL != rp.ttl {
		r = rp.speaker.Refuse(from, i, rip.RefusedHopLimit)
	} else {
		r = rp.speaker.Input(now, from, i, payload)
	}
	rp.applyChanges()
	if r != rip.Accepted {
		return ip.DropRIP
	}
	return ip.DropNone
}

// output queues the messages that RIP has to send.
func (rp *RIP) output(now clock.Time) {
	for rp.out.bytes < maxQueuedBytes/2 {
		var m rip.Message
		if !rp.speaker.Output(now, &m) {
			return
		}
		h := ip.Header{Protocol: rp.protocol, TTL: rp.ttl, TOS: rp.tos, Dst: m.To}
		if rp.port != 0 {
			if h.Src = rp.ifs.list[m.Iface].addr; rp.group.Is6() {
				h.Src = rp.ifs.list[m.Iface].link
			}
			u := udp.Header{SrcPort: rp.port, DstPort: m.Port}
			rp.out.datagram = u.Append(rp.out.datagram[:0], h.Src, h.Dst, m.Payload)
			m.Payload = rp.out.datagram
		}
		// If the interface went down meanwhile, sendVia counts the drop.
		_ = rp.out.sendVia(now, m.Iface, h.Dst, h, m.Payload)
	}
}

// Restart changes RIP's configuration to that of cfg, on the current interfaces. Routes from
// neighbors that remain are kept, and RIP requests the routes of all neighbors again. Routes that
// no neighbor confirms are withdrawn. Restart cannot enable or disable RIP, nor change its dialect.
func (rp *RIP) Restart(now clock.Time, cfg Config) error {
	own := cfg.RIP
	if rp.group.Is6() {
		own = cfg.RIPng
	}
	if own == nil || own.Dialect != rp.cfg.Dialect {
		return fmt.Errorf("stack: RIP cannot "+
			"be started, stopped or replaced by another dialect: %w", rip.ErrConfig)
	}
	before := *rp
	rp.cfg, rp.originated, rp.redistribute = own, cfg.Originate, cfg.Redistribute
	if _, err := rip.NewSpeaker(rp.config()); err != nil {
		*rp = before
		return fmt.Errorf("stack: %w", err)
	}
	rp.applyChanges() // applies the pending changes first
	for i := range rp.ifs.list {
		if rp.group.IsValid() {
			_ = rp.ifs.Leave(i, rp.group) // start joins the group again
		}
	}
	err := rp.start(now, before.speaker)
	for i := range rp.ifs.list {
		if !rp.ifs.list[i].up {
			rp.setLocal(now, i, false)
		}
	}
	rp.applyChanges()
	rp.routing.changed()
	return err
}

// NeighborLost reports that a neighbor on interface i no longer answers: RIP withdraws the routes
// that it learned from that neighbor.
func (rp *RIP) NeighborLost(now clock.Time, i int, addr netip.Addr) {
	if rp.handles(addr) {
		rp.speaker.Lost(now, rp.gateway(addr), i)
		rp.applyChanges()
	}
}

// NeighborFound reports that a neighbor on interface i answers again: RIP requests its routes.
func (rp *RIP) NeighborFound(i int, addr netip.Addr) {
	if rp.handles(addr) {
		rp.speaker.Found(rp.gateway(addr), i)
	}
}

// gateway returns the address by which RIP identifies a neighbor. In RIPng this is the link-local
// address.
func (rp *RIP) gateway(addr netip.Addr) netip.Addr {
	if addr.Is6() && !addr.IsLinkLocalUnicast() {
		return ip.LinkLocal(addr)
	}
	return addr
}

// Info returns the state of the routing protocol for package control.
func (rp *RIP) Info(now clock.Time) control.RIPInfo {
	info := rp.speaker.Info(now)
	t, c := info.Timers, info.Counters
	answer := control.RIPInfo{
		Dialect: rp.name, NextUpdate: info.NextUpdate,
		Timers: control.RIPTimers{
			Periodic: t.Periodic, Offset: max(t.PeriodicOffset, 0), Timeout: t.Timeout,
			Garbage: t.Garbage, TriggerMin: max(t.TriggerMin, 0),
			TriggerMax: max(t.TriggerMax, 0), HoldDown: max(t.HoldDown, 0),
		},
		Messages: control.RIPMessages(c),
	}
	for _, r := range info.Refused {
		answer.Refused = append(answer.Refused, control.Drop{
			Reason: r.Reason.String(), Packets: r.Count,
		})
	}
	rp.describe(&answer, &info)
	return answer
}

// describe fills in the lists of neighbors and routes.
func (rp *RIP) describe(answer *control.RIPInfo, info *rip.Info) {
	for _, f := range info.Interfaces {
		if i := f.Iface; i < len(rp.ifs.list) && !rp.ifs.list[i].hasFamily(rp.group) {
			continue // the interface was removed, or has no address of the family
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
