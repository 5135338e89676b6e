package lnx

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// These are the kinds of port forwards.
const (
	Publish = "publish"
	Expose  = "expose"
	Splice  = "splice"
	Socks   = "socks"
)

// Forward is a port forward between this machine and the virtual network, or a splice.
type Forward struct {
	// Kind is Publish, Expose, Splice or Socks.
	Kind string
	// Addr is the listening address: an address of this machine for Publish and Socks (if invalid,
	// 127.0.0.1), and of the node for Splice. Expose has none.
	Addr netip.Addr
	// Port is the listening port; 0 for Splice.
	Port uint16
	// To is the destination. It has port 0 for Splice, and is empty for Socks.
	To HostPort
	// UDP means that datagrams are forwarded instead of connections.
	UDP bool
	// Pos is where the file names the listening address or port.
	Pos Pos
}

// forwardKinds are the keywords of port forwards, in every grammar.
var forwardKinds = []string{Publish, Expose, Splice, Socks}

const (
	usagePublish = "publish [HOST-ADDR:]PORT ADDR:PORT [udp]"
	usageExpose  = "expose PORT [HOST:]PORT [udp]"
	usageSplice  = "splice ADDR [HOST-ADDR]"
	usageSocks   = "socks [HOST-ADDR:]PORT"

	wantMachine = "an address of this machine, such as 127.0.0.1 or [::1]"
)

// forwardDirectives are the directives of port forwards. The first directive writes all of them, in
// file order.
var forwardDirectives = []directive{
	{
		Publish, usagePublish, 3, 4, (*parser).readPublish,
		func(b *bytes.Buffer, c *Config) {
			for i := range c.Forwards {
				b.WriteString(c.Forwards[i].String() + "\n")
			}
		},
	},
	{Expose, usageExpose, 3, 4, (*parser).readExpose, nil},
	{Splice, usageSplice, 2, 3, (*parser).readSplice, nil},
	{Socks, usageSocks, 2, 2, func(p *parser, l line) {
		d := Forward{Kind: Socks, Pos: l.words[1].Pos}
		if p.report.listens(&d, l.words[1]) {
			p.addForward(d)
		}
	}, nil},
}

// isForward reports whether a line describes a port forward.
func isForward(l line) bool { return slices.Contains(forwardKinds, l.keyword().Text) }

// IsForward reports whether the text is a single line that starts like a port forward.
func IsForward(text string) bool {
	l := cut(1, text)
	return len(l.words) > 0 && isForward(l) && !strings.ContainsAny(text, "\r\n")
}

// readForwards reads the port forwards of a file in an old grammar, and returns the other lines.
func (p *parser) readForwards(lines []line) (rest []line) {
	for _, l := range lines {
		if isForward(l) {
			p.readDirective(l)
			continue
		}
		rest = append(rest, l)
	}
	return rest
}

func (p *parser) readPublish(l line) {
	d := Forward{Kind: Publish, Pos: l.words[1].Pos}
	var okTo bool
	okFrom := p.report.listens(&d, l.words[1])
	to := l.words[2]
	d.To, okTo = p.report.endpoint(to, wantAddrPort, func(host Word) (string, bool) {
		a, ok := p.report.addr(unbracket(host))
		return a.String(), ok
	})
	if p.datagrams(l, &d, usagePublish) && okFrom && okTo {
		p.addForward(d)
	}
}

// listens reads [HOST-ADDR:]PORT.
func (r *report) listens(d *Forward, from Word) (ok bool) {
	if i := strings.LastIndexByte(from.Text, ':'); i >= 0 {
		if d.Addr, ok = r.machine(unbracket(part(from, 0, from.Text[:i]))); !ok {
			return false
		}
		from = part(from, i+1, from.Text[i+1:])
	}
	d.Port, ok = r.port(from)
	return ok
}

func (p *parser) readExpose(l line) {
	d := Forward{Kind: Expose, Pos: l.words[1].Pos}
	var okFrom, okTo bool
	d.Port, okFrom = p.report.port(l.words[1])
	if to := l.words[2]; strings.HasPrefix(to.Text, "[") {
		d.To, okTo = p.report.endpoint(to, wantHostPort, func(host Word) (string, bool) {
			a, ok := p.report.machine(unbracket(host))
			return a.String(), ok
		})
	} else if strings.Contains(to.Text, ":") {
		d.To, okTo = p.report.destination(to)
	} else {
		d.To.Host = "127.0.0.1"
		d.To.Port, okTo = p.report.port(to)
	}
	if p.datagrams(l, &d, usageExpose) && okFrom && okTo {
		p.addForward(d)
	}
}

