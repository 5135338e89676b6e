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
	resolvPath = "/etc/resolv.conf"
)

// linkRange has the addresses of links: those between carriers and their customers (RFC 6598 §7),
// which other networks do not use.
var linkRange = netip.MustParsePrefix("100.64.0.0/10")

// linkEnds are the addresses of a link's ends.
type linkEnds struct{ gateway, program netip.Addr }

// freeLink chooses the network of a link: the one behind those that this machine, or the link
// around this one, already has.
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
	last := netip.Addr{}
	for _, a := range addrs {
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
	return linkEnds{gateway: base.Next(), program: base.Next().Next()}, nil
}

// after returns the first address of the next network of linkBits.
func after(a netip.Addr) netip.Addr {
	for range 1 << (32 - linkBits) {
		a = a.Next()
	}
	return a
}

// resolvConf returns the program's resolv.conf, and the name server that the gateway stands for. A
// name server at this machine's loopback becomes the gateway.
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
		case err == nil && a.IsLoopback():
			if !dns.IsValid() {
				dns = netip.AddrPortFrom(a, port)
			}
			fmt.Fprintf(&b, "nameserver %v\n", e.gateway)
		case err == nil && a.Is6(): // the link has no IPv6
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
