package lnx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// maxListed is the maximum number of names that an error suggests.
const maxListed = 10

// check verifies that the lines of the file are consistent, whatever their order.
func (p *parser) check() {
	if len(p.cfg.Interfaces) == 0 && len(p.report.errs) == 0 {
		p.report.add(Pos{}, "", "the file declares no interface", "at least one")
		return
	}
	p.checkInterfaces()
	p.checkNeighbors()
	p.checkRoutes()
	p.checkRIP()
	p.checkTCP()
	p.checkForwards()
	checkNATs(p)
}

func (pos Pos) lineText() string { return "line " + strconv.Itoa(pos.Line) }

// checkInterfaces compares every interface with those before it, and checks the MTU for IPv6.
func (p *parser) checkInterfaces() {
	ifaces := p.cfg.Interfaces
	for i := range ifaces {
		if f := &ifaces[i]; len(f.IPv6) > 0 && f.MTU != 0 && f.MTU < minMTU6 {
			p.report.add(f.Pos, f.Name, fmt.Sprintf("%s has IPv6 and an MTU of %d", f.Name, f.MTU),
				fmt.Sprintf("an MTU of at least %d", minMTU6))
		}
		for j := range i {
			if p.compareInterfaces(&ifaces[i], &ifaces[j]) {
				break
			}
		}
	}
	if p.cfg.SharedSocket && p.cfg.Grammar == GrammarNew {
		p.checkShared()
	}
}

// compareInterfaces records errors at the later of two interfaces if they have the same name,
// address, subnet, device or socket. It reports whether there was an error.
func (p *parser) compareInterfaces(i, before *Interface) bool {
	found := false
	report := func(pos Pos, text, msg, want string) {
		p.report.add(pos, text, msg+" of "+before.Name+" on "+before.Pos.lineText(), want)
		found = true
	}
	if i.Name == before.Name {
		p.report.add(i.Pos, i.Name,
			diagnostic.Quote(i.Name)+" is already declared on "+before.Pos.lineText(),
			"another name")
		found = true
	}
	for _, ours := range i.Addrs() {
		for _, other := range before.Addrs() {
			switch addr := ours.Addr(); {
			case addr.Is6() && addr.IsLinkLocalUnicast(): // unique only on the address's own link
			case addr == other.Addr():
				report(i.addrAt, addr.String(), addr.String()+" is already the address",
					"an address of its own")
			case ours.Overlaps(other):
				report(i.addrAt, ours.String(), "subnet "+ours.Masked().String()+
					" overlaps "+other.Masked().String(), "a subnet of its own")
			}
		}
	}
	switch {
	case i.Tun != nil && before.Tun != nil && i.Tun.Device == before.Tun.Device:
		report(i.udpAt, "tun:"+i.Tun.Device, i.Tun.Device+" is already the device",
			"a device of its own")
	case i.Tun != nil || before.Tun != nil || p.cfg.SharedSocket:
	case sameSocket(i.UDP, before.UDP):
		report(i.udpAt, i.UDP.String(), i.UDP.String()+" is already the UDP address",
			"a port of its own")
	}
	return found
}

// sameSocket reports whether two sockets of one machine cannot both be bound. It compares names as
// text, except localhost, and does not resolve them.
func sameSocket(a, b HostPort) bool {
	if a.Port != b.Port || a.Port == 0 {
		return false
	}
	addrA, okA := a.AddrPort()
	addrB, okB := b.AddrPort()
	if !okA || !okB {
		return a.Host == b.Host
	}
	every := func(a, b netip.Addr) bool { return a.IsUnspecified() && (a.Is6() || b.Is4()) }
	return addrA == addrB || every(addrA.Addr(), addrB.Addr()) || every(addrB.Addr(), addrA.Addr())
}

// checkShared checks the interfaces of a file whose interfaces share one socket.
func (p *parser) checkShared() {
	var first *Interface
	for i := range p.cfg.Interfaces {
		iface := &p.cfg.Interfaces[i]
		switch {
		case iface.Tun != nil:
		case first == nil:
			first = iface
		case iface.UDP != first.UDP:
			p.report.add(iface.udpAt, iface.UDP.String(),
				"this is not the UDP address of the shared socket of "+first.Name,
				first.UDP.String())
		}
	}
}

func (p *parser) checkNeighbors() {
	own := newIndex(p.cfg.Interfaces)
	p.neighborAt = map[netip.Addr]Pos{}
	points := map[string]Pos{} // the position of the neighbor of each point-to-point interface
	for i := range p.cfg.Neighbors {
		n := &p.cfg.Neighbors[i]
		if before, again := p.neighborAt[n.Addr]; again {
			p.report.add(n.Pos, n.Addr.String(), n.Addr.String()+
				" is already a neighbor on "+before.lineText(), "one line for it")
			continue
		}
		p.neighborAt[n.Addr] = n.Pos
		iface, ok := own.names[n.Iface]
		if !ok {
			p.unknownInterface(Word{n.Iface, n.ifaceAt})
		} else if p.checkPlace(n, iface) && n.Addr.Is4() && iface.Addr.Bits() == pointToPoint {
			p.checkAlone(n, points)
		}
		if ok {
			p.checkFamily(n, iface)
		}
		p.checkOwnAddress(n, own)
	}
}

