package lnx

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

func (p *parser) readInterface(l line) {
	name, okName := p.report.name(l.words[1])
	addr, okAddr := p.report.addrLen(l.words[2])
	i := Interface{
		Name: name, Pos: l.words[1].Pos, addrAt: l.words[2].Pos, udpAt: l.words[3].Pos,
	}
	i.addAddr(addr)
	okUDP := false
	if device, tun := strings.CutPrefix(l.words[3].Text, tunPrefix); tun {
		i.Tun, okUDP = p.readTun(l, device)
	} else {
		i.UDP, okUDP = p.report.hostPort(l.words[3])
		okUDP = p.report.words(l, 4, 4, usageInterface) && okUDP
	}
	if okName && okAddr && okUDP {
		p.addInterface(i)
	}
}

func (i *Interface) addAddr(p netip.Prefix) {
	if p.Addr().Is6() {
		i.IPv6 = append(i.IPv6, p)
	} else {
		i.Addr = p
	}
}

// readAddress reads a line that adds an address to an interface.
func (p *parser) readAddress(l line) {
	addr, ok := netip.Prefix{}, l.words[2].Text == wordAuto
	if !ok {
		addr, ok = p.report.addrLen(l.words[2])
	}
	if ok {
		p.addresses = append(p.addresses, addressLine{l.words[1], l.words[2], addr})
	}
}

// These are the keywords of lines about router advertisements.
const (
	wordAuto      = "auto"
	wordAdvertise = "advertise"
)

// addressLine is an address line, which may precede the line of its interface. In a line about
// router advertisements addr is invalid, and at is the keyword.
type addressLine struct {
	name, at Word
	addr     netip.Prefix
}

// addAddresses adds the addresses of address lines to their interfaces. An interface has at most
// one IPv4 address, and at most one IPv6 address in each subnet.
func (p *parser) addAddresses() {
	for _, l := range p.addresses {
		i, ok := p.cfg.Interface(l.name.Text)
		switch {
		case !ok:
			p.unknownInterface(l.name)
		case !l.addr.IsValid():
			p.setAdverts(l, i)
		case l.addr.Addr().Is4() && i.Addr.IsValid():
			p.report.bad(l.at, "a second IPv4 address of "+i.Name, "an IPv6 address")
		case slices.ContainsFunc(i.IPv6, l.addr.Overlaps):
			p.report.bad(l.at, "a second address of a subnet of "+i.Name,
				"an address of another subnet")
		default:
			i.addAddr(l.addr)
		}
	}
	for _, l := range p.addresses {
		if i, ok := p.cfg.Interface(l.name.Text); ok && l.at.Text == wordAdvertise {
			p.checkAdvertise(l.at, i)
		}
	}
}

// setAdverts applies a line about router advertisements.
func (p *parser) setAdverts(l addressLine, i *Interface) {
	switch {
	case i.Tun == nil:
		p.report.add(l.at.Pos, l.at.Text, i.Name+" is a UDP link, whose nodes are in the file",
			"an interface with a TUN device")
	case !p.once(l.at.Text+" of "+i.Name, l.at):
	case l.at.Text == wordAuto:
		i.Tun.Auto = true
	default:
		i.Tun.Advertise = true
	}
}

// checkAdvertise records an error for an interface that has nothing to advertise.
func (p *parser) checkAdvertise(at Word, i *Interface) {
	switch {
	case i.Tun == nil: // another check reports this
	case i.Tun.Auto:
		p.report.add(at.Pos, at.Text, i.Name+" gets its addresses from a router",
			"either this line or address "+i.Name+" auto")
	case !slices.ContainsFunc(i.IPv6, func(a netip.Prefix) bool {
		return !a.Addr().IsLinkLocalUnicast()
	}):
		p.report.add(at.Pos, at.Text, i.Name+" has no IPv6 network to advertise",
			"address "+i.Name+" ADDR/64 with an IPv6 address")
	}
}

func formatInterfaces(b *bytes.Buffer, c *Config) {
	for _, i := range c.Interfaces {
		addrs, where := i.Addrs(), i.UDP.String()
		if i.Tun != nil {
			where = tunPrefix + i.Tun.Device + i.Tun.End()
		}
		fmt.Fprintf(b, "interface %s %s %s\n", i.Name, addrs[0], where)
		for _, a := range addrs[1:] {
			fmt.Fprintf(b, "address %s %s\n", i.Name, a)
		}
		if i.Tun != nil && i.Tun.Auto {
			fmt.Fprintf(b, "address %s %s\n", i.Name, wordAuto)
		}
		if i.Tun != nil && i.Tun.Advertise {
			fmt.Fprintf(b, "%s %s\n", wordAdvertise, i.Name)
		}
	}
}

