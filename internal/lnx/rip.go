package lnx

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/spell"
)

// RIP is how RIP is spoken.
type RIP struct {
	// AdvertiseTo are the neighbours that get our messages; only those do. In RIPv2
	// that is so on the links that have one, and on others everybody gets them.
	AdvertiseTo []netip.Addr
	// Originate are prefixes to announce beside the interfaces' own.
	Originate []Announcement
	// Static is how static routes are announced; nil: they are not.
	Static *Announcement
	// Periodic is the time between full updates; 5 s unless the file sets it, and in
	// RIPv2 30 s.
	Periodic time.Duration
	// Timeout is when a route that nobody refreshes dies; 12 s unless set, and in
	// RIPv2 180 s.
	Timeout time.Duration
	// Offset is how far chance moves each full update, Garbage how long a dead route is
	// announced, TriggerMin and TriggerMax how long news waits after news, HoldDown how
	// long a dead route's prefix is not taken again, AskAfter how long after a loss the
	// neighbours are asked for another way. 0: the dialect's default; negative: none.
	Offset, Garbage, TriggerMin, TriggerMax, HoldDown, AskAfter time.Duration
	// KeepRefused keeps a neighbour's routes until they expire though nobody has its UDP
	// port any more.
	KeepRefused bool
	// EntrySize is 12 bytes an entry, or 8 (without mask) before 2018.
	EntrySize int
}

// Announcement is a prefix and what is said of it.
type Announcement struct {
	Prefix netip.Prefix // of static routes: invalid
	Tag    uint16       // RIPv2's route tag
	Metric int          // 0: as a network of the node's own
}

// RIPLink is how RIP is spoken on one interface. The zero value is as ever.
type RIPLink struct {
	// Cost is what the link adds to a route; 0: 1.
	Cost int
	// Passive has the node listen there and not speak.
	Passive bool
	// Send and Receive are RIPv2's switches: the words of RFC 2453 §5.1, empty for
	// rip2 and both.
	Send, Receive string
	// Keys authenticate RIPv2's messages; the first signs.
	Keys []RIPKey
}

// RIPKey is a shared secret of the routers on a link.
type RIPKey struct {
	ID        uint8
	Algorithm string // one of RIPAlgorithms, or "password"
	Secret    string
}

// The words of the switches and of the keys.
var (
	sendModes     = []string{"rip2", "rip1-compatible", "rip1", "none"}
	receiveModes  = []string{"both", "rip2", "rip1", "none"}
	ripAlgorithms = []string{"md5", "hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"}
)

const (
	ripPassword = "password"
	maxSecret   = 100 // characters
	shortSecret = 16  // of a password, and of a key for md5
)

const (
	usageOriginate    = "rip originate prefix PREFIX/LEN [metric N] [tag N]"
	usageRedistribute = "rip redistribute static [metric N] [tag N]"
	usageKey          = "rip key NAME ID ALGORITHM SECRET"
	usagePassword     = "rip password NAME SECRET"
	usageTrigger      = "rip triggered-update-delay LEAST-MILLISECONDS MOST-MILLISECONDS"
	usageRIPInterface = "rip interface NAME KEY VALUE …, the keys being "
)

// ripDefaults are the times that a dialect has where a file does not set them.
func ripDefaults(r Routing) (periodic, timeout time.Duration) {
	if r == RoutingRIP2 {
		return defaultPeriodic2, defaultTimeout2
	}
	return defaultPeriodic, defaultTimeout
}

// ripSettings are the keys of the directive rip interface.
var ripSettings = []linkSetting{
	{
		"cost",
		func(p *parser, w word, i *Interface) (ok bool) {
			i.RIP.Cost, ok = p.number(w, 1, 15, "")
			return ok
		},
		func(i *Interface) string { return unlessZero(i.RIP.Cost, strconv.Itoa(i.RIP.Cost)) },
	},
	{
		"passive",
		func(p *parser, w word, i *Interface) bool {
			if w.text != "on" && w.text != "off" {
				p.bad(w, "not a switch", "on or off")
				return false
			}
			i.RIP.Passive = w.text == "on"
			return true
		},
		func(i *Interface) string { return unlessZero(i.RIP.Passive, "on") },
	},
	modeSetting("send", sendModes, func(i *Interface) *string { return &i.RIP.Send }),
	modeSetting("receive", receiveModes, func(i *Interface) *string { return &i.RIP.Receive }),
}

