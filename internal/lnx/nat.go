package lnx

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/nat"
)

// NAT is the network address translation of an interface.
type NAT struct {
	// Iface is the outside interface.
	Iface string
	// Config is the configuration, without Addr.
	Config nat.Config

	at Word // the interface's name
}

// natForward is the line of a port forward. It may precede the line of its NAT.
type natForward struct {
	iface Word
	nat.Forward
}

const (
	usageNAT = "nat on NAME [TYPE] [mapping TYPE] [filtering TYPE] [udp TIME] [established TIME] " +
		"[transitory TIME] [icmp TIME] [sessions N] [per-host N]"
	usageNATForward = "nat forward NAME PROTOCOL PORT ADDR:PORT"

	maxNATWords    = 32
	maxNATSessions = 1 << 20
	maxNATTime     = 7 * 24 * time.Hour
)

var natDirectives = []directive{
	{
		"nat on", usageNAT, 3, maxNATWords, readNAT,
		func(b *bytes.Buffer, c *Config) {
			for i := range c.NATs {
				n := &c.NATs[i]
				fmt.Fprintln(b, strings.TrimSpace("nat on "+n.Iface+" "+NATWords(&n.Config)))
				for _, f := range n.Config.Forwards {
					fmt.Fprintf(b, "nat forward %s %s\n", n.Iface, NATForwardWords(f))
				}
			}
		},
	},
	{"nat forward", usageNATForward, 6, 6, readNATForward, nil},
}

// natTimes returns the timeouts of a NAT with their keywords.
func natTimes(t *nat.Timeouts) []struct {
	name string
	d    *time.Duration
} {
	return []struct {
		name string
		d    *time.Duration
	}{
		{"udp", &t.UDP},
		{"established", &t.Established},
		{"transitory", &t.Transitory},
		{"icmp", &t.ICMP},
	}
}

// NATWords returns the arguments of `nat on NAME` for a configuration.
func NATWords(c *nat.Config) string {
	var words []string
	add := func(name string, value any) { words = append(words, name, fmt.Sprint(value)) }
	switch {
	case c.Mapping == c.Filtering && c.Mapping != nat.EndpointIndependent:
		words = append(words, c.Mapping.String())
	default:
		if c.Mapping != nat.EndpointIndependent {
			add("mapping", c.Mapping)
		}
		if c.Filtering != nat.EndpointIndependent {
			add("filtering", c.Filtering)
		}
	}
	for _, t := range natTimes(&c.Timeouts) {
		if *t.d != 0 {
			add(t.name, *t.d)
		}
	}
	if c.MaxSessions != 0 {
		add("sessions", c.MaxSessions)
	}
	if c.MaxPerHost != 0 {
		add("per-host", c.MaxPerHost)
	}
	return strings.Join(words, " ")
}

// NATForwardWords returns the arguments of `nat forward NAME` for a port forward.
func NATForwardWords(f nat.Forward) string {
	network := "udp"
	if f.TCP {
		network = "tcp"
	}
	return fmt.Sprintf("%s %d %v", network, f.Port, f.To)
}

func readNAT(p *parser, l line) {
	n := NAT{Iface: l.words[2].Text, at: l.words[2]}
	if p.report.natWords(&n.Config, l.words[3:], l.end) {
		p.cfg.NATs = append(p.cfg.NATs, n)
	}
}

// natWords reads the arguments of a NAT. The position after them is end.
func (r *report) natWords(c *nat.Config, words []Word, end Pos) bool {
	for len(words) > 0 {
		w := words[0]
		if b := slices.Index(nat.Behaviors[:], w.Text); b >= 0 {
			c.Mapping, c.Filtering = nat.Behavior(b), nat.Behavior(b)
			words = words[1:]
			continue
		}
		if len(words) == 1 {
			if r.natKey(c, w, Word{}, true) {
				r.add(end, "", w.Text+" is incomplete", usageNAT)
			}
			return false
		}
		if !r.natKey(c, w, words[1], false) {
			return false
		}
		words = words[2:]
	}
	return true
}