// checkFamily records an error if a neighbor's UDP address and the interface's are of different
// families. A socket at [::] serves both families.
func (p *parser) checkFamily(n *Neighbor, f *Interface) {
	theirs, ours := n.UDP.family(), f.UDP.family()
	if f.Tun == nil && theirs != "" && ours != "" && theirs != ours && f.UDP.Host != "::" {
		p.report.add(n.udpAt, n.UDP.String(), n.UDP.String()+" is "+theirs+", and "+f.Name+" has "+
			f.UDP.String(), "an "+ours+" address, or [::]:"+strconv.Itoa(int(f.UDP.Port))+
			" for "+f.Name)
	}
}

// family returns IPv4 or IPv6, or "" if the host is a name.
func (h HostPort) family() string {
	switch at, ok := h.AddrPort(); {
	case !ok:
		return ""
	case at.Addr().Is4():
		return "IPv4"
	}
	return "IPv6"
}

// index finds a node's interfaces by properties that are unique in the node.
type index struct {
	names   map[string]*Interface
	addrs   map[netip.Addr]*Interface
	sockets map[string]*Interface
}

func newIndex(ifaces []Interface) index {
	own := index{map[string]*Interface{}, map[netip.Addr]*Interface{}, map[string]*Interface{}}
	for i := range slices.Backward(ifaces) { // so the first of two declarations wins
		iface := &ifaces[i]
		own.names[iface.Name] = iface
		for _, a := range iface.Addrs() {
			own.addrs[a.Addr()] = iface
		}
		if iface.UDP.Port != 0 {
			own.sockets[iface.UDP.Key()] = iface
		}
	}
	return own
}

// checkPlace reports whether a neighbor can be on the interface, and records an error if not.
func (p *parser) checkPlace(n *Neighbor, iface *Interface) bool {
	text := n.Addr.String()
	on, found := iface.on(n.Addr)
	subnet := on.Masked()
	switch {
	case iface.Tun != nil:
		p.report.add(n.ifaceAt, n.Iface, n.Iface+" is a TUN device, which has no neighbors",
			"an interface with a UDP address")
	case n.Addr.Is4() && iface.Addr.Bits() == pointToPoint,
		n.Addr.Is6() && n.Addr.IsLinkLocalUnicast() && len(iface.IPv6) > 0:
		return true
	case !found:
		p.report.add(n.Pos, text, text+" is outside the subnet of "+iface.Name,
			"an address of "+iface.subnets())
	case reserved(n.Addr, subnet) != "":
		p.report.add(n.Pos, text, text+" is "+reserved(n.Addr, subnet), "an address of a node")
	default:
		return true
	}
	return false
}

// checkAlone records an error for a second neighbor on a point-to-point link.
func (p *parser) checkAlone(n *Neighbor, points map[string]Pos) {
	if before, again := points[n.Iface]; again {
		p.report.add(n.Pos, n.Addr.String(), n.Iface+
			" is point-to-point (/32) and already has its neighbor on "+before.lineText(),
			"one neighbor, or a subnet such as /24")
		return
	}
	points[n.Iface] = n.Pos
}

// checkOwnAddress records an error for a neighbor that is the node itself.
func (p *parser) checkOwnAddress(n *Neighbor, own index) {
	if iface, ok := own.addrs[n.Addr]; ok {
		p.report.add(n.Pos, n.Addr.String(), n.Addr.String()+
			" is this node's own address (interface "+iface.Name+")", "another node's")
	}
	if iface, ok := own.sockets[n.UDP.Key()]; ok {
		p.report.add(n.udpAt, n.UDP.String(), n.UDP.String()+
			" is this node's own UDP address (interface "+iface.Name+")", "another node's")
	}
}

// unknownInterface records an error for a name that no interface has, unless a line that was
// rejected may have declared that interface.
func (p *parser) unknownInterface(name Word) {
	if p.suppressed[name.Text] {
		return
	}
	var names []string
	for i := range p.cfg.Interfaces {
		if have := p.cfg.Interfaces[i].Name; !slices.Contains(names, have) {
			names = append(names, have)
		}
		if len(names) == maxListed {
			break
		}
	}
	want := cmp.Or(diagnostic.OneOf(names), usageInterface)
	p.report.bad(name, "not an interface of this file", want)
}

func (i *Interface) subnets() string {
	var list []string
	for _, p := range i.Addrs() {
		list = append(list, p.Masked().String())
	}
	return strings.Join(list, " or ")
}

