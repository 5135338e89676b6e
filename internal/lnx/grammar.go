package lnx

import (
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/spell"
)

// directive is one directive of the new grammar: the words that open it, its
// form, how many words it has, and what reads it.
type directive struct {
	name  string // one word, or two
	usage string
	least int
	most  int
	read  func(*parser, line)
}

const (
	usageInterface = "interface NAME ADDR/LEN HOST:PORT"
	usageTun       = "interface NAME ADDR/LEN tun:DEV [kernel ADDR [routes PREFIX/LEN …]]"
	usageRoute     = "route PREFIX/LEN via ADDR [metric N], or blackhole, unreachable or prohibit"
	usageNeighbor  = "neighbor ADDR at HOST:PORT via NAME"
	usagePeriodic  = "rip periodic-update-rate MILLISECONDS"
	usageTimeout   = "rip route-timeout-threshold MILLISECONDS"
	usageEchoAll   = "icmp echo-broadcast on or off"
	usageImpair    = "impair NAME [in, out or both] WORD …, the words being tc-netem's"
	usageLink      = "link NAME KEY VALUE …, the keys being "
)

// directives are all of them, in the order of the documentation.
var directives []directive

// The table refers to the readers, which refer to the table: hence init.
func init() {
	directives = []directive{
		{
			"interface", usageInterface + " or " + usageTun, 4, 7 + maxTunRoutes,
			(*parser).readInterface,
		},
		{"neighbor", usageNeighbor, 2, 6, (*parser).readNeighbor},
		{"routing", "routing rip, rip2, static or none", 2, 2, (*parser).readRouting},
		{"route", usageRoute, 2, 6, (*parser).readRoute},
		{
			"link", usageLink + oneOf(linkTable.keys()), 4, 2 + 2*len(linkSettings),
			(*parser).readLink,
		},
		{"impair", usageImpair, 3, maxImpairWords, (*parser).readImpair},
		{"socket", "socket shared", 2, 2, (*parser).readSocket},
		{"rip advertise-to", "rip advertise-to ADDR", 3, 3, (*parser).readAdvertiseTo},
		{"rip originate", usageOriginate, 2, 8, (*parser).readOriginate},
		{"rip redistribute", usageRedistribute, 3, 7, (*parser).readRedistribute},
		{
			"rip interface", usageRIPInterface + oneOf(ripTable.keys()), 5, 3 + 2*len(ripSettings),
			(*parser).readRIPInterface,
		},
		{"rip key", usageKey, 6, 6, (*parser).readKey},
		{"rip password", usagePassword, 4, 4, (*parser).readPassword},
		{"rip periodic-update-rate", usagePeriodic, 3, 3, (*parser).readPeriodic},
		{"rip route-timeout-threshold", usageTimeout, 3, 3, (*parser).readTimeout},
		{
			"rip periodic-update-offset", "rip periodic-update-offset MILLISECONDS", 3, 3,
			(*parser).readOffset,
		},
		{
			"rip garbage-collection-time", "rip garbage-collection-time MILLISECONDS", 3, 3,
			(*parser).readGarbage,
		},
		{"rip triggered-update-delay", usageTrigger, 4, 4, (*parser).readTrigger},
		{"rip hold-down", "rip hold-down MILLISECONDS", 3, 3, (*parser).readHoldDown},
		{"rip ask-after", "rip ask-after MILLISECONDS", 3, 3, (*parser).readAskAfter},
		{"rip withdraw-refused", "rip withdraw-refused on or off", 3, 3, (*parser).readWithdraw},
		{"rip entry-size", "rip entry-size 12 or 8", 3, 3, (*parser).readEntrySize},
		{"tcp rto-min", "tcp rto-min MICROSECONDS", 3, 3, (*parser).readRTOMin},
		{"tcp rto-max", "tcp rto-max MICROSECONDS", 3, 3, (*parser).readRTOMax},
		{"tcp options", "tcp options on or off", 3, 3, (*parser).readOptions},
		{"tcp rst", "tcp rst on or off", 3, 3, (*parser).readResets},
		{"tcp profile", "tcp profile 004", 3, 3, (*parser).readProfile},
		{"icmp rate", "icmp rate MESSAGES-A-SECOND or off", 3, 3, (*parser).readICMPRate},
		{"icmp burst", "icmp burst MESSAGES", 3, 3, (*parser).readICMPBurst},
		{"icmp errors", "icmp errors on or off", 3, 3, (*parser).readICMPErrors},
		{"icmp echo", "icmp echo on or off", 3, 3, (*parser).readEcho},
		{"icmp echo-broadcast", usageEchoAll, 3, 3, (*parser).readEchoBroadcast},
		{"icmp timestamp", "icmp timestamp on or off", 3, 3, (*parser).readTimestamp},
		{
			"ip reverse-path", "ip reverse-path off, loose or strict", 3, 3,
			(*parser).readReversePath,
		},
		{
			"ip directed-broadcast", "ip directed-broadcast on or off", 3, 3,
			(*parser).readDirectedBroadcast,
		},
		{
			"ip reassembly-timeout", "ip reassembly-timeout MILLISECONDS", 3, 3,
			(*parser).readReassemblyTimeout,
		},
		{"ip reassembly-bytes", "ip reassembly-bytes BYTES", 3, 3, (*parser).readReassemblyBytes},
		{"publish", usagePublish, 3, 4, (*parser).readPublish},
		{"expose", usageExpose, 3, 4, (*parser).readExpose},
		{"splice", usageSplice, 2, 3, (*parser).readSplice},
	}
}

