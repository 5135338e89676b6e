package lnx

import (
	"fmt"
	"slices"
	"strings"
)

// maxImpairWords bounds an impair line.
const maxImpairWords = 100

// The ways of an impair line.
const (
	WayIn   = "in"
	WayOut  = "out"
	WayBoth = "both"
)

// ImpairLine says in the words of tc-netem(8) what an interface does to packets. What the
// words mean is not known here: who does understand them tells mistakes by Mistake.
type ImpairLine struct {
	// Iface is the interface's name.
	Iface string
	// Way is WayIn, WayOut or WayBoth.
	Way string
	// Words are the others of the line.
	Words []string

	ifaceAt Pos
	wordAt  []Pos
	end     Pos // behind the last
}

// Text returns the words with a blank between them.
func (l *ImpairLine) Text() string { return strings.Join(l.Words, " ") }

// Mistake is an error about line l's words, which begins at a byte of its Text.
func (c *Config) Mistake(l *ImpairLine, at int, text, msg, want string) *Error {
	before := l.Text()[:min(at, len(l.Text()))]
	e := &Error{File: c.file, Text: text, Msg: msg, Want: want}
	pos := l.end
	if n := strings.Count(before, " "); text != "" && n < len(l.wordAt) {
		pos = l.wordAt[n]
	}
	e.Line, e.Col = pos.Line, pos.Col
	if e.Line > 0 && e.Line <= len(c.lines) {
		e.Source = c.lines[e.Line-1]
	}
	return e
}

func (p *parser) readImpair(l line) {
	one := ImpairLine{Iface: l.words[1].text, Way: WayBoth, ifaceAt: l.words[1].pos, end: l.end}
	rest := l.words[2:]
	if slices.Contains([]string{WayIn, WayOut, WayBoth}, rest[0].text) {
		one.Way, rest = rest[0].text, rest[1:]
	}
	if len(rest) == 0 {
		p.report.add(l.end, "", "what the link does is missing", usageImpair)
		return
	}
	for _, w := range rest {
		one.Words, one.wordAt = append(one.Words, w.text), append(one.wordAt, w.pos)
	}
	ways := []string{one.Way}
	if one.Way == WayBoth {
		ways = []string{WayIn, WayOut}
	}
	for _, way := range ways { // one that comes again is kept all the same: for its own mistakes
		what := "impair " + one.Iface
		before, again := p.seen[what+" "+way]
		if !again {
			p.seen[what+" "+way] = l.keyword()
			continue
		}
		if one.Way != WayBoth || p.seen[what+" "+WayIn] != p.seen[what+" "+WayOut] {
			what += " " + way
		}
		p.report.add(l.keyword().pos, l.keyword().text,
			fmt.Sprintf("%s is already set in line %d", what, before.pos.Line),
			"one line with it, or one `in` and one `out`")
		break
	}
	p.cfg.Impair = append(p.cfg.Impair, one)
}

// checkImpair looks for lines about interfaces that are not there, and for those that a
// link line speaks of already.
func (p *parser) checkImpair() {
	for i := range p.cfg.Impair {
		l := &p.cfg.Impair[i]
		iface, ok := p.cfg.Interface(l.Iface)
		name := word{l.Iface, l.ifaceAt}
		switch {
		case !ok:
			p.unknownInterface(name)
		case iface.Impair != Impairments{}:
			p.bad(name, "impaired by a link line already", "all of it in one of them")
		}
	}
}
