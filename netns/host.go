package netns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Host is a host in a network. Its addresses belong to the programs and to a node together.
type Host struct {
	Addrs []netip.Prefix
	MTU   int
	Names string // content of the hosts file
	// Servers are the host's name servers, and Zone is the zone of names without a dot.
	Servers []netip.Addr
	Zone    string
	// ServesDNS is set if the node serves the names. The kernel delivers the programs' queries to
	// the node's addresses in the programs' namespace, so the node needs sockets there.
	ServesDNS bool
}

// Addresses of the other end of the link to a host's kernel. Nothing answers there. The IPv4
// address is from the range for such ends (RFC 7335), the IPv6 address is link-local.
var (
	hostGateway  = netip.MustParseAddr("192.0.0.1")
	hostGateway6 = netip.MustParseAddr("fe80::1")
)

// The kernel's ephemeral ports are below those from which the node chooses (RFC 6335).
var hostPorts = [2]uint16{32768, 49151}

// MinMTU6 is the smallest MTU of a link with IPv6 (RFC 8200 §5).
const MinMTU6 = 1280

// Config returns the configuration of the host's network for its programs. Programs send from the
// first IPv4 address unless they choose another.
func (h *Host) Config() Config {
	cfg := Config{
		Device: "host0", MTU: h.MTU, Ports: hostPorts, Diag: true, DNS: h.ServesDNS,
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
// program by at most four seconds.
func (h *Host) resolvConf() string {
	var b strings.Builder
	zone := "." // stands for no search domain
	if len(h.Servers) > 0 {
		zone = h.Zone
	}
	fmt.Fprintf(&b, "search %s\noptions timeout:2 attempts:2\n", zone)
	for _, s := range h.Servers {
		fmt.Fprintf(&b, "nameserver %v\n", s)
	}
	return b.String()
}
