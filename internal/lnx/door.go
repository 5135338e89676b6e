package lnx

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The kinds of doors.
const (
	DoorPublish = "publish"
	DoorExpose  = "expose"
	DoorSplice  = "splice"
)

// Door is a way between the machine that the node runs on and the virtual network.
type Door struct {
	// Kind is DoorPublish, DoorExpose or DoorSplice.
	Kind string
	// Addr is where it listens: for DoorPublish an address of the machine, invalid: its
	// loopback; for DoorSplice the node's address.
	Addr netip.Addr
	// Port is where it listens; 0 for DoorSplice.
	Port uint16
	// To is where it leads; its port is 0 for DoorSplice.
	To HostPort
	// UDP is set if it is about datagrams.
	UDP bool
	// Pos is where the file names the place that it listens at.
	Pos Pos
}

// doorKinds open the lines about doors, in files of every grammar.
var doorKinds = []string{DoorPublish, DoorExpose, DoorSplice}

const (
	usagePublish = "publish [HOST-ADDR:]PORT ADDR:PORT [udp]"
	usageExpose  = "expose PORT [HOST:]PORT [udp]"
	usageSplice  = "splice ADDR [HOST-ADDR]"

	wantMachine = "an IPv4 address of this machine, such as 127.0.0.1"
)

// doorDirectives are those about doors. The first writes all, in the order of the file.
var doorDirectives = []directive{
	{
		DoorPublish, usagePublish, 3, 4, (*parser).readPublish,
		func(b *bytes.Buffer, c *Config) {
			for i := range c.Doors {
				b.WriteString(c.Doors[i].String() + "\n")
			}
		},
	},
	{DoorExpose, usageExpose, 3, 4, (*parser).readExpose, nil},
	{DoorSplice, usageSplice, 2, 3, (*parser).readSplice, nil},
}

// aboutDoor reports whether a line is about a door.
func aboutDoor(l line) bool { return slices.Contains(doorKinds, l.keyword().Text) }

// IsDoor reports whether a text is one line about a door, right or wrong.
func IsDoor(text string) bool {
	l := cut(1, text)
	return len(l.words) > 0 && aboutDoor(l) && !strings.ContainsAny(text, "\r\n")
}

// readDoors reads the lines about doors of an old grammar, and returns the others.
func (p *parser) readDoors(lines []line) (rest []line) {
	for _, l := range lines {
		if aboutDoor(l) {
			p.readDirective(l)
			continue
		}
		rest = append(rest, l)
	}
	return rest
}

func (p *parser) readPublish(l line) {
	d := Door{Kind: DoorPublish, Pos: l.words[1].Pos}
	var okFrom, okTo bool
	from := l.words[1]
	if i := strings.LastIndexByte(from.Text, ':'); i >= 0 {
		if d.Addr, okFrom = p.report.machine(part(from, 0, from.Text[:i])); okFrom {
			from = part(from, i+1, from.Text[i+1:])
			d.Port, okFrom = p.report.port(from)
		}
	} else {
		d.Port, okFrom = p.report.port(from)
	}
	to := l.words[2]
	if i := strings.LastIndexByte(to.Text, ':'); i < 0 {
		p.report.bad(to, "missing a port", "ADDR:PORT, such as 10.1.0.2:80")
	} else if a, ok := p.report.addr(part(to, 0, to.Text[:i])); ok {
		d.To.Host = a.String()
		d.To.Port, okTo = p.report.port(part(to, i+1, to.Text[i+1:]))
	}
	if p.datagrams(l, &d, usagePublish) && okFrom && okTo {
		p.addDoor(d)
	}
}

func (p *parser) readExpose(l line) {
	d := Door{Kind: DoorExpose, Pos: l.words[1].Pos}
	var okFrom, okTo bool
	d.Port, okFrom = p.report.port(l.words[1])
	if to := l.words[2]; strings.Contains(to.Text, ":") {
		d.To, okTo = p.report.destination(to)
	} else {
		d.To.Host = "127.0.0.1"
		d.To.Port, okTo = p.report.port(to)
	}
	if p.datagrams(l, &d, usageExpose) && okFrom && okTo {
		p.addDoor(d)
	}
}

func (p *parser) readSplice(l line) {
	d := Door{Kind: DoorSplice, Pos: l.words[1].Pos}
	var ok bool
	d.Addr, ok = p.report.addr(l.words[1])
	d.To.Host = "127.0.0.1"
	if len(l.words) > 2 {
		to, okTo := p.report.machine(l.words[2])
		d.To.Host, ok = to.String(), ok && okTo
	}
	if ok {
		p.addDoor(d)
	}
}

// machine reads an address of this machine's network.
func (r *report) machine(w Word) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Replace(w.Text, "localhost", "127.0.0.1", 1))
	if err != nil || !a.Is4() || a.IsMulticast() {
		r.bad(w, "not an address", wantMachine)
		return a, false
	}
	return a, true
}

// datagrams reads the end of a line about a door.
func (p *parser) datagrams(l line, d *Door, usage string) bool {
	d.UDP = len(l.words) > 3
	return p.report.fixed(l, 3, "udp", usage)
}

// addDoor keeps a door, unless one is there already.
func (p *parser) addDoor(d Door) {
	for i := range p.cfg.Doors {
		o := &p.cfg.Doors[i]
		if o.Kind != d.Kind || o.UDP != d.UDP || o.Port != d.Port || !o.meets(&d) {
			continue
		}
		what := d.Kind + " " + d.place() + " is already"
		if d.Kind == DoorSplice {
			what = "a splice is already"
		}
		p.report.add(d.Pos, "", what+" in line "+strconv.Itoa(o.Pos.Line),
			"one line with it")
		return
	}
	p.cfg.Doors = append(p.cfg.Doors, d)
}

// meets reports whether two doors of one kind and port cannot both listen.
func (d *Door) meets(o *Door) bool {
	if d.Kind != DoorPublish {
		return true
	}
	a, b := d.On(), o.On()
	return a == b || a.IsUnspecified() || b.IsUnspecified()
}

// On is the address of the machine that a DoorPublish listens at.
func (d *Door) On() netip.Addr {
	if d.Addr.IsValid() {
		return d.Addr
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// place is where the door listens, as a file has it.
func (d *Door) place() string {
	switch {
	case d.Kind == DoorSplice:
		return d.Addr.String()
	case d.Addr.IsValid():
		return d.Addr.String() + ":" + strconv.Itoa(int(d.Port))
	}
	return strconv.Itoa(int(d.Port))
}

// String returns the door as a line of a file.
func (d *Door) String() string {
	text := d.Kind + " " + d.place() + " "
	if d.Kind == DoorSplice {
		return text + d.To.Host
	}
	text += d.To.String()
	if d.UDP {
		text += " udp"
	}
	return text
}

// checkDoors looks for splices of addresses that are not the node's.
func (p *parser) checkDoors() {
	for i := range p.cfg.Doors {
		d := &p.cfg.Doors[i]
		if d.Kind != DoorSplice {
			continue
		}
		own := slices.ContainsFunc(p.cfg.Interfaces, func(f Interface) bool {
			return f.Addr.Addr() == d.Addr
		})
		if !own && !p.subnetsUnknown {
			p.report.add(d.Pos, d.Addr.String(), d.Addr.String()+
				" is not an address of this node", "an interface's address")
		}
	}
}

// AtDoor is an error about a door, at its place in the file; nil: it is of no file.
func (c *Config) AtDoor(d *Door, msg, want string) *Error {
	return c.at(d.Pos, d.place(), msg, want)
}
