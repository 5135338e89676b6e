package lnx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/rip"
)

const (
	defaultRTOMin       = time.Millisecond
	defaultRTOMax       = 5 * time.Second
	pointToPoint        = 32 // the prefix length of a point-to-point link without a subnet
	maxInterfaces       = 1000
	profile004          = "004"
	profile004RTOMin    = 10 * time.Millisecond
	profile004RTOMax    = time.Second
	extension           = ".lnx"
	interfaceNamePrefix = "if" // prefix of interface names in the old grammars
)

// parser is one run of Parse.
type parser struct {
	report report
	cfg    *Config

	// directives counts the lines that were read as directives. unknown counts those of them that
	// start with an unknown word.
	directives, unknown int

	// seen has the position of each directive so far that may occur only once.
	seen map[string]Word
	// addresses of interfaces are added when all interfaces are known.
	addresses []addressLine
	// tuns has the lines of TUN devices with words after the device, by the positions of the
	// interfaces.
	tuns map[Pos]line
	// natForwards, the port forwards of NATs, are added after all lines have been read.
	natForwards []natForward
	// links, the link lines, are applied when all interfaces are known.
	links []linkLine
	// keys of RIP are applied at the same time.
	keys []keyLine
	// advertiseAt has the positions of cfg.RIP.AdvertiseTo.
	advertiseAt []Pos
	// full is set if an interface exceeded the maximum number.
	full bool
	// neighborAt has the position of each neighbor. The function check fills it.
	neighborAt map[netip.Addr]Pos
	// suppressed has the words of lines with errors. If a line about an interface or a neighbor has
	// an error, that name is not also reported as missing.
	suppressed map[string]bool
	// subnetsUnknown is set if a line with an error may have declared an interface, because its
	// subnets are then unknown.
	subnetsUnknown bool
}

