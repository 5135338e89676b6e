package lnx

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// DNS configures the Domain Name System.
type DNS struct {
	// Servers are the DNS servers that the node queries.
	Servers []netip.Addr
	// Zone is the domain of the hosts. If empty, it is internal.
	Zone string
	// Names are the hosts of the zone that the node's own server serves. Without names the node
	// runs no server.
	Names []HostName
}

// HostName is a host of a zone, with its addresses.
type HostName struct {
	Name  string
	Addrs []netip.Addr
}

const (
	usageName = "dns name NAME ADDR …"

	maxDNSServers = 3
	maxNameAddrs  = 16 // addresses in one line
	maxNames      = 2000
	maxZoneChars  = 180
	maxLabelChars = 63 // limit of RFC 1035 §2.3.4

	wantHostName = "letters, digits, - and _, with dots between"
)

var dnsDirectives = slices.Concat([]directive{
	{
		"dns server", "dns server ADDR", 3, 3, readServer,
		func(b *bytes.Buffer, c *Config) {
			for _, a := range c.DNS.Servers {
				fmt.Fprintf(b, "dns server %s\n", a)
			}
		},
	},
	{
		"dns name", usageName, 4, 3 + maxNameAddrs, readName,
		func(b *bytes.Buffer, c *Config) {
			for _, n := range c.DNS.Names {
				for some := range slices.Chunk(n.Addrs, maxNameAddrs/2) {
					fmt.Fprintf(b, "dns name %s", n.Name)
					for _, a := range some {
						fmt.Fprintf(b, " %s", a)
					}
					b.WriteString("\n")
				}
			}
		},
	},
}, directivesOf(
	settingOf("dns zone", "ZONE", func(c *Config) *string { return &c.DNS.Zone },
		func(r *report, w Word) (string, bool) {
			if len(w.Text) > maxZoneChars || !IsHostName(w.Text) {
				r.bad(w, "not a domain name", wantHostName)
				return "", false
			}
			return w.Text, true
		}, func(zone string) string { return zone }),
))

// readServer reads the address of a server that the node queries.
func readServer(p *parser, l line) {
	a, ok := p.report.addr(l.words[2])
	list := &p.cfg.DNS.Servers
	switch {
	case !ok:
	case slices.Contains(*list, a):
		p.report.bad(l.words[2], "already a DNS server of this node", "one line with it")
	case len(*list) == maxDNSServers:
		p.report.bad(l.words[2], "one DNS server too many",
			"at most "+strconv.Itoa(maxDNSServers)+" lines")
	default:
		*list = append(*list, a)
	}
}

// readName reads a host of the zone. Several lines with the same name add addresses to the same
// host.
func readName(p *parser, l line) {
	name := l.words[2]
	if !IsHostName(name.Text) {
		p.report.bad(name, "not a host name", wantHostName)
		return
	}
	list := &p.cfg.DNS.Names
	i := slices.IndexFunc(*list, func(n HostName) bool {
		return strings.EqualFold(n.Name, name.Text) // RFC 4343 §3: case does not matter
	})
	host := HostName{Name: name.Text}
	if i >= 0 {
		host = (*list)[i]
	}
	for _, w := range l.words[3:] {
		a, ok := p.report.addr(w)
		switch {
		case !ok:
			return
		case slices.Contains(host.Addrs, a):
			p.report.bad(w, "already an address of "+host.Name, "one line with it")
			return
		}
		host.Addrs = append(host.Addrs, a)
	}
	switch {
	case i >= 0:
		(*list)[i] = host
	case len(*list) == maxNames:
		p.report.bad(name, "one name too many", "at most "+strconv.Itoa(maxNames))
	default:
		*list = append(*list, host)
	}
}

// IsHostName reports whether a text is a domain name that consists of letters, digits, - and _.
func IsHostName(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if len(label) > maxLabelChars || !consistsOf(label, "-_") {
			return false
		}
	}
	return len(text) <= maxHostChars
}
