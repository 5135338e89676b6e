package netns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Host is a host whose addresses its programs share with a node.
type Host struct {
	Addrs []netip.Prefix
	MTU   int
	Names string // its hosts file
	// Servers are its name servers, and Zone is that of names without a dot.
	Servers []netip.Addr
	Zone    string
}

// Addresses of the other end of a host's kernel, at which nothing answers: one of those for such
// ends (RFC 7335), and a link-local one.
var (
	hostGateway  = netip.MustParseAddr("192.0.0.1")
	hostGateway6 = netip.MustParseAddr("fe80::1")
)

// The kernel's ports are below those that the node chooses from (RFC 6335).
var hostPorts = [2]uint16{32768, 49151}

// MinMTU6 is the smallest MTU of a link with IPv6 (RFC 8200 §5).
const MinMTU6 = 1280

// Config describes the host's network to its programs. They send from the first IPv4 address unless
// they choose another.
func (h *Host) Config() Config {
	cfg := Config{
		Device: "host0", MTU: h.MTU, Ports: hostPorts, Diag: true,
		Files: map[string]string{"/etc/hosts": h.Names, ResolvConf: h.resolvConf()},
	}
	for _, gateway := range []netip.Addr{hostGateway, hostGateway6} {
		i := slices.IndexFunc(h.Addrs, func(p netip.Prefix) bool {
			return p.Addr().Is4() == gateway.Is4()
		})
		if i < 0 || gateway.Is6() && h.MTU < MinMTU6 {
			continue
		}
		cfg.Gateway = append(cfg.Gateway, gateway)
		for n, p := range h.Addrs[i:] {
			switch a := p.Addr(); {
			case a.Is4() != gateway.Is4():
			case n > 0 && a.Is4():
				cfg.Others = append(cfg.Others, a)
			default:
				cfg.Kernel = append(cfg.Kernel, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	}
	return cfg
}

// ResolvConf is the file with the name servers.
const ResolvConf = "/etc/resolv.conf"

// resolvConf returns a resolv.conf with the host's servers. A server that does not answer delays a
// program by four seconds at most.
func (h *Host) resolvConf() string {
	var b strings.Builder
	zone := "." // do not search
	if len(h.Servers) > 0 {
		zone = h.Zone
	}
	fmt.Fprintf(&b, "search %s\noptions timeout:2 attempts:2\n", zone)
	for _, s := range h.Servers {
		fmt.Fprintf(&b, "nameserver %v\n", s)
	}
	return b.String()
}
