package lnx

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// RIP configures the routing protocol.
type RIP struct {
	// AdvertiseTo are the neighbors that receive RIP messages. The course's RIP sends to no other
	// routers. RIPv2 sends unicast on links with such a neighbor, and multicast on all other links.
	AdvertiseTo []netip.Addr
	// Originate are prefixes to announce in addition to the interfaces' prefixes.
	Originate []Announcement
	// Static contains the metric and tag of the static routes in announcements. If nil, static
	// routes are not announced.
	Static *Announcement
	// Periodic is the time between full updates. The default is 5 s, or 30 s in RIPv2 and RIPng.
	Periodic time.Duration
	// Timeout is the time after which a route expires without a refresh. The default is 12 s, or
	// 180 s in RIPv2 and RIPng.
	Timeout time.Duration
	// Offset is the maximum random offset of a full update. Garbage is how long a dead route is
	// announced. TriggerMin and TriggerMax limit the time between two triggered updates. HoldDown
	// is how long other routes to a lost prefix are ignored. AskAfter is how long after the loss of
	// a route the node requests the neighbors' tables. Zero means the dialect's default, and a
	// negative value disables a timer other than Garbage.
	Offset, Garbage, TriggerMin, TriggerMax, HoldDown, AskAfter time.Duration
	// KeepRefused keeps a neighbor's routes until they expire, even if the neighbor's UDP port is
	// closed.
	KeepRefused bool
	// EntrySize is the size of an entry: 12 bytes, or 8 bytes without a mask, as before 2018.
	EntrySize int
}

// Announcement is a prefix to announce, with its metric and tag.
type Announcement struct {
	Prefix netip.Prefix // prefix; invalid: the static routes
	Tag    uint16       // RIPv2's route tag
	Metric int          // metric; 0: as for the node's own networks
}

// RIPLink configures RIP on one interface. The zero value is the default.
type RIPLink struct {
	// Cost is what the link adds to the cost of a route. Zero means 1.
	Cost int
	// Passive makes the node receive updates without sending any.
	Passive bool
	// Send and Receive are the switches of RFC 2453 §5.1. If empty, they are "rip2" and "both".
	Send, Receive string
	// Keys authenticate RIPv2's messages. The first key signs sent messages.
	Keys []RIPKey
}

// RIPKey is a shared secret of the routers on a link.
type RIPKey struct {
	ID        uint8
	Algorithm string // one of ripAlgorithms, or "password"
	Secret    string
}

var ripAlgorithms = []string{"md5", "hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"}

const (
	ripPassword = "password"
	maxSecret   = 100 // maximum length in bytes
	shortSecret = 16  // maximum length of a password or an md5 key
)

const (
	usageOriginate    = "rip originate prefix PREFIX/LEN [metric N] [tag N]"
	usageRedistribute = "rip redistribute static [metric N] [tag N]"
	usageTrigger      = "rip triggered-update-delay LEAST-MILLISECONDS MOST-MILLISECONDS"
)

// maxRIPTimerMillis limits the timers to an hour, so that a number in the wrong unit is an error.
const maxRIPTimerMillis = 3_600_000

