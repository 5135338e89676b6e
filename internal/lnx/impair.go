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

// linkKeys returns the keys of the link directive.
func linkKeys() []string {
	keys := make([]string, len(linkSettings))
	for i := range linkSettings {
		keys[i] = linkSettings[i].key
	}
	return keys
}

// linkLine is one key of a link directive, which waits for its interface: the
// file may declare that later.
type linkLine struct {
	name, key, value word
}

func (p *parser) readLink(l line) {
	for rest := l.words[2:]; len(rest) > 0; rest = rest[2:] {
		key := rest[0]
		setting := findSetting(key.text)
		switch {
		case setting == nil:
			keys := linkKeys()
			p.bad(key, "nothing that link knows"+spell.DidYouMean(key.text, keys), oneOf(keys))
			return // what is key and what is value is a guess from here on
		case len(rest) == 1:
			p.report.add(l.end, "", key.text+" has no value", usageLink+oneOf(linkKeys()))
			return
		case setting.read(p, rest[1], &Interface{}): // for its errors; applyLinks reads it again
			p.links = append(p.links, linkLine{l.words[1], key, rest[1]})
		}
	}
}

func findSetting(key string) *linkSetting {
	for i := range linkSettings {
		if linkSettings[i].key == key {
			return &linkSettings[i]
		}
	}
	return nil
}

// applyLinks gives the interfaces what the link lines say of them.
func (p *parser) applyLinks() {
	unknown := map[Pos]bool{} // told once a line
	for _, l := range p.links {
		iface, ok := p.cfg.Interface(l.name.text)
		switch {
		case !ok && !unknown[l.name.pos]:
			p.unknownInterface(l.name)
			unknown[l.name.pos] = true
		case ok && p.once(l.key.text+" of "+l.name.text, l.key):
			findSetting(l.key.text).read(p, l.value, iface)
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
