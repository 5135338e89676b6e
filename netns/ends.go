package netns

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Prefix lengths of a link's networks.
const (
	LinkBits  = 30
	LinkBits6 = 126
)

// linkRange has the addresses of links. It is the range for links between carriers and their
// customers (RFC 6598 §7), which other networks do not use.
var linkRange = netip.MustParsePrefix("100.64.0.0/10")

// linkRange6 has the IPv6 addresses of links, whose last bits are those of the IPv4 address. They
// are unique local addresses with a random global ID (RFC 4193 §3.2).
var linkRange6 = netip.MustParsePrefix("fdb6:2c0a:91e5::/48")

// LinkEnds are the addresses of a link's ends. On a link without IPv6, the IPv6 addresses are
// invalid.
type LinkEnds struct{ Gateway, Program, Gateway6, Program6 netip.Addr }

// FreeLink chooses the network of a link: the next one after all that this machine, or an enclosing
// link, already uses. The link has IPv6 if this machine has IPv6.
func FreeLink() (e LinkEnds, err error) {
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

// freeLinkBehind is FreeLink for a machine with these addresses.
func freeLinkBehind(addrs []netip.Addr) (e LinkEnds, err error) {
	last, has6 := netip.Addr{}, false
	for _, a := range addrs {
		has6 = has6 || a.Is6() && a.IsGlobalUnicast()
		if linkRange.Contains(a) && (!last.IsValid() || last.Less(a)) {
			last = a
		}
	}
	base := linkRange.Addr()
	if last.IsValid() {
		base = after(netip.PrefixFrom(last, LinkBits).Masked().Addr())
		if !linkRange.Contains(base) {
			return e, fmt.Errorf("too many nested links: no free addresses after %v in %v", last,
				linkRange)
		}
	}
	e = LinkEnds{Gateway: base.Next(), Program: base.Next().Next()}
	if has6 {
		e.Gateway6, e.Program6 = in6(e.Gateway), in6(e.Program)
	}
	return e, nil
}

// in6 returns the address of linkRange6 that ends in an IPv4 address.
func in6(a netip.Addr) netip.Addr {
	b, end := linkRange6.Addr().As16(), a.As4()
	copy(b[len(b)-len(end):], end[:])
	return netip.AddrFrom16(b)
}

// Kernel returns the addresses of the program's end.
func (e LinkEnds) Kernel() []netip.Prefix {
	list := []netip.Prefix{netip.PrefixFrom(e.Program, LinkBits)}
	if e.Program6.IsValid() {
		list = append(list, netip.PrefixFrom(e.Program6, LinkBits6))
	}
	return list
}

// Gateways returns the addresses of the other end.
func (e LinkEnds) Gateways() []netip.Addr {
	if e.Gateway6.IsValid() {
		return []netip.Addr{e.Gateway, e.Gateway6}
	}
	return []netip.Addr{e.Gateway}
}

// after returns the first address of the next network of LinkBits.
func after(a netip.Addr) netip.Addr {
	for range 1 << (32 - LinkBits) {
		a = a.Next()
	}
	return a
}

// ResolvConf converts the machine's resolv.conf for a program behind a link. It also returns the
// name server for which the gateway stands. The gateway replaces a name server at a loopback or
// link-local address. On a link without IPv6, other IPv6 name servers are removed. If none is left,
// the gateway is one.
func (e LinkEnds) ResolvConf(machine string) (text string, dns netip.AddrPort) {
	const port = 53 // as in RFC 1035 §4.2
	servers := 0
	var b strings.Builder
	for line := range strings.Lines(machine) {
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
			fmt.Fprintf(&b, "nameserver %v\n", e.Gateway)
		case err == nil && a.Is6() && !e.Gateway6.IsValid():
			continue
		default:
			b.WriteString(line)
		}
		servers++
	}
	if servers == 0 {
		fmt.Fprintf(&b, "nameserver %v\n", e.Gateway)
	}
	return b.String(), dns
}
