package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// The link of `node link`.
const (
	linkDevice = "link0"
	linkBits   = 30
	linkBits6  = 126
	resolvPath = "/etc/resolv.conf"
)

// linkRange has the addresses of links: those between carriers and their customers (RFC 6598 §7),
// which other networks do not use.
var linkRange = netip.MustParsePrefix("100.64.0.0/10")

// linkRange6 has the IPv6 addresses of links, which end in those of IPv4: unique local addresses
// with a random global ID (RFC 4193 §3.2).
var linkRange6 = netip.MustParsePrefix("fdb6:2c0a:91e5::/48")

// linkEnds are the addresses of a link's ends. Those of IPv6 are invalid without IPv6.
type linkEnds struct{ gateway, program, gateway6, program6 netip.Addr }

// freeLink chooses the network of a link: the one behind those that this machine, or the link
// around this one, already has. The link has IPv6 if this machine has it.
func freeLink() (e linkEnds, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return e, fmt.Errorf("this machine's addresses: %w", err)
	}
	var list []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr())
		}
	}
	return freeLinkBehind(list)
}

// freeLinkBehind is freeLink for a machine with these addresses.
func freeLinkBehind(addrs []netip.Addr) (e linkEnds, err error) {
	last, has6 := netip.Addr{}, false
	for _, a := range addrs {
		has6 = has6 || a.Is6() && a.IsGlobalUnicast()
		if linkRange.Contains(a) && (!last.IsValid() || last.Less(a)) {
			last = a
		}
	}
	base := linkRange.Addr()
	if last.IsValid() {
		base = after(netip.PrefixFrom(last, linkBits).Masked().Addr())
		if !linkRange.Contains(base) {
			return e, fmt.Errorf("no free network after %v in %v", last, linkRange)
		}
	}
	e = linkEnds{gateway: base.Next(), program: base.Next().Next()}
	if has6 {
		e.gateway6, e.program6 = in6(e.gateway), in6(e.program)
	}
	return e, nil
}

// in6 returns the address of linkRange6 that ends in an IPv4 address.
func in6(a netip.Addr) netip.Addr {
	b, end := linkRange6.Addr().As16(), a.As4()
	copy(b[len(b)-len(end):], end[:])
	return netip.AddrFrom16(b)
}

// kernel returns the addresses of the program's end.
func (e linkEnds) kernel() []netip.Prefix {
	list := []netip.Prefix{netip.PrefixFrom(e.program, linkBits)}
	if e.program6.IsValid() {
		list = append(list, netip.PrefixFrom(e.program6, linkBits6))
	}
	return list
}

// gateways returns the addresses of the other end.
func (e linkEnds) gateways() []netip.Addr {
	if e.gateway6.IsValid() {
		return []netip.Addr{e.gateway, e.gateway6}
	}
	return []netip.Addr{e.gateway}
}

// after returns the first address of the next network of linkBits.
func after(a netip.Addr) netip.Addr {
	for range 1 << (32 - linkBits) {
		a = a.Next()
	}
	return a
}

// resolvConf returns the program's resolv.conf, and the name server that the gateway stands for. A
// name server at this machine's loopback becomes the gateway, and so does a link-local one.
func (e linkEnds) resolvConf(was string) (text string, dns netip.AddrPort) {
	const port = 53 // RFC 1035 §4.2
	servers := 0
	var b strings.Builder
	for line := range strings.Lines(was) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			b.WriteString(line)
			continue
		}
		a, err := netip.ParseAddr(f[1])
		switch {
		case err == nil && (a.IsLoopback() || a.IsLinkLocalUnicast()):
			if !dns.IsValid() {
				dns = netip.AddrPortFrom(a, port)
			}
			fmt.Fprintf(&b, "nameserver %v\n", e.gateway)
		case err == nil && a.Is6() && !e.gateway6.IsValid():
			continue
		default:
			b.WriteString(line)
		}
		servers++
	}
	if servers == 0 {
		fmt.Fprintf(&b, "nameserver %v\n", e.gateway)
	}
	return b.String(), dns
}
