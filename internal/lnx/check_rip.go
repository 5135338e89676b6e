package lnx

import (
	"fmt"
	"slices"
)

func (p *parser) checkRIP() {
	rip := p.cfg.RIP
	for i, addr := range rip.AdvertiseTo {
		if _, known := p.neighborAt[addr]; !known && !p.excused[addr.String()] {
			p.report.add(p.advertiseAt[i], addr.String(), addr.String()+
				" is no neighbour of this file", "an address that a neighbor line declares")
		}
		if !p.cfg.speaksRIP() {
			p.report.note(p.advertiseAt[i], addr.String(),
				`nothing is advertised without "routing rip"`)
		}
	}
	p.checkRIPTimes()
	if p.cfg.Routing == RoutingRIP {
		p.noteRIP2()
	}
}

// checkRIPTimes compares the times with each other, of which some may be defaults.
func (p *parser) checkRIPTimes() {
	rip := p.cfg.RIP
	offset := max(rip.Offset, 0)
	if rip.Offset == 0 && p.cfg.Routing == RoutingRIP2 {
		offset = rip.Periodic / offsetShare
	}
	at, ok := p.seen["rip route-timeout-threshold"]
	if !ok {
		at = p.seen["rip periodic-update-rate"]
	}
	switch {
	case rip.Timeout <= rip.Periodic:
		p.report.add(at.pos, at.text, fmt.Sprintf(
			"routes would die after %v, before they are renewed after %v",
			rip.Timeout, rip.Periodic), "route-timeout-threshold > periodic-update-rate")
	case offset > rip.Periodic/2:
		at = p.seen["rip periodic-update-offset"]
		p.report.add(at.pos, at.text, fmt.Sprintf("the offset %v is more than half of the time %v",
			offset, rip.Periodic), fmt.Sprint("at most ", (rip.Periodic/2).Milliseconds()))
	case rip.Timeout <= rip.Periodic+offset:
		p.report.add(at.pos, at.text, fmt.Sprintf(
			"routes would die after %v, before they are renewed after up to %v",
			rip.Timeout, rip.Periodic+offset),
			"route-timeout-threshold > periodic-update-rate + periodic-update-offset")
	}
}

// offsetShare is the part of the time between full updates by which chance moves them in
// RIPv2, where a file does not say: RFC 2453 §3.8 has 5 s of 30.
const offsetShare = 6

// noteRIP2 remarks on what only RIPv2 has.
func (p *parser) noteRIP2() {
	note := func(at word, what string) {
		p.report.note(at.pos, at.text, what+` means nothing without "routing rip2"`)
	}
	for _, l := range p.links {
		if l.table == &ripTable && slices.Contains([]string{"send", "receive"}, l.key.text) {
			note(l.key, l.key.text)
		}
	}
	for _, k := range p.keys {
		note(k.name, "authentication")
	}
}

// checkRIPLink notes two routers on a link of which one will not understand the other.
func checkRIPLink(c *Config, neighbor *Neighbor, peer owner, r *report) {
	ours, ok := c.Interface(neighbor.Iface)
	if !ok || !c.speaksRIP() || !peer.config.speaksRIP() {
		return
	}
	text, them := neighbor.Addr.String(), peer.config.Name
	say := func(msg string) { r.note(neighbor.Pos, text, msg) }
	keys := peer.iface.RIP.Keys
	switch {
	case c.Routing != peer.config.Routing:
		say(fmt.Sprintf("routing is %s here and %s at %s: they do not understand each other",
			c.Routing, peer.config.Routing, them))
	case c.Routing != RoutingRIP2 || ours.RIP.Passive || ours.RIP.Send == "none":
	case len(ours.RIP.Keys) == 0 && len(keys) > 0:
		say(them + " takes only what is authenticated, and we have no key for it")
	case len(ours.RIP.Keys) > 0 && !slices.Contains(keys, ours.RIP.Keys[0]):
		say(fmt.Sprintf("%s does not know our %s, so it refuses what we say", them,
			ours.RIP.Keys[0].name()))
	}
}

func (c *Config) speaksRIP() bool {
	return c.Routing == RoutingRIP || c.Routing == RoutingRIP2
}

// name is the key without its secret.
func (k RIPKey) name() string {
	if k.Algorithm == ripPassword {
		return ripPassword
	}
	return fmt.Sprintf("key %d (%s)", k.ID, k.Algorithm)
}