// Parse reads a file. Errors contain file as the name, and the Config's Name comes from it. The
// returned error is an Errors with all errors of the file.
func Parse(file string, text []byte) (*Config, error) {
	c, errs := Read(file, text)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Read is like Parse, for callers that look for further errors and report all of them together. For
// a file with errors, the Config contains the valid parts.
func Read(file string, text []byte) (*Config, Errors) {
	p := &parser{
		report:     report{file: file},
		cfg:        &Config{Name: baseName(file), file: file},
		seen:       map[string]Word{},
		tuns:       map[Pos]line{},
		suppressed: map[string]bool{},
	}
	if lines, broken, ok := p.report.lex(text); ok {
		for _, l := range broken {
			p.suppressMissing(l)
		}
		p.cfg.lines = p.report.lines
		p.cfg.Grammar = detect(lines)
		p.read(lines)
		if p.isOther() {
			return p.cfg, p.report.errs[:1]
		}
		p.setDefaults()
		p.check()
	}
	errs := p.report.sorted()
	if errs.Err() == nil {
		p.cfg.Notes = errs
	}
	return p.cfg, errs
}

// isOther reports whether the text is probably not an .lnx file: at least three lines, and nine
// tenths of all lines, start with an unknown word. If so, it says that in the first error.
func (p *parser) isOther() bool {
	if p.unknown < 3 || 10*p.unknown < 9*p.directives {
		return false
	}
	p.report.errs.Sort()
	p.report.errs[0].Msg += fmt.Sprintf(
		"; %d of %d lines begin with no directive: this is not an .lnx file", p.unknown,
		p.directives)
	return true
}

func baseName(file string) string {
	return strings.TrimSuffix(file[strings.LastIndexAny(file, `/\`)+1:], extension)
}

// read reads the lines in the grammar that detect found.
func (p *parser) read(lines []line) {
	if g, old := oldGrammars[p.cfg.Grammar]; old {
		p.readOld(g, p.readForwards(lines))
		return
	}
	for _, l := range lines {
		p.readDirective(l)
	}
	p.addAddresses()
	p.readKernels()
	p.applyLinks()
	p.checkImpair()
	p.applyKeys()
}

// setDefaults fills in the settings that the file does not contain.
func (p *parser) setDefaults() {
	c := p.cfg
	rtoMin, rtoMax := RTODefaults(c.TCP.Profile)
	c.TCP.RTOMin = cmp.Or(c.TCP.RTOMin, rtoMin)
	c.TCP.RTOMax = cmp.Or(c.TCP.RTOMax, rtoMax)
	times := ripDefaults(c.Routing)
	c.RIP.Periodic = cmp.Or(c.RIP.Periodic, times.Periodic)
	c.RIP.Timeout = cmp.Or(c.RIP.Timeout, times.Timeout)
	c.RIP.EntrySize = cmp.Or(c.RIP.EntrySize, rip.EntrySize)
	if c.SpeaksRIP() || c.isGateway() || len(c.NATs) > 0 {
		c.Forwarding = true
	}
}

// isGateway reports whether the node has a TUN device and another link. Such a node forwards
// packets between the kernel and the network.
func (c *Config) isGateway() bool {
	return len(c.Interfaces) > 1 &&
		slices.ContainsFunc(c.Interfaces, func(i Interface) bool { return i.Tun != nil })
}

// RTODefaults returns the default limits of the retransmission timer for a profile.
func RTODefaults(profile string) (least, most time.Duration) {
	if profile == profile004 {
		return profile004RTOMin, profile004RTOMax
	}
	return defaultRTOMin, defaultRTOMax
}

// suppressMissing prevents errors about missing interfaces and neighbors if a line with an error
// may have declared them.
func (p *parser) suppressMissing(l line) {
	for _, w := range l.words {
		p.suppressed[w.Text] = true
	}
	d := findDirective(l.keyword().Text)
	if d == nil || d.name == "interface" {
		p.subnetsUnknown = true
	}
}

// once reports whether this is the first occurrence of the directive. It records an error
// otherwise.
func (p *parser) once(directive string, at Word) bool {
	if before, again := p.seen[directive]; again {
		p.report.add(at.Pos, at.Text,
			fmt.Sprintf("%s is already set on line %d", directive, before.Pos.Line),
			"only one such line")
		return false
	}
	p.seen[directive] = at
	return true
}

// addInterface adds an interface. It limits their number, because comparing all interfaces takes
// quadratic time.
func (p *parser) addInterface(i Interface) {
	if len(p.cfg.Interfaces) == maxInterfaces {
		if !p.full {
			p.full = true
			p.report.add(i.Pos, i.Name, "too many interfaces",
				fmt.Sprintf("at most %d", maxInterfaces))
		}
		p.suppressed[i.Name] = true
		p.subnetsUnknown = true
		return
	}
	p.cfg.Interfaces = append(p.cfg.Interfaces, i)
}

// readDirective reads a line of the new grammar, or a port forward of an old one.
func (p *parser) readDirective(l line) {
	before := len(p.report.errs)
	p.directives++
	if d := p.directiveOf(l); d != nil && p.report.words(l, d.least, d.most, d.usage) {
		d.read(p, l)
	}
	if len(p.report.errs) > before {
		p.suppressMissing(l)
	}
}

// directiveOf returns the line's directive. It records an error if the directive is unknown.
func (p *parser) directiveOf(l line) *directive {
	first := l.keyword()
	seconds := secondWords(first.Text)
	if len(seconds) == 0 {
		d := findDirective(first.Text)
		if d == nil {
			p.unknown++
			names := directiveNames()
			p.report.bad(first, "not a directive"+diagnostic.DidYouMean(first.Text, names),
				diagnostic.OneOf(names))
		}
		return d
	}
	if len(l.words) == 1 {
		p.report.add(l.end, "", first.Text+" is incomplete",
			first.Text+" and then "+diagnostic.OneOf(seconds))
		return nil
	}
	second := l.words[1]
	for i := range directives {
		if directives[i].name == first.Text+" "+second.Text {
			return &directives[i]
		}
	}
	p.report.bad(second,
		"not a keyword of "+first.Text+diagnostic.DidYouMean(second.Text, seconds),
		diagnostic.OneOf(seconds))
	return nil
}
