package lnx

import (
	"net/netip"
	"slices"
)

// tunPrefix stands before a device where a UDP address would stand.
const tunPrefix = "tun:"

// maxTunRoutes bounds the routes of one device.
const maxTunRoutes = 32

// readTun reads what follows an interface's address if it is a TUN device.
func (p *parser) readTun(l line, device string, addr netip.Prefix) (*Tun, bool) {
	name, ok := p.name(part(l.words[3], len(tunPrefix), device))
	tun := &Tun{Device: name}
	if len(l.words) == 4 {
		return tun, ok
	}
	if !p.fixed(l, 4, "kernel", usageTun) || !p.fixed(l, 6, "routes", usageTun) {
		return tun, false
	}
	least := 6
	if len(l.words) > least {
		least = 8 // a prefix stands behind the word
	}
	if !p.words(l, least, 7+maxTunRoutes, usageTun) {
		return tun, false
	}
	kernel, okKernel := p.addr(l.words[5])
	if !okKernel || !addr.IsValid() {
		return tun, false
	}
	switch why := reserved(kernel, addr.Masked()); {
	case kernel == addr.Addr():
		p.bad(l.words[5], "the node's own end", "another address of "+addr.Masked().String())
	case !addr.Contains(kernel):
		p.bad(l.words[5], "not on the interface's subnet", "an address of "+addr.Masked().String())
	case why != "":
		p.bad(l.words[5], why, "an address of a node")
	default:
		tun.Kernel = kernel
		return tun, p.readTunRoutes(l, addr.Masked(), tun) && ok
	}
	return tun, false
}

// readTunRoutes reads the prefixes that the kernel is told to reach by the node.
func (p *parser) readTunRoutes(l line, link netip.Prefix, tun *Tun) bool {
	ok := true
	for _, w := range l.words[min(len(l.words), 7):] {
		prefix, okPrefix := p.prefix(w)
		switch {
		case !okPrefix:
			ok = false
		case prefix == link:
			p.bad(w, "the link itself, to which the kernel needs no route", usageTun)
			ok = false
		case slices.Contains(tun.Routes, prefix):
			p.bad(w, "a route for the second time", usageTun)
			ok = false
		default:
			tun.Routes = append(tun.Routes, prefix)
		}
	}
	return ok
}
