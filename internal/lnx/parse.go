package lnx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// Values that the files of the older grammars do not state.
const (
	defaultRTOMin       = time.Millisecond
	defaultRTOMax       = 5 * time.Second
	pointToPoint        = 32 // the prefix length of a link with two ends and no subnet
	maxInterfaces       = 1000
	profile004          = "004"
	profile004RTOMin    = 10 * time.Millisecond
	profile004RTOMax    = time.Second
	extension           = ".lnx"
	interfaceNamePrefix = "if" // of the old grammars' interfaces
)

// parser is one run of Parse.
type parser struct {
	report report
	cfg    *Config

	// How many lines were read as directives, and how many of them begin with none.
	directives, strange int

	// Directives that may come once, and where they came.
	seen map[string]Word
	// Addresses of interfaces, to be added when all are known.
	addresses []addressLine
	// The lines of TUN devices with words after the device, by their interfaces' places.
	tuns map[Pos]line
	// The port forwards of NATs, to be added when all lines are read.
	natForwards []natForward
	// The link lines, to be applied when all interfaces are known.
	links []linkLine
	// The keys of RIP, to be applied at the same time.
	keys []keyLine
	// The positions of cfg.RIP.AdvertiseTo.
	advertiseAt []Pos
	// Set when an interface was refused for being one too many.
	full bool
	// Where each neighbor is declared; check fills it.
	neighborAt map[netip.Addr]Pos
	// The words of lines with errors. An interface or a neighbor whose line has an error is not
	// reported as missing, too.
	excused map[string]bool
	// Set if such a line may have declared an interface, so that the node's subnets are not known.
	subnetsUnknown bool
}

// Parse reads a file. The name appears in the errors and becomes the Config's Name. The error is an
// Errors with all errors of the file.
func Parse(file string, text []byte) (*Config, error) {
	c, errs := Read(file, text)
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Read is Parse for callers that look for further errors and report all of them together. From a
// wrong file, the Config has what could be read.
func Read(file string, text []byte) (*Config, Errors) {
	p := &parser{
		report:  report{file: file},
		cfg:     &Config{Name: baseName(file), file: file},
		seen:    map[string]Word{},
		tuns:    map[Pos]line{},
		excused: map[string]bool{},
	}
	if lines, broken, ok := p.report.lex(text); ok {
		for _, l := range broken {
			p.excuse(l)
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

// isOther reports whether the text is probably not an .lnx file, because nine of ten lines, and at
// least three, begin with no directive. It says so in the first error.
func (p *parser) isOther() bool {
	if p.strange < 3 || 10*p.strange < 9*p.directives {
		return false
	}
	p.report.errs.Sort()
	p.report.errs[0].Msg += fmt.Sprintf(
		"; %d of %d lines begin with no directive: this is not an .lnx file", p.strange,
		p.directives)
	return true
}

// baseName returns the file's name without its folder and extension.
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

// setDefaults fills in what the file did not say.
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

// RTODefaults returns the bounds of the retransmission timer that apply where a file, or a program
// with the same profile, sets none.
func RTODefaults(profile string) (least, most time.Duration) {
	if profile == profile004 {
		return profile004RTOMin, profile004RTOMax
	}
	return defaultRTOMin, defaultRTOMax
}

// excuse prevents errors about missing interfaces and neighbors that a line with an error may have
// declared.
func (p *parser) excuse(l line) {
	for _, w := range l.words {
		p.excused[w.Text] = true
	}
	d := findDirective(l.keyword().Text)
	if d == nil || d.name == "interface" {
		p.subnetsUnknown = true
	}
}

// once reports whether the directive comes for the first time; otherwise it records an error.
func (p *parser) once(directive string, at Word) bool {
	if before, again := p.seen[directive]; again {
		p.report.add(at.Pos, at.Text,
			fmt.Sprintf("%s is already set in line %d", directive, before.Pos.Line),
			"only one such line")
		return false
	}
	p.seen[directive] = at
	return true
}

// addInterface adds an interface. The checks that compare all interfaces are quadratic, so their
// number is limited.
func (p *parser) addInterface(i Interface) {
	if len(p.cfg.Interfaces) == maxInterfaces {
		if !p.full {
			p.full = true
			p.report.add(i.Pos, i.Name, "too many interfaces",
				fmt.Sprintf("at most %d", maxInterfaces))
		}
		p.excused[i.Name] = true
		p.subnetsUnknown = true
		return
	}
	p.cfg.Interfaces = append(p.cfg.Interfaces, i)
}