var ripDirectives = slices.Concat([]directive{
	{
		"rip advertise-to", "rip advertise-to ADDR", 3, 3, (*parser).readAdvertiseTo,
		func(b *bytes.Buffer, c *Config) {
			for _, addr := range c.RIP.AdvertiseTo {
				fmt.Fprintf(b, "rip advertise-to %s\n", addr)
			}
		},
	},
	{
		"rip originate", usageOriginate, 2, 8, (*parser).readOriginate,
		func(b *bytes.Buffer, c *Config) {
			for _, a := range c.RIP.Originate {
				b.WriteString("rip originate prefix " + a.Prefix.String() +
					written(announcementSettings, &a) + "\n")
			}
		},
	},
	{
		"rip redistribute", usageRedistribute, 3, 7, (*parser).readRedistribute,
		func(b *bytes.Buffer, c *Config) {
			if a := c.RIP.Static; a != nil {
				b.WriteString("rip redistribute static" + written(announcementSettings, a) + "\n")
			}
		},
	},
	ripTable.directive(func(b *bytes.Buffer, i *Interface) {
		for _, k := range i.RIP.Keys {
			if k.Algorithm == ripPassword {
				fmt.Fprintf(b, "rip password %s %s\n", i.Name, k.Secret)
			} else {
				fmt.Fprintf(b, "rip key %s %d %s %s\n", i.Name, k.ID, k.Algorithm, k.Secret)
			}
		}
	}),
	{"rip key", "rip key NAME ID ALGORITHM SECRET", 6, 6, (*parser).readKey, nil},
	{"rip password", "rip password NAME SECRET", 4, 4, (*parser).readPassword, nil},
}, directivesOf(
	ripTimer("rip periodic-update-rate", 1, func(r *RIP) *time.Duration { return &r.Periodic }).
		usually(func(c *Config) string {
			return strconv.FormatInt(ripDefaults(c.Routing).Periodic.Milliseconds(), 10)
		}),
	ripTimer("rip route-timeout-threshold", 1, func(r *RIP) *time.Duration { return &r.Timeout }).
		usually(func(c *Config) string {
			return strconv.FormatInt(ripDefaults(c.Routing).Timeout.Milliseconds(), 10)
		}),
	ripTimer("rip periodic-update-offset", 0, func(r *RIP) *time.Duration { return &r.Offset }),
	ripTimer("rip garbage-collection-time", 1, func(r *RIP) *time.Duration { return &r.Garbage }),
), []directive{
	{
		"rip triggered-update-delay", usageTrigger, 4, 4, (*parser).readTrigger,
		func(b *bytes.Buffer, c *Config) {
			if r := c.RIP; r.TriggerMax != 0 {
				fmt.Fprintf(b, "rip triggered-update-delay %d %d\n",
					r.TriggerMin.Milliseconds(), r.TriggerMax.Milliseconds())
			}
		},
	},
}, directivesOf(
	ripTimer("rip hold-down", 0, func(r *RIP) *time.Duration { return &r.HoldDown }),
	ripTimer("rip ask-after", 0, func(r *RIP) *time.Duration { return &r.AskAfter }),
	switchOff("rip withdraw-refused", func(c *Config) *bool { return &c.RIP.KeepRefused }),
	settingOf("rip entry-size", "12 or 8", func(c *Config) *int { return &c.RIP.EntrySize },
		func(r *report, w Word) (int, bool) {
			size, ok := map[string]int{"12": rip.EntrySize, "8": rip.OldEntrySize}[w.Text]
			if !ok {
				r.bad(w, "not an entry size", "12, or 8 for entries without a mask")
			}
			return size, ok
		}, strconv.Itoa).
		usually(func(*Config) string { return strconv.Itoa(rip.EntrySize) }),
))

// ripTimer returns the setting of a RIP timer in milliseconds. If least is 0, a file can turn the
// timer off.
func ripTimer(name string, least uint64, field func(*RIP) *time.Duration) setting[Config] {
	return timer(name, time.Millisecond, least, maxRIPTimerMillis,
		func(c *Config) *time.Duration { return field(&c.RIP) })
}

// ripDefaults returns the timers of a node whose file does not set them.
func ripDefaults(r Routing) rip.Timers {
	if r == RoutingRIP2 || r == RoutingRIPng {
		return rip.Timers{}.WithDefaults(rip.RIPv2) // RIPng has the same defaults
	}
	return rip.Timers{}.WithDefaults(rip.Course)
}

// ripSettings are the keys of the directive `rip interface`.
var ripSettings = []setting[Interface]{
	count("cost", "", func(i *Interface) *int { return &i.RIP.Cost }, within(1, 15, "")),
	switchOn("passive", func(i *Interface) *bool { return &i.RIP.Passive }),
	choice("send", []string{"rip2", "rip1-compatible", "rip1", "none"},
		func(i *Interface) *string { return &i.RIP.Send }),
	choice("receive", []string{"both", "rip2", "rip1", "none"},
		func(i *Interface) *string { return &i.RIP.Receive }),
}

// announcementSettings are the settings of an announced prefix.
var announcementSettings = []setting[Announcement]{
	count("metric", "", func(a *Announcement) *int { return &a.Metric }, within(1, 15, "")),
	settingOf("tag", "", func(a *Announcement) *uint16 { return &a.Tag },
		func(r *report, w Word) (uint16, bool) {
			n, ok := r.number(w, 0, math.MaxUint16, "")
			return uint16(n), ok
		},
		func(tag uint16) string { return strconv.Itoa(int(tag)) }),
}

func (p *parser) readAdvertiseTo(l line) {
	to := l.words[2]
	addr, ok := p.report.addr4(to)
	if !ok {
		return
	}
	if i := slices.Index(p.cfg.RIP.AdvertiseTo, addr); i >= 0 {
		p.report.bad(to, "already a destination on "+p.advertiseAt[i].lineText(),
			"only one such line")
		return
	}
	p.cfg.RIP.AdvertiseTo = append(p.cfg.RIP.AdvertiseTo, addr)
	p.advertiseAt = append(p.advertiseAt, to.Pos)
}

// readOriginate reads a prefix to announce and the settings after it.
func (p *parser) readOriginate(l line) {
	okForm := p.report.fixed(l, 2, "prefix", usageOriginate)
	if !okForm && len(l.words) < 4 || !p.report.words(l, 4, 8, usageOriginate) {
		return
	}
	prefix, ok := p.report.prefix(l.words[3])
	a, okSaid := p.report.announcement(l, 4, usageOriginate)
	if !okForm || !ok || !okSaid {
		return
	}
	if slices.ContainsFunc(p.cfg.RIP.Originate, func(b Announcement) bool {
		return b.Prefix == prefix
	}) {
		p.report.bad(l.words[3], "already originated", "only one such line")
		return
	}
	a.Prefix = prefix
	p.cfg.RIP.Originate = append(p.cfg.RIP.Originate, a)
}