// findDirective returns a directive that starts with the word, nil if none does.
func findDirective(first string) *directive {
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		if name == first {
			return &directives[i]
		}
	}
	return nil
}

// directiveNames returns the first words of all directives.
func directiveNames() []string {
	var names []string
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// secondWords returns the words that can follow the first of a directive.
func secondWords(first string) []string {
	var names []string
	for i := range directives {
		if name, second, _ := strings.Cut(directives[i].name, " "); name == first && second != "" {
			names = append(names, second)
		}
	}
	return names
}

// readDirective reads a line of the new grammar.
func (p *parser) readDirective(l line) {
	before := len(p.report.errs)
	p.directives++
	if d := p.directiveOf(l); d != nil && p.words(l, d.least, d.most, d.usage) {
		d.read(p, l)
	}
	if len(p.report.errs) > before {
		p.excuse(l)
	}
}

// directiveOf returns the line's directive, and records it if there is none.
func (p *parser) directiveOf(l line) *directive {
	first := l.keyword()
	seconds := secondWords(first.text)
	if len(seconds) == 0 {
		d := findDirective(first.text)
		if d == nil {
			p.strange++
			names := directiveNames()
			p.bad(first, "no directive"+spell.DidYouMean(first.text, names), oneOf(names))
		}
		return d
	}
	if len(l.words) == 1 {
		p.report.add(l.end, "", first.text+" is incomplete",
			first.text+" and then "+oneOf(seconds))
		return nil
	}
	second := l.words[1]
	for i := range directives {
		if directives[i].name == first.text+" "+second.text {
			return &directives[i]
		}
	}
	p.bad(second,
		"nothing that "+first.text+" knows"+spell.DidYouMean(second.text, seconds),
		oneOf(seconds))
	return nil
}

// oneOf joins words to "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// fixed reports whether the line's word i is the one that the form has there.
// A line that ends before is left to words.
func (p *parser) fixed(l line, i int, want, usage string) bool {
	if i >= len(l.words) || l.words[i].text == want {
		return true
	}
	p.bad(l.words[i], "not the word "+mistake.Quote(want), usage)
	return false
}

func (p *parser) readInterface(l line) {
	name, okName := p.name(l.words[1])
	addr, okAddr := p.addrLen(l.words[2])
	i := Interface{
		Name: name, Addr: addr,
		Pos: l.words[1].pos, addrAt: l.words[2].pos, udpAt: l.words[3].pos,
	}
	okUDP := false
	if device, tun := strings.CutPrefix(l.words[3].text, tunPrefix); tun {
		i.Tun, okUDP = p.readTun(l, device, addr)
	} else {
		i.UDP, okUDP = p.hostPort(l.words[3])
		okUDP = p.words(l, 4, 4, usageInterface) && okUDP
	}
	if okName && okAddr && okUDP {
		p.addInterface(i)
	}
}

func (p *parser) readNeighbor(l line) {
	okForm := p.fixed(l, 2, "at", usageNeighbor)
	if !okForm && len(l.words) < 6 || !p.words(l, 6, 6, usageNeighbor) {
		return
	}
	okForm = p.fixed(l, 4, "via", usageNeighbor) && okForm
	addr, okAddr := p.addr(l.words[1])
	udp, okUDP := p.destination(l.words[3])
	if okForm && okAddr && okUDP {
		p.cfg.Neighbors = append(p.cfg.Neighbors, Neighbor{
			Addr: addr, UDP: udp, Iface: l.words[5].text,
			Pos: l.words[1].pos, udpAt: l.words[3].pos, ifaceAt: l.words[5].pos,
		})
	}
}

func (p *parser) readRouting(l line) {
	kinds := []Routing{RoutingRIP, RoutingRIP2, RoutingStatic, RoutingNone}
	i := slices.IndexFunc(kinds, func(r Routing) bool { return r.String() == l.words[1].text })
	if i < 0 {
		names := []string{"rip", "rip2", "static", "none"}
		p.bad(l.words[1], "no kind of routing"+spell.DidYouMean(l.words[1].text, names),
			oneOf(names))
		return
	}
	if p.once("routing", l.keyword()) {
		p.cfg.Routing = kinds[i]
	}
}

// readSocket reads the directive by which a file of the new grammar can say
// what those of 2013 to 2022 imply.
func (p *parser) readSocket(l line) {
	if p.fixed(l, 1, "shared", "socket shared") && p.once("socket", l.keyword()) {
		p.cfg.SharedSocket = true
	}
}
