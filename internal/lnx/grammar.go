package lnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// directive is one directive of the new grammar: its keywords, its form, its number of words, and
// its reader and writer.
type directive struct {
	name  string // one or two words
	usage string
	least int
	most  int
	read  func(*parser, line)
	write func(*bytes.Buffer, *Config) // writes the directive; nil: another directive writes it
}

const (
	usageInterface = "interface NAME ADDR/LEN HOST:PORT"
	usageAddress   = "address NAME ADDR/LEN, or auto"
	usageAdvertise = "advertise NAME"
	usageTun       = "interface NAME ADDR/LEN tun:DEV [kernel ADDR … [routes PREFIX/LEN …]]"
	usageRoute     = "route PREFIX/LEN via ADDR [metric N], or blackhole, unreachable or prohibit"
	usageNeighbor  = "neighbor ADDR at HOST:PORT via NAME"
	usageImpair    = "impair NAME [in, out or both] ARG …, with the arguments of tc-netem"
)

// directives lists all directives.
var directives = slices.Concat([]directive{
	{
		"interface", usageInterface + " or " + usageTun, 4, 8 + maxTunRoutes,
		(*parser).readInterface, formatInterfaces,
	},
	{"address", usageAddress, 3, 3, (*parser).readAddress, nil},
	{
		wordAdvertise, usageAdvertise, 2, 2,
		func(p *parser, l line) {
			p.addresses = append(p.addresses, addressLine{name: l.words[1], at: l.words[0]})
		}, nil,
	},
	{
		"neighbor", usageNeighbor, 2, 6, (*parser).readNeighbor,
		func(b *bytes.Buffer, c *Config) {
			for _, n := range c.Neighbors {
				fmt.Fprintf(b, "neighbor %s at %s via %s\n", n.Addr, n.UDP, n.Iface)
			}
		},
	},
	{
		"routing", "routing rip, rip2, ripng, static, none or rip ripng", 2, 3,
		(*parser).readRouting,
		func(b *bytes.Buffer, c *Config) { fmt.Fprintf(b, "routing %s\n", c.Routing) },
	},
	{
		"route", usageRoute, 2, 6, (*parser).readRoute,
		func(b *bytes.Buffer, c *Config) {
			for _, r := range c.Routes {
				fmt.Fprintf(b, "route %s %s\n", r.Prefix, r.words())
			}
		},
	},
	linkTable.directive(nil),
	{
		"impair", usageImpair, 3, maxImpairWords, (*parser).readImpair,
		func(b *bytes.Buffer, c *Config) {
			for _, l := range c.Impair {
				fmt.Fprintf(b, "impair %s %s %s\n", l.Iface, l.Way, l.Text())
			}
		},
	},
	{
		"socket", "socket shared", 2, 2, (*parser).readSocket,
		func(b *bytes.Buffer, c *Config) {
			if c.SharedSocket {
				b.WriteString("socket shared\n")
			}
		},
	},
}, ripDirectives, tcpDirectives, icmpDirectives, ipDirectives, dnsDirectives,
	forwardDirectives, natDirectives)

// formatOrder lists the directives that Format writes first. The others follow in the order of
// directives.
var formatOrder = []string{
	"socket", "interface", "link", "impair", "neighbor", "routing", "route",
	"rip advertise-to", "rip originate", "rip redistribute", "rip periodic-update-rate",
	"rip route-timeout-threshold", "rip periodic-update-offset", "rip garbage-collection-time",
	"rip hold-down", "rip ask-after", "rip triggered-update-delay", "rip withdraw-refused",
	"rip entry-size", "rip interface", "tcp profile",
}

// Format returns the Config as text of the new grammar, whatever grammar it came from. Parse
// returns an equal Config for this text, except for Grammar, Name and the positions.
func (c *Config) Format() []byte {
	var b bytes.Buffer
	for _, name := range formatOrder {
		i := slices.IndexFunc(directives, func(d directive) bool { return d.name == name })
		directives[i].write(&b, c)
	}
	for _, d := range directives {
		if d.write != nil && !slices.Contains(formatOrder, d.name) {
			d.write(&b, c)
		}
	}
	return b.Bytes()
}

// findDirective returns a directive that starts with the word, or nil.
func findDirective(first string) *directive {
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		if name == first {
			return &directives[i]
		}
	}
	return nil
}

func directiveNames() []string {
	var names []string
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// secondWords returns the words that can follow the first word of a directive.
func secondWords(first string) []string {
	var names []string
	for i := range directives {
		if name, second, _ := strings.Cut(directives[i].name, " "); name == first && second != "" {
			names = append(names, second)
		}
	}
	return names
}

// tunPrefix precedes the name of a device in place of a UDP address.
const tunPrefix = "tun:"

// maxTunRoutes limits the routes of one device.
const maxTunRoutes = 32
