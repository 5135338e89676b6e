package lnx

import (
	"strconv"

	"github.com/tidepool-net/tidepool/internal/spell"
)

// The bounds of an MTU: what every IPv4 link must carry (RFC 791 §3.2), and
// what fits into a UDP datagram.
const (
	minMTU = 68
	maxMTU = 65_507
)

// linkSetting is one key of the link directive: how its value is read into an
// interface, and how it is written; nothing is written for the default.
type linkSetting struct {
	key   string
	read  func(*parser, word, *Interface) bool
	write func(*Interface) string
}

var linkSettings = []linkSetting{
	{"mtu", readMTU, func(i *Interface) string { return unlessZero(i.MTU, strconv.Itoa(i.MTU)) }},
	shareSetting("loss", func(i *Impairments) *Share { return &i.Loss }),
	{
		"delay",
		func(p *parser, w word, i *Interface) (ok bool) {
			i.Impair.Delay, ok = p.duration(w)
			return ok
		},
		func(i *Interface) string { return unlessZero(i.Impair.Delay, i.Impair.Delay.String()) },
	},
	{
		"jitter",
		func(p *parser, w word, i *Interface) (ok bool) {
			i.Impair.Jitter, ok = p.duration(w)
			return ok
		},
		func(i *Interface) string { return unlessZero(i.Impair.Jitter, i.Impair.Jitter.String()) },
	},
	shareSetting("dup", func(i *Impairments) *Share { return &i.Duplicate }),
	shareSetting("reorder", func(i *Impairments) *Share { return &i.Reorder }),
	shareSetting("corrupt", func(i *Impairments) *Share { return &i.Corrupt }),
	{
		"rate",
		func(p *parser, w word, i *Interface) (ok bool) {
			i.Impair.RateBitsPerSec, ok = p.rate(w)
			return ok
		},
		func(i *Interface) string {
			return unlessZero(i.Impair.RateBitsPerSec, formatRate(i.Impair.RateBitsPerSec))
		},
	},
}

func shareSetting(key string, field func(*Impairments) *Share) linkSetting {
	return linkSetting{
		key,
		func(p *parser, w word, i *Interface) (ok bool) {
			*field(&i.Impair), ok = p.share(w)
			return ok
		},
		func(i *Interface) string {
			s := *field(&i.Impair)
			return unlessZero(s, s.String())
		},
	}
}

func unlessZero[T comparable](v T, text string) string {
	var zero T
	if v == zero {
		return ""
	}
	return text
}

// readMTU reads the largest packet of a link.
func readMTU(p *parser, w word, i *Interface) (ok bool) {
	i.MTU, ok = p.number(w, minMTU, maxMTU, " bytes")
	return ok
}

// settingTable is a directive of keys and values, for one interface.
type settingTable struct {
	word     string // that errors name it by
	prefix   string // of what once remembers
	usage    string
	settings []linkSetting
}

// The directives of that kind.
var (
	linkTable = settingTable{"link", "", usageLink, linkSettings}
	ripTable  = settingTable{"rip interface", "rip ", usageRIPInterface, ripSettings}
)

// keys returns the keys of the directive.
func (t *settingTable) keys() []string {
	keys := make([]string, len(t.settings))
	for i := range t.settings {
		keys[i] = t.settings[i].key
	}
	return keys
}

func (t *settingTable) find(key string) *linkSetting {
	for i := range t.settings {
		if t.settings[i].key == key {
			return &t.settings[i]
		}
	}
	return nil
}

// linkLine is one key of such a directive, which waits for its interface: the
// file may declare that later.
type linkLine struct {
	name, key, value word
	table            *settingTable
}

func (p *parser) readLink(l line) { p.readSettings(&linkTable, l.words[1], l.words[2:], l.end) }

// readSettings reads the keys and values that a line has for an interface.
func (p *parser) readSettings(t *settingTable, name word, rest []word, end Pos) {
	for ; len(rest) > 0; rest = rest[2:] {
		key := rest[0]
		setting := t.find(key.text)
		switch {
		case setting == nil:
			keys := t.keys()
			what := "nothing that " + t.word + " knows"
			p.bad(key, what+spell.DidYouMean(key.text, keys), oneOf(keys))
			return // what is key and what is value is a guess from here on
		case len(rest) == 1:
			p.report.add(end, "", key.text+" has no value", t.usage+oneOf(t.keys()))
			return
		case setting.read(p, rest[1], &Interface{}): // for its errors; applyLinks reads it again
			p.links = append(p.links, linkLine{name, key, rest[1], t})
		}
	}
}

// applyLinks gives the interfaces what the lines say of them.
func (p *parser) applyLinks() {
	unknown := map[Pos]bool{} // told once a line
	for _, l := range p.links {
		iface, ok := p.cfg.Interface(l.name.text)
		switch {
		case !ok && !unknown[l.name.pos]:
			p.unknownInterface(l.name)
			unknown[l.name.pos] = true
		case ok && p.once(l.table.prefix+l.key.text+" of "+l.name.text, l.key):
			l.table.find(l.key.text).read(p, l.value, iface)
		}
	}
	for _, l := range p.links {
		iface, ok := p.cfg.Interface(l.name.text)
		if ok && l.key.text == "jitter" && iface.Impair.Jitter > iface.Impair.Delay {
			p.bad(l.value, "more than the delay", "a jitter up to the delay of "+
				iface.Impair.Delay.String())
		}
	}
}