func (p *parser) readSplice(l line) {
	d := Forward{Kind: Splice, Pos: l.words[1].Pos}
	var ok bool
	d.Addr, ok = p.report.addr(l.words[1])
	d.To.Host = "127.0.0.1"
	if len(l.words) > 2 {
		to, okTo := p.report.machine(l.words[2])
		d.To.Host, ok = to.String(), ok && okTo
	}
	if ok {
		p.addForward(d)
	}
}

// unbracket removes the brackets around an IPv6 address.
func unbracket(w Word) Word {
	if t, ok := strings.CutPrefix(w.Text, "["); ok && strings.HasSuffix(t, "]") {
		return part(w, 1, t[:len(t)-1])
	}
	return w
}

// machine reads an address of this machine's real network.
func (r *report) machine(w Word) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Replace(w.Text, "localhost", "127.0.0.1", 1))
	if err != nil || a.IsMulticast() {
		r.bad(w, "not an address", wantMachine)
		return a, false
	}
	return a, true
}

func (p *parser) datagrams(l line, d *Forward, usage string) bool {
	d.UDP = len(l.words) > 3
	return p.report.fixed(l, 3, "udp", usage)
}

// addForward adds a port forward. It records an error if another forward already uses the port.
func (p *parser) addForward(d Forward) {
	for i := range p.cfg.Forwards {
		o := &p.cfg.Forwards[i]
		if o.Kind != d.Kind && !(o.local() && d.local()) || o.UDP != d.UDP || o.Port != d.Port ||
			!o.conflictsWith(&d) {
			continue
		}
		what := d.Kind + " " + d.place() + " is already"
		if d.Kind != o.Kind {
			what = "the port of " + d.Kind + " " + d.place() + " is already used"
		}
		if d.Kind == Splice {
			what = "a splice is already"
		}
		p.report.add(d.Pos, "", what+" on line "+strconv.Itoa(o.Pos.Line),
			"only one such line")
		return
	}
	p.cfg.Forwards = append(p.cfg.Forwards, d)
}

// conflictsWith reports whether two forwards of the same port cannot listen at the same time.
func (d *Forward) conflictsWith(o *Forward) bool {
	if !d.local() {
		return true
	}
	a, b := d.On(), o.On()
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}

func (d *Forward) local() bool { return d.Kind == Publish || d.Kind == Socks }

// On returns the address of this machine where a Publish or a Socks listens.
func (d *Forward) On() netip.Addr {
	if d.Addr.IsValid() {
		return d.Addr
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// place returns the listening address in the form that a file has.
func (d *Forward) place() string {
	switch {
	case d.Kind == Splice:
		return d.Addr.String()
	case d.Addr.IsValid():
		return netip.AddrPortFrom(d.Addr, d.Port).String()
	}
	return strconv.Itoa(int(d.Port))
}

// String returns the port forward as a line of a file.
func (d *Forward) String() string {
	text := d.Kind + " " + d.place() + " "
	switch d.Kind {
	case Splice:
		return text + d.To.Host
	case Socks:
		return text[:len(text)-1]
	}
	text += d.To.String()
	if d.UDP {
		text += " udp"
	}
	return text
}

// checkForwards records an error for each splice of an address that the node does not have.
func (p *parser) checkForwards() {
	for i := range p.cfg.Forwards {
		d := &p.cfg.Forwards[i]
		if d.Kind != Splice {
			continue
		}
		own := slices.ContainsFunc(p.cfg.Interfaces, func(f Interface) bool {
			return f.Has(d.Addr)
		})
		if !own && !p.subnetsUnknown {
			p.report.add(d.Pos, d.Addr.String(), d.Addr.String()+
				" is not an address of this node", "an interface's address")
		}
	}
}

// AtForward returns an error at the port forward's position, or nil if c has no file.
func (c *Config) AtForward(d *Forward, msg, want string) *Error {
	return c.at(d.Pos, d.place(), msg, want)
}
