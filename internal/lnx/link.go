package lnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// The MTU is at least 68 bytes, which every IPv4 link must carry (RFC 791 §3.2), and at most 65,507
// over IPv4, because a UDP datagram carries no more. Over IPv6 it is up to 65,527, because the
// length of a packet does not include the IPv6 header (RFC 8200 §3).
const (
	MinMTU  = 68
	maxMTU4 = 65_507
	maxMTU  = 65_527
)

// linkSettings are the keys of the directive link.
var linkSettings = slices.Concat([]setting[Interface]{
	count("mtu", "", func(i *Interface) *int { return &i.MTU }, within(MinMTU, maxMTU, " bytes")),
}, linkImpairments)

// linkImpairments are the keys of link that impair it. An impair line has the same keywords, except
// that there the jitter is the second value of delay.
var linkImpairments = []setting[Interface]{
	shareOf("loss", func(i *Interface) *Share { return &i.Impair.Loss }),
	delayOf("delay", func(i *Interface) *time.Duration { return &i.Impair.Delay }),
	delayOf("jitter", func(i *Interface) *time.Duration { return &i.Impair.Jitter }),
	shareOf("dup", func(i *Interface) *Share { return &i.Impair.Duplicate }),
	shareOf("reorder", func(i *Interface) *Share { return &i.Impair.Reorder }),
	shareOf("corrupt", func(i *Interface) *Share { return &i.Impair.Corrupt }),
	settingOf("rate", "", func(i *Interface) *int64 { return &i.Impair.RateBitsPerSec },
		(*report).rate, formatRate),
}

func shareOf(key string, field func(*Interface) *Share) setting[Interface] {
	return settingOf(key, "", field, (*report).share, Share.String)
}

func delayOf(key string, field func(*Interface) *time.Duration) setting[Interface] {
	return settingOf(key, "", field, (*report).duration, time.Duration.String)
}

// settingTable describes a directive that sets keys and values of one interface.
type settingTable struct {
	name     string
	prefix   string // prefix of the keys in parser.seen
	settings []setting[Interface]
}

// These are the directives of this kind.
var (
	linkTable = settingTable{"link", "", linkSettings}
	ripTable  = settingTable{"rip interface", "rip ", ripSettings}
)

// directive returns the directive for the table. The function more, if not nil, writes the other
// directives of an interface.
func (t *settingTable) directive(more func(*bytes.Buffer, *Interface)) directive {
	at := strings.Count(t.name, " ") + 1
	return directive{
		t.name, t.usage(), at + 3, at + 1 + 2*len(t.settings),
		func(p *parser, l line) { p.readSettings(t, l.words[at], l.words[at+1:], l.end) },
		func(b *bytes.Buffer, c *Config) {
			for n := range c.Interfaces {
				i := &c.Interfaces[n]
				if text := written(t.settings, i); text != "" {
					b.WriteString(t.name + " " + i.Name + text + "\n")
				}
				if more != nil {
					more(b, i)
				}
			}
		},
	}
}

func (t *settingTable) usage() string {
	return t.name + " NAME KEY VALUE …, the keys being " + diagnostic.OneOf(names(t.settings))
}

// linkLine is one key with its value, for an interface that a later line may declare.
type linkLine struct {
	name, key, value Word
	table            *settingTable
	setting          *setting[Interface]
}

// readSettings reads a line's keys and values for an interface.
func (p *parser) readSettings(t *settingTable, name Word, rest []Word, end Pos) {
	keys := names(t.settings)
	for ; len(rest) > 0; rest = rest[2:] {
		key := rest[0]
		i := slices.Index(keys, key.Text)
		switch {
		case i < 0:
			what := "not a keyword of " + t.name
			p.report.bad(key, what+diagnostic.DidYouMean(key.Text, keys), diagnostic.OneOf(keys))
			return // after an unknown key, keys and values are indistinguishable
		case len(rest) == 1:
			p.report.add(end, "", key.Text+" has no value", t.usage())
			return
		case t.settings[i].read(&p.report, rest[1], &Interface{}): // applyLinks reads it again
			p.links = append(p.links, linkLine{name, key, rest[1], t, &t.settings[i]})
		}
	}
}

