package topology

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/spell"
)

// Extension is that of a file with a plan.
const Extension = ".net"

// The directives of a plan's file.
var directives = []string{"link", "host", "router", "port"}

// word is a word of a line, with its column.
type word struct {
	text string
	col  int
}

// reader is one run of Parse.
type reader struct {
	file  string
	plan  *Plan
	index map[string]int
	errs  lnx.Errors
	line  int
	text  string
}

// Parse reads a plan, a directive a line; # begins a comment:
//
//	link A B [WORD...]   two nodes and a link, with the words of `impair` if it does anything
//	host NAME...         nodes that pass nothing on, whatever links they have
//	router NAME...       and nodes that do
//	port N               the first UDP port
//
// A node with several links is a router unless it is said to be a host, one with one link a host.
// The error is an lnx.Errors with every mistake.
func Parse(file string, text []byte) (*Plan, error) {
	r := &reader{file: file, plan: &Plan{}, index: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		r.line++
		r.text = strings.TrimRight(line, "\r\n")
		if words := cutWords(r.text); len(words) > 0 {
			r.directive(words)
		}
	}
	if len(r.errs) == 0 && len(r.plan.Links) == 0 {
		r.errs = append(r.errs, &lnx.Error{File: file, Msg: "there is no link", Want: "link A B"})
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return r.plan, nil
}

// cutWords cuts a line, but for its comment, into words.
func cutWords(text string) (words []word) {
	text, _, _ = strings.Cut(text, "#")
	begin := -1
	col := 0
	start := 0
	for i, c := range text + " " {
		col++
		switch blank := unicode.IsSpace(c); {
		case blank && begin >= 0:
			words = append(words, word{text[begin:i], start})
			begin = -1
		case !blank && begin < 0:
			begin, start = i, col
		}
	}
	return words
}

// wrong notes a mistake.
func (r *reader) wrong(at word, msg, want string) {
	r.errs = append(r.errs, &lnx.Error{
		File: r.file, Line: r.line, Col: at.col, Text: at.text, Msg: msg, Want: want,
		Source: r.text,
	})
}

func (r *reader) directive(words []word) {
	rest := words[1:]
	switch words[0].text {
	case "link":
		r.link(words[0], rest)
	case "host":
		r.role(words[0], rest, Host)
	case "router":
		r.role(words[0], rest, Router)
	case "port":
		r.port(words[0], rest)
	default:
		r.wrong(words[0], fmt.Sprintf("%q is no directive%s", words[0].text,
			spell.DidYouMean(words[0].text, directives)), strings.Join(directives, ", "))
	}
}

// node finds a node by its name, or adds it. False: it cannot have that name.
func (r *reader) node(w word) (int, bool) {
	i, ok := r.index[w.text]
	if ok {
		return i, true
	}
	for n, c := range w.text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (n == 0 || c != '-' && c != '.') {
			r.wrong(w, fmt.Sprintf("%q cannot name a node", w.text),
				"letters, digits, dots, - and _")
			return 0, false
		}
	}
	r.plan.Nodes = append(r.plan.Nodes, Node{Name: w.text})
	r.index[w.text] = len(r.plan.Nodes) - 1
	return r.index[w.text], true
}

func (r *reader) link(at word, words []word) {
	if len(words) < 2 {
		r.wrong(at, "a link has two ends", "link A B [delay 20ms loss 1%]")
		return
	}
	a, first := r.node(words[0])
	b, second := r.node(words[1])
	switch {
	case !first || !second:
		return
	case a == b:
		r.wrong(words[1], words[0].text+" is linked to itself", "another node")
		return
	}
	l := Link{A: a, B: b, line: r.line, source: r.text}
	for i, w := range words[2:] {
		if i > 0 {
			l.Words += " "
		}
		l.Words += w.text
		l.wordAt = append(l.wordAt, w.col)
	}
	r.plan.Links = append(r.plan.Links, l)
}

func (r *reader) role(at word, words []word, role Role) {
	if len(words) == 0 {
		r.wrong(at, "a name is missing", at.text+" NAME...")
	}
	for _, w := range words {
		i, ok := r.node(w)
		switch {
		case !ok:
		case r.plan.Nodes[i].Role != Unsaid && r.plan.Nodes[i].Role != role:
			r.wrong(w, w.text+" was said to be the other already", "one of host and router")
		default:
			r.plan.Nodes[i].Role = role
		}
	}
}

func (r *reader) port(at word, words []word) {
	if len(words) != 1 {
		r.wrong(at, "a port is one number", "port 6000")
		return
	}
	n, err := strconv.Atoi(words[0].text)
	if err != nil || n < 1 || n > lastPort {
		r.wrong(words[0], fmt.Sprintf("%q is not a port", words[0].text), "a port from 1 to 65535")
		return
	}
	r.plan.Port = n
}

// Format is the plan as text that Parse makes the same of.
func (p *Plan) Format() []byte {
	var b strings.Builder
	if p.About != "" {
		b.WriteString("# " + p.About + "\n")
	}
	if p.Port != 0 {
		fmt.Fprintf(&b, "port %d\n", p.Port)
	}
	for _, role := range []struct {
		word string
		role Role
	}{{"host", Host}, {"router", Router}} {
		var names []string
		for _, n := range p.Nodes {
			if n.Role == role.role {
				names = append(names, n.Name)
			}
		}
		if len(names) > 0 {
			b.WriteString(role.word + " " + strings.Join(names, " ") + "\n")
		}
	}
	for _, l := range p.Links {
		b.WriteString("link " + p.Nodes[l.A].Name + " " + p.Nodes[l.B].Name +
			prefixed(" ", l.Words) + "\n")
	}
	return []byte(b.String())
}