func (p *parser) readRedistribute(l line) {
	if !p.report.fixed(l, 2, "static", usageRedistribute) {
		return
	}
	a, ok := p.report.announcement(l, 3, usageRedistribute)
	if ok && p.once("rip redistribute", l.words[2]) {
		p.cfg.RIP.Static = &a
	}
}

// announcement reads keys and values from word i to the end of the line.
func (r *report) announcement(l line, i int, usage string) (a Announcement, ok bool) {
	keys := names(announcementSettings)
	for ; i < len(l.words); i += 2 {
		key := l.words[i]
		n := slices.Index(keys, key.Text)
		if n < 0 {
			r.bad(key, "not an option of a prefix"+diagnostic.DidYouMean(key.Text, keys),
				usage)
			return a, false
		}
		if i+1 == len(l.words) {
			r.add(l.end, "", key.Text+" has no value", usage)
			return a, false
		}
		if !announcementSettings[n].read(r, l.words[i+1], &a) {
			return a, false
		}
	}
	return a, true
}

// keyLine is a key for an interface that a later line may declare.
type keyLine struct {
	name, id Word
	key      RIPKey
}

func (p *parser) readKey(l line) {
	n, okID := p.report.number(l.words[3], 0, 255, "")
	a := l.words[4]
	okAlgorithm := slices.Contains(ripAlgorithms, a.Text)
	if !okAlgorithm {
		p.report.bad(a, "not an algorithm"+diagnostic.DidYouMean(a.Text, ripAlgorithms),
			diagnostic.OneOf(ripAlgorithms))
	}
	if okID && okAlgorithm && p.report.secret(l.words[5], a.Text) {
		k := RIPKey{ID: uint8(n), Algorithm: a.Text, Secret: l.words[5].Text}
		p.keys = append(p.keys, keyLine{l.words[2], l.words[3], k})
	}
}

func (p *parser) readPassword(l line) {
	if p.report.secret(l.words[3], ripPassword) {
		k := RIPKey{Algorithm: ripPassword, Secret: l.words[3].Text}
		p.keys = append(p.keys, keyLine{l.words[2], l.words[3], k})
	}
}

// secret reports whether a secret has a valid length for the algorithm. The message does not
// contain the secret.
func (r *report) secret(w Word, algorithm string) bool {
	most := maxSecret
	if algorithm == ripPassword || algorithm == "md5" {
		most = shortSecret
	}
	if len(w.Text) <= most {
		return true
	}
	r.add(w.Pos, w.Text, fmt.Sprintf("the secret has %d bytes", len(w.Text)),
		fmt.Sprintf("at most %d", most))
	return false
}

// applyKeys adds the keys to their interfaces.
func (p *parser) applyKeys() {
	for _, k := range p.keys {
		iface, ok := p.cfg.Interface(k.name.Text)
		if !ok {
			p.unknownInterface(k.name)
			continue
		}
		keys := iface.RIP.Keys
		again := slices.ContainsFunc(keys, func(b RIPKey) bool { return b.ID == k.key.ID })
		password := k.key.Algorithm == ripPassword
		switch {
		case len(keys) > 0 && (keys[0].Algorithm == ripPassword) != password:
			p.report.add(k.name.Pos, k.name.Text, k.name.Text+" has both a password and a key",
				"one or the other")
		case iface.RIP.Send == "rip1":
			p.report.add(k.name.Pos, k.name.Text, k.name.Text+
				" sends version 1, which has no authentication", "another rip interface … send")
		case again && !password:
			p.report.bad(k.id, "already a key id of "+k.name.Text, "another id")
		default:
			iface.RIP.Keys = append(keys, k.key)
		}
	}
}

func (p *parser) readTrigger(l line) {
	least, okLeast := p.report.number(l.words[2], 0, maxRIPTimerMillis, " milliseconds")
	most, okMost := p.report.number(l.words[3], 0, maxRIPTimerMillis, " milliseconds")
	switch {
	case !okLeast || !okMost:
	case least > most:
		p.report.bad(l.words[3], "less than the minimum", l.words[2].Text+" or more")
	case p.once("rip triggered-update-delay", l.words[2]):
		p.cfg.RIP.TriggerMin = timeOrOff(least, time.Millisecond)
		p.cfg.RIP.TriggerMax = timeOrOff(most, time.Millisecond)
	}
}

// SpeaksRIP reports whether the node is a router that runs one of RIP's dialects.
func (c *Config) SpeaksRIP() bool { return c.Routing >= RoutingRIP }

// name describes the key without its secret.
func (k RIPKey) name() string {
	if k.Algorithm == ripPassword {
		return ripPassword
	}
	return fmt.Sprintf("key %d (%s)", k.ID, k.Algorithm)
}