// natKey reads a keyword and its value. If alone is set, the value is missing: natKey then only
// reports an unknown keyword.
func (r *report) natKey(c *nat.Config, key, value Word, alone bool) (ok bool) {
	names := append([]string{"mapping", "filtering", "sessions", "per-host"}, nat.Behaviors[:]...)
	for _, t := range natTimes(&c.Timeouts) {
		if key.Text == t.name {
			if alone {
				return true
			}
			d, err := time.ParseDuration(value.Text)
			if err != nil || d <= 0 || d > maxNATTime {
				r.bad(value, "not a timeout", "a time above 0, such as 30s or 2h4m")
				return false
			}
			*t.d = d
			return true
		}
		names = append(names, t.name)
	}
	switch {
	case !slices.Contains(names, key.Text):
		r.bad(key, "not a keyword of nat"+diagnostic.DidYouMean(key.Text, names),
			diagnostic.OneOf(names))
		return false
	case alone:
		return true
	case key.Text == "sessions":
		c.MaxSessions, ok = r.number(value, 1, maxNATSessions, " sessions")
		return ok
	case key.Text == "per-host":
		c.MaxPerHost, ok = r.number(value, 1, maxNATSessions, " sessions")
		return ok
	}
	b := slices.Index(nat.Behaviors[:], value.Text)
	if b < 0 {
		r.bad(value, "not a type of NAT"+diagnostic.DidYouMean(value.Text, nat.Behaviors[:]),
			diagnostic.OneOf(nat.Behaviors[:]))
		return false
	}
	if key.Text == "mapping" {
		c.Mapping = nat.Behavior(b)
	} else {
		c.Filtering = nat.Behavior(b)
	}
	return true
}

func readNATForward(p *parser, l line) {
	f := natForward{iface: l.words[2]}
	var ok bool
	if f.Forward, ok = p.report.natForward(l.words[3:]); ok {
		p.natForwards = append(p.natForwards, f)
	}
}

// natForward reads {tcp|udp} PORT ADDR:PORT.
func (r *report) natForward(words []Word) (f nat.Forward, ok bool) {
	switch words[0].Text {
	case "tcp":
		f.TCP = true
	case "udp":
	default:
		r.bad(words[0], "not a protocol", "tcp or udp")
		return f, false
	}
	if f.Port, ok = r.port(words[1]); !ok {
		return f, false
	}
	to, err := netip.ParseAddrPort(words[2].Text)
	if err != nil || !to.Addr().Is4() || to.Port() == 0 {
		r.bad(words[2], "not an IPv4 address with a port", "ADDR:PORT, such as 10.0.0.2:80")
		return f, false
	}
	f.To = to
	return f, true
}

// ReadNAT reads the arguments of the shell command `nat on NAME`.
func ReadNAT(args []string) (c nat.Config, err error) {
	r := &report{}
	r.natWords(&c, wordsOf(args), Pos{})
	return c, r.first()
}

// ReadNATForward reads the arguments of the shell command `nat forward NAME`.
func ReadNATForward(args []string) (nat.Forward, error) {
	if len(args) != 3 {
		return nat.Forward{}, errors.New("expected {tcp|udp} PORT ADDR:PORT")
	}
	r := &report{}
	f, _ := r.natForward(wordsOf(args))
	return f, r.first()
}

func wordsOf(args []string) (words []Word) {
	for _, a := range args {
		words = append(words, Word{Text: a})
	}
	return words
}

// first returns the first error, without a position.
func (r *report) first() error {
	if len(r.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%s (expected %s)", r.errs[0].Msg, r.errs[0].Want)
}

// checkNATs adds port forwards to their NATs. It records errors for lines that contradict each
// other.
func checkNATs(p *parser) {
	byName := map[string]*NAT{}
	for i := range p.cfg.NATs {
		n := &p.cfg.NATs[i]
		f, ok := p.cfg.Interface(n.Iface)
		switch {
		case !ok:
			p.unknownInterface(n.at)
		case byName[n.Iface] != nil:
			p.report.bad(n.at, "already an interface with a NAT", "one line for each interface")
		case !f.Addr.IsValid():
			p.report.bad(n.at, "an interface without an IPv4 address", "an interface with one")
		default:
			byName[n.Iface] = n
		}
	}
	for _, f := range p.natForwards {
		n := byName[f.iface.Text]
		own := func(i Interface) bool { return i.Has(f.To.Addr()) }
		switch {
		case n == nil && !p.suppressed[f.iface.Text]:
			p.report.bad(f.iface, "not an interface with a NAT", "a line `nat on NAME`")
		case n == nil:
		case slices.ContainsFunc(p.cfg.Interfaces, own):
			p.report.add(f.iface.Pos, f.To.String(), "a port forward to this node itself",
				"the address of an inside host")
		default:
			n.Config.Forwards = append(n.Config.Forwards, f.Forward)
			if err := n.Config.Check(); err != nil {
				n.Config.Forwards = n.Config.Forwards[:len(n.Config.Forwards)-1]
				p.report.add(f.iface.Pos, strconv.Itoa(int(f.Port)), err.Error(), "another port")
			}
		}
	}
}