// checkScopedHop records an error for a link-local next hop that is not on the link of its zone.
func (p *parser) checkScopedHop(r Route) {
	via, zone := r.Via.String(), r.Via.Zone()
	face, ok := p.cfg.Interface(zone)
	if !ok {
		at := r.viaAt
		at.Col += len(via) - len(zone)
		p.unknownInterface(Word{zone, at})
		return
	}
	bare := r.Via.WithZone("")
	if face.Tun == nil && !p.suppressed[bare.String()] &&
		!slices.ContainsFunc(p.cfg.Neighbors, func(n Neighbor) bool {
			return n.Addr == bare && n.Iface == zone
		}) {
		p.report.add(r.viaAt, via, "next hop "+via+" is not a neighbor of this file",
			"neighbor "+bare.String()+" at HOST:PORT via "+zone)
	}
}

// checkNextHop records an error for a next hop that this node cannot use.
func (p *parser) checkNextHop(r Route) {
	via := r.Via.String()
	if r.Via.Is4() != r.Prefix.Addr().Is4() {
		p.report.add(r.viaAt, via, "next hop "+via+" is of another family than "+
			r.Prefix.String(), "an address of the same family")
		return
	}
	if r.Via.Zone() != "" {
		p.checkScopedHop(r)
		return
	}
	_, known := p.neighborAt[r.Via]
	i := slices.IndexFunc(p.cfg.Interfaces, func(i Interface) bool {
		_, on := i.on(r.Via)
		return on
	})
	switch {
	case i >= 0 && p.cfg.Interfaces[i].Has(r.Via):
		p.report.add(r.viaAt, via, "next hop "+via+" is this node's own address",
			"a neighbor's address")
	case known, p.suppressed[via]:
	case i < 0 && !p.subnetsUnknown:
		p.report.add(r.viaAt, via, "next hop "+via+" is on no interface's subnet",
			"a neighbor's address")
	case i >= 0 && p.cfg.Interfaces[i].Tun == nil:
		p.report.add(r.viaAt, via, "next hop "+via+" is not a neighbor of this file",
			"neighbor "+via+" at HOST:PORT via "+p.cfg.Interfaces[i].Name)
	}
}

// checkTCP compares the two limits of the retransmission timer. One of them may be a default.
func (p *parser) checkTCP() {
	tcp := p.cfg.TCP
	if tcp.RTOMin <= tcp.RTOMax {
		return
	}
	at, ok := p.seen["tcp rto-max"]
	if !ok {
		at = p.seen["tcp rto-min"]
	}
	p.report.add(at.Pos, at.Text, fmt.Sprintf("rto-min of %d us is above rto-max of %d us",
		tcp.RTOMin.Microseconds(), tcp.RTOMax.Microseconds()), "rto-min <= rto-max")
}

func (p *parser) checkRIP() {
	r := p.cfg.RIP
	for i, addr := range r.AdvertiseTo {
		if _, known := p.neighborAt[addr]; !known && !p.suppressed[addr.String()] {
			p.report.add(p.advertiseAt[i], addr.String(), addr.String()+
				" is not a neighbor of this file", "an address that a neighbor line declares")
		}
		if !p.cfg.SpeaksRIP() {
			p.report.note(p.advertiseAt[i], addr.String(),
				`nothing is advertised without "routing rip"`)
		}
	}
	p.checkRIPTimes()
	if p.cfg.SpeaksRIP() && p.cfg.Routing != RoutingRIP2 {
		p.noteRIP2()
	}
}

// checkRIPTimes compares the timers with each other. Some of them may be defaults.
func (p *parser) checkRIPTimes() {
	r := p.cfg.RIP
	offset := max(r.Offset, 0)
	if r.Offset == 0 && p.cfg.Routing > RoutingRIP {
		offset = rip.Timers{Periodic: r.Periodic}.WithDefaults(rip.RIPv2).PeriodicOffset
	}
	at, ok := p.seen["rip route-timeout-threshold"]
	if !ok {
		at = p.seen["rip periodic-update-rate"]
	}
	switch {
	case r.Timeout <= r.Periodic:
		p.report.add(at.Pos, at.Text, fmt.Sprintf(
			"routes would expire after %v, before the next update after %v",
			r.Timeout, r.Periodic), "route-timeout-threshold > periodic-update-rate")
	case offset > r.Periodic/2:
		at = p.seen["rip periodic-update-offset"]
		p.report.add(at.Pos, at.Text, fmt.Sprintf("the offset %v is more than half of the time %v",
			offset, r.Periodic), fmt.Sprint("at most ", (r.Periodic/2).Milliseconds()))
	case r.Timeout <= r.Periodic+offset:
		p.report.add(at.Pos, at.Text, fmt.Sprintf(
			"routes would expire after %v, before the next update after up to %v",
			r.Timeout, r.Periodic+offset),
			"route-timeout-threshold > periodic-update-rate + periodic-update-offset")
	}
}

// noteRIP2 notes settings that only RIPv2 has.
func (p *parser) noteRIP2() {
	note := func(at Word, what string) {
		p.report.note(at.Pos, at.Text, what+` has no effect without "routing rip2"`)
	}
	for _, l := range p.links {
		if l.table == &ripTable && slices.Contains([]string{"send", "receive"}, l.key.Text) {
			note(l.key, l.key.Text)
		}
	}
	for _, k := range p.keys {
		note(k.name, "authentication")
	}
}