// modeSetting is a key whose value is one of several words, the first the default.
func modeSetting(key string, modes []string, field func(*Interface) *string) linkSetting {
	return linkSetting{
		key,
		func(p *parser, w word, i *Interface) bool {
			if !slices.Contains(modes, w.text) {
				p.bad(w, "no mode"+spell.DidYouMean(w.text, modes), oneOf(modes))
				return false
			}
			if *field(i) = w.text; w.text == modes[0] {
				*field(i) = ""
			}
			return true
		},
		func(i *Interface) string { return *field(i) },
	}
}

func (p *parser) readRIPInterface(l line) {
	p.readSettings(&ripTable, l.words[2], l.words[3:], l.end)
}

// readOriginate reads what has to be announced, and how.
func (p *parser) readOriginate(l line) {
	okForm := p.fixed(l, 2, "prefix", usageOriginate)
	if !okForm && len(l.words) < 4 || !p.words(l, 4, 8, usageOriginate) {
		return
	}
	prefix, ok := p.prefix(l.words[3])
	a, okSaid := p.announcement(l, 4, usageOriginate)
	if !okForm || !ok || !okSaid {
		return
	}
	if slices.ContainsFunc(p.cfg.RIP.Originate, func(b Announcement) bool {
		return b.Prefix == prefix
	}) {
		p.bad(l.words[3], "already originated", "one line with it")
		return
	}
	a.Prefix = prefix
	p.cfg.RIP.Originate = append(p.cfg.RIP.Originate, a)
}

func (p *parser) readRedistribute(l line) {
	if !p.fixed(l, 2, "static", usageRedistribute) {
		return
	}
	a, ok := p.announcement(l, 3, usageRedistribute)
	if ok && p.once("rip redistribute", l.words[2]) {
		p.cfg.RIP.Static = &a
	}
}

// announcement reads the pairs from word i on.
func (p *parser) announcement(l line, i int, usage string) (a Announcement, ok bool) {
	for ; i < len(l.words); i += 2 {
		key := l.words[i]
		keys := []string{"metric", "tag"}
		if !slices.Contains(keys, key.text) {
			p.bad(key, "nothing that is said of a prefix"+spell.DidYouMean(key.text, keys), usage)
			return a, false
		}
		if i+1 == len(l.words) {
			p.report.add(l.end, "", key.text+" has no value", usage)
			return a, false
		}
		if key.text == "tag" {
			var n int
			n, ok = p.number(l.words[i+1], 0, 65535, "")
			a.Tag = uint16(n)
		} else {
			a.Metric, ok = p.number(l.words[i+1], 1, 15, "")
		}
		if !ok {
			return a, false
		}
	}
	return a, true
}

// keyLine is a key that waits for its interface.
type keyLine struct {
	name, id word
	key      RIPKey
}

func (p *parser) readKey(l line) {
	n, okID := p.number(l.words[3], 0, 255, "")
	a := l.words[4]
	okAlgorithm := slices.Contains(ripAlgorithms, a.text)
	if !okAlgorithm {
		p.bad(a, "no algorithm"+spell.DidYouMean(a.text, ripAlgorithms), oneOf(ripAlgorithms))
	}
	if okID && okAlgorithm && p.secret(l.words[5], a.text) {
		k := RIPKey{ID: uint8(n), Algorithm: a.text, Secret: l.words[5].text}
		p.keys = append(p.keys, keyLine{l.words[2], l.words[3], k})
	}
}

func (p *parser) readPassword(l line) {
	if p.secret(l.words[3], ripPassword) {
		k := RIPKey{Algorithm: ripPassword, Secret: l.words[3].text}
		p.keys = append(p.keys, keyLine{l.words[2], l.words[3], k})
	}
}

// secret reports whether a secret is one that the algorithm has room for. The word
// itself is not repeated in the message.
func (p *parser) secret(w word, algorithm string) bool {
	most := maxSecret
	if algorithm == ripPassword || algorithm == "md5" {
		most = shortSecret
	}
	if len(w.text) <= most {
		return true
	}
	p.report.add(w.pos, w.text, fmt.Sprintf("the secret has %d bytes", len(w.text)),
		fmt.Sprintf("at most %d", most))
	return false
}