// readTun reads the device. readKernels reads the words after it later, because they depend on all
// addresses of the interface.
func (p *parser) readTun(l line, device string) (*Tun, bool) {
	if len(l.words) > 4 {
		p.tuns[l.words[1].Pos] = l
	}
	name, ok := p.report.name(part(l.words[3], len(tunPrefix), device))
	return &Tun{Device: name}, ok
}

// readKernels reads the words after the devices: the addresses and routes of the kernel's ends.
func (p *parser) readKernels() {
	for n := range p.cfg.Interfaces {
		i := &p.cfg.Interfaces[n]
		l, ok := p.tuns[i.Pos]
		if !ok || !p.report.fixed(l, 4, "kernel", usageTun) ||
			!p.report.words(l, 6, len(l.words), usageTun) {
			continue
		}
		rest := l.words[5:]
		for ; len(rest) > 0 && rest[0].Text != "routes"; rest = rest[1:] {
			ok = p.readKernel(i, rest[0]) && ok
		}
		least := len(l.words) - len(rest) + 2 // a prefix must follow the keyword
		if !ok || len(rest) == 0 ||
			!p.report.words(l, least, least-1+maxTunRoutes, usageTun) {
			continue
		}
		for _, w := range rest[1:] {
			p.readTunRoute(i, w)
		}
	}
}

// readKernel reads an address of the kernel's end.
func (p *parser) readKernel(i *Interface, w Word) bool {
	a, ok := p.report.addr(w)
	if !ok {
		return false
	}
	on, found := i.on(a)
	why, want := "", "an address of "+i.subnets()
	switch {
	case a.Is6() && a.IsLinkLocalUnicast():
		why = "a link-local address, of which the kernel has its own"
	case !found:
		why = "not on the interface's subnet"
	case i.Tun.Reaches(a):
		why, want = "a second address of its family", "one IPv4 and one IPv6 address at most"
	default:
		why, want = NeighborFault(a, on), "another address of "+i.subnets()
	}
	if why != "" {
		p.report.bad(w, why, want)
		return false
	}
	i.Tun.Kernel = append(i.Tun.Kernel, a)
	return true
}

// Reaches reports whether the kernel's end has an address of a's family.
func (t *Tun) Reaches(a netip.Addr) bool {
	return slices.ContainsFunc(t.Kernel, func(k netip.Addr) bool { return k.Is4() == a.Is4() })
}

// readTunRoute reads a prefix that the kernel routes through the node.
func (p *parser) readTunRoute(i *Interface, w Word) {
	prefix, ok := p.report.prefix(w)
	ours := func(a netip.Prefix) bool { return a.Masked() == prefix }
	switch {
	case !ok:
	case slices.ContainsFunc(i.Addrs(), ours):
		p.report.bad(w, "the link itself, to which the kernel needs no route", usageTun)
	case slices.Contains(i.Tun.Routes, prefix):
		p.report.bad(w, "a duplicate route", usageTun)
	case !i.Tun.Reaches(prefix.Addr()):
		p.report.bad(w, "of another family than the addresses of the kernel's end",
			"an address of that family after `kernel`")
	default:
		i.Tun.Routes = append(i.Tun.Routes, prefix)
	}
}

func (p *parser) readNeighbor(l line) {
	okForm := p.report.fixed(l, 2, "at", usageNeighbor)
	if !okForm && len(l.words) < 6 || !p.report.words(l, 6, 6, usageNeighbor) {
		return
	}
	okForm = p.report.fixed(l, 4, "via", usageNeighbor) && okForm
	addr, okAddr := p.report.addr(l.words[1])
	udp, okUDP := p.report.destination(l.words[3])
	if okForm && okAddr && okUDP {
		p.cfg.Neighbors = append(p.cfg.Neighbors, Neighbor{
			Addr: addr, UDP: udp, Iface: l.words[5].Text,
			Pos: l.words[1].Pos, udpAt: l.words[3].Pos, ifaceAt: l.words[5].Pos,
		})
	}
}

// readSocket reads the directive that makes all interfaces share one socket, as in the files of
// 2013 to 2022.
func (p *parser) readSocket(l line) {
	if p.report.fixed(l, 1, "shared", "socket shared") && p.once("socket", l.keyword()) {
		p.cfg.SharedSocket = true
	}
}
