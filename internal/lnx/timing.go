package lnx

import (
	"slices"
	"time"
)

// The bounds of timers: an hour for RIP's in milliseconds, ten minutes for
// TCP's in microseconds. Mixing the units up falls out of them in one direction.
const (
	maxRIPTimerMillis = 3_600_000
	maxRTOMicros      = 600_000_000
)

func (p *parser) readAdvertiseTo(l line) {
	to := l.words[2]
	addr, ok := p.addr(to)
	if !ok {
		return
	}
	if i := slices.Index(p.cfg.RIP.AdvertiseTo, addr); i >= 0 {
		p.bad(to, "already advertised to, in "+p.advertiseAt[i].lineText(),
			"one line with it")
		return
	}
	p.cfg.RIP.AdvertiseTo = append(p.cfg.RIP.AdvertiseTo, addr)
	p.advertiseAt = append(p.advertiseAt, to.pos)
}

func (p *parser) readPeriodic(l line) { p.milliseconds(l, &p.cfg.RIP.Periodic) }

func (p *parser) readTimeout(l line) { p.milliseconds(l, &p.cfg.RIP.Timeout) }

func (p *parser) readRTOMin(l line) { p.microseconds(l, &p.cfg.TCP.RTOMin) }

func (p *parser) readRTOMax(l line) { p.microseconds(l, &p.cfg.TCP.RTOMax) }

// milliseconds reads the timer that is the line's third word.
func (p *parser) milliseconds(l line, d *time.Duration) {
	n, ok := p.number(l.words[2], 1, maxRIPTimerMillis, " milliseconds")
	if ok && p.once(l.words[0].text+" "+l.words[1].text, l.words[2]) {
		*d = time.Duration(n) * time.Millisecond
	}
}

// microseconds does the same for the other unit.
func (p *parser) microseconds(l line, d *time.Duration) {
	n, ok := p.number(l.words[2], 1, maxRTOMicros, " microseconds")
	if ok && p.once(l.words[0].text+" "+l.words[1].text, l.words[2]) {
		*d = time.Duration(n) * time.Microsecond
	}
}

// readWithdraw reads whether routes die with the neighbour's UDP port.
func (p *parser) readWithdraw(l line) {
	words := []string{"on", "off"}
	switch w := l.words[2]; {
	case !slices.Contains(words, w.text):
		p.bad(w, "neither on nor off", oneOf(words))
	case p.once("rip withdraw-refused", w):
		p.cfg.RIP.KeepRefused = w.text == "off"
	}
}

func (p *parser) readEntrySize(l line) {
	sizes := map[string]int{"12": maskEntrySize, "8": hostEntrySize}
	size, ok := sizes[l.words[2].text]
	if !ok {
		p.bad(l.words[2], "no size of an entry", "12, or 8 for entries without a mask")
		return
	}
	if p.once("rip entry-size", l.words[2]) {
		p.cfg.RIP.EntrySize = size
	}
}

func (p *parser) readOptions(l line) {
	switch l.words[2].text {
	case "on", "off":
		if p.once("tcp options", l.words[2]) {
			p.cfg.TCP.OptionsOff = l.words[2].text == "off"
		}
	default:
		p.bad(l.words[2], "not a switch", "on or off")
	}
}

func (p *parser) readResets(l line) {
	p.cfg.TCP.NoResets = !p.onOff(l, !p.cfg.TCP.NoResets)
}

func (p *parser) readProfile(l line) {
	if l.words[2].text != profile004 {
		p.bad(l.words[2], "no profile", profile004)
		return
	}
	if p.once("tcp profile", l.words[2]) {
		p.cfg.TCP.Profile = profile004
	}
}