// applyKeys gives the interfaces their keys.
func (p *parser) applyKeys() {
	for _, k := range p.keys {
		iface, ok := p.cfg.Interface(k.name.text)
		if !ok {
			p.unknownInterface(k.name)
			continue
		}
		keys := iface.RIP.Keys
		again := slices.ContainsFunc(keys, func(b RIPKey) bool { return b.ID == k.key.ID })
		password := k.key.Algorithm == ripPassword
		switch {
		case len(keys) > 0 && (keys[0].Algorithm == ripPassword) != password:
			p.report.add(k.name.pos, k.name.text, k.name.text+" has both a password and a key",
				"one or the other")
		case iface.RIP.Send == "rip1":
			p.report.add(k.name.pos, k.name.text, k.name.text+
				" sends version 1, which has no authentication", "another rip interface … send")
		case again && !password:
			p.bad(k.id, "already the id of a key of "+k.name.text, "another")
		default:
			iface.RIP.Keys = append(keys, k.key)
		}
	}
}

// optional reads a time in milliseconds of which there may be none: 0.
func (p *parser) optional(l line, d *time.Duration) {
	n, ok := p.number(l.words[2], 0, maxRIPTimerMillis, " milliseconds")
	if ok && p.once(l.words[0].text+" "+l.words[1].text, l.words[2]) {
		*d = orNone(n)
	}
}

func orNone(millis int) time.Duration {
	if millis == 0 {
		return -1
	}
	return time.Duration(millis) * time.Millisecond
}

func (p *parser) readOffset(l line)   { p.optional(l, &p.cfg.RIP.Offset) }
func (p *parser) readHoldDown(l line) { p.optional(l, &p.cfg.RIP.HoldDown) }
func (p *parser) readAskAfter(l line) { p.optional(l, &p.cfg.RIP.AskAfter) }
func (p *parser) readGarbage(l line)  { p.milliseconds(l, &p.cfg.RIP.Garbage) }

func (p *parser) readTrigger(l line) {
	least, okLeast := p.number(l.words[2], 0, maxRIPTimerMillis, " milliseconds")
	most, okMost := p.number(l.words[3], 0, maxRIPTimerMillis, " milliseconds")
	switch {
	case !okLeast || !okMost:
	case least > most:
		p.bad(l.words[3], "less than the least", l.words[2].text+" or more")
	case p.once("rip triggered-update-delay", l.words[2]):
		p.cfg.RIP.TriggerMin, p.cfg.RIP.TriggerMax = orNone(least), orNone(most)
	}
}

// format leaves out what Parse would fill in for that routing.
func (r RIP) format(b *bytes.Buffer, routing Routing) {
	for _, addr := range r.AdvertiseTo {
		fmt.Fprintf(b, "rip advertise-to %s\n", addr)
	}
	for _, a := range r.Originate {
		fmt.Fprintf(b, "rip originate prefix %s%s\n", a.Prefix, a.said())
	}
	if r.Static != nil {
		fmt.Fprintf(b, "rip redistribute static%s\n", r.Static.said())
	}
	periodic, timeout := ripDefaults(routing)
	formatMillis(b, "periodic-update-rate", r.Periodic, periodic)
	formatMillis(b, "route-timeout-threshold", r.Timeout, timeout)
	formatMillis(b, "periodic-update-offset", r.Offset, 0)
	formatMillis(b, "garbage-collection-time", r.Garbage, 0)
	formatMillis(b, "hold-down", r.HoldDown, 0)
	formatMillis(b, "ask-after", r.AskAfter, 0)
	if r.TriggerMax != 0 {
		fmt.Fprintf(b, "rip triggered-update-delay %d %d\n",
			r.TriggerMin.Milliseconds(), r.TriggerMax.Milliseconds())
	}
	if r.KeepRefused {
		b.WriteString("rip withdraw-refused off\n")
	}
	if r.EntrySize != 0 && r.EntrySize != defaultEntrySize {
		fmt.Fprintf(b, "rip entry-size %d\n", r.EntrySize)
	}
}

func formatMillis(b *bytes.Buffer, name string, d, usual time.Duration) {
	if d != 0 && d != usual {
		fmt.Fprintf(b, "rip %s %d\n", name, d.Milliseconds())
	}
}

func (a Announcement) said() (text string) {
	if a.Metric != 0 {
		text += fmt.Sprintf(" metric %d", a.Metric)
	}
	if a.Tag != 0 {
		text += fmt.Sprintf(" tag %d", a.Tag)
	}
	return text
}

// formatRIP writes what is said of RIP on the interface, if anything.
func (i *Interface) formatRIP(b *bytes.Buffer) {
	i.formatSettings(b, "rip interface ", ripSettings)
	for _, k := range i.RIP.Keys {
		if k.Algorithm == ripPassword {
			fmt.Fprintf(b, "rip password %s %s\n", i.Name, k.Secret)
		} else {
			fmt.Fprintf(b, "rip key %s %d %s %s\n", i.Name, k.ID, k.Algorithm, k.Secret)
		}
	}
}