// applyLinks applies the keys and values to their interfaces.
func (p *parser) applyLinks() {
	unknown := map[Pos]bool{} // lines with an unknown interface: one error per line
	for _, l := range p.links {
		iface, ok := p.cfg.Interface(l.name.Text)
		switch {
		case !ok && !unknown[l.name.Pos]:
			p.unknownInterface(l.name)
			unknown[l.name.Pos] = true
		case ok && p.once(l.table.prefix+l.key.Text+" of "+l.name.Text, l.key):
			l.setting.read(&p.report, l.value, iface)
		}
	}
	for _, l := range p.links {
		iface, ok := p.cfg.Interface(l.name.Text)
		if ok && l.key.Text == "jitter" && iface.Impair.Jitter > iface.Impair.Delay {
			p.report.bad(l.value, "longer than the delay", "a jitter up to the delay of "+
				iface.Impair.Delay.String())
		}
		if ok && l.key.Text == "mtu" && iface.MTU > maxMTU4 && iface.UDP.family() != "IPv6" {
			p.report.bad(l.value, "more than UDP over IPv4 carries",
				fmt.Sprintf("%d to %d bytes", MinMTU, maxMTU4))
		}
	}
}

// maxImpairWords limits the words of an impair line.
const maxImpairWords = 100

// These are the directions of an impair line.
const (
	WayIn   = "in"
	WayOut  = "out"
	WayBoth = "both"
)

// ImpairLine contains the impairments of an interface, in the syntax of tc-netem(8). This package
// does not check them. The caller checks them and reports errors with AtImpair.
type ImpairLine struct {
	Iface string
	Way   string
	Words []string

	ifaceAt Pos
	wordAt  []Pos
	end     Pos // position after the last word
}

// Text returns the words, separated by spaces.
func (l *ImpairLine) Text() string { return strings.Join(l.Words, " ") }

// ImpairLines returns the impair lines of an interface. It converts a link line to an impair line.
func (c *Config) ImpairLines(iface string) (list []ImpairLine) {
	if i, ok := c.Interface(iface); ok && i.Impair != (Impairments{}) {
		words := strings.Replace(written(linkImpairments, i), " jitter ", " ", 1)
		list = append(list, ImpairLine{Iface: iface, Way: WayBoth, Words: strings.Fields(words)})
	}
	for i := range c.Impair {
		if c.Impair[i].Iface == iface {
			list = append(list, c.Impair[i])
		}
	}
	return list
}

// AtImpair returns an error in line l. The byte offset at counts from the start of its Text.
func (c *Config) AtImpair(l *ImpairLine, at int, text, msg, want string) *Error {
	before := l.Text()[:min(at, len(l.Text()))]
	e := &Error{File: c.file, Text: text, Msg: msg, Want: want}
	pos := l.end
	if n := strings.Count(before, " "); text != "" && n < len(l.wordAt) {
		pos = l.wordAt[n]
	}
	e.Line, e.Col = pos.Line, pos.Col
	if e.Line > 0 && e.Line <= len(c.lines) {
		e.Source = c.lines[e.Line-1]
	}
	return e
}

func (p *parser) readImpair(l line) {
	one := ImpairLine{Iface: l.words[1].Text, Way: WayBoth, ifaceAt: l.words[1].Pos, end: l.end}
	rest := l.words[2:]
	if slices.Contains([]string{WayIn, WayOut, WayBoth}, rest[0].Text) {
		one.Way, rest = rest[0].Text, rest[1:]
	}
	if len(rest) == 0 {
		p.report.add(l.end, "", "the arguments of impair are missing", usageImpair)
		return
	}
	for _, w := range rest {
		one.Words, one.wordAt = append(one.Words, w.Text), append(one.wordAt, w.Pos)
	}
	ways := []string{one.Way}
	if one.Way == WayBoth {
		ways = []string{WayIn, WayOut}
	}
	for _, way := range ways { // a second line is kept, so that its own errors are also reported
		what := "impair " + one.Iface
		before, again := p.seen[what+" "+way]
		if !again {
			p.seen[what+" "+way] = l.keyword()
			continue
		}
		if one.Way != WayBoth || p.seen[what+" "+WayIn] != p.seen[what+" "+WayOut] {
			what += " " + way
		}
		p.report.add(l.keyword().Pos, l.keyword().Text,
			fmt.Sprintf("%s is already set on line %d", what, before.Pos.Line),
			"only one such line, or one `in` and one `out`")
		break
	}
	p.cfg.Impair = append(p.cfg.Impair, one)
}

// checkImpair records errors for impair lines about unknown interfaces, and about interfaces that a
// link line already impairs.
func (p *parser) checkImpair() {
	for i := range p.cfg.Impair {
		l := &p.cfg.Impair[i]
		iface, ok := p.cfg.Interface(l.Iface)
		name := Word{l.Iface, l.ifaceAt}
		switch {
		case !ok:
			p.unknownInterface(name)
		case iface.Impair != Impairments{}:
			p.report.bad(name, "already impaired by another line", "all impairments in one line")
		}
	}
}
