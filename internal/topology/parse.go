package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Extension is the extension of plans.
const Extension = ".net"

// These are the directives of plans.
var directives = []string{
	"link", "host", "router", "port", "family", "dns", "nat", "forward", "node",
}

// maxImpairment limits the arguments of a link, in characters, so that they fit into a line of an
// .lnx file.
const maxImpairment = 400

type reader struct {
	text   *lnx.Text
	plan   *Plan
	index  map[string]int
	nodes  []lnx.Word // first mention of each node
	formAt lnx.Word   // first word that only one of the two syntaxes has
	check  func(words string) *lnx.Error
}

// Parse reads a plan of one directive on each line; # begins a comment:
//
//	link A B [WORD...]   two nodes and a link, with its impairments in the keywords of `impair`
//	host NAME...         nodes that never forward, whatever links they have
//	router NAME...       nodes that forward
//	port N               the first UDP port
//	family 4|6|dual      the versions of IP on the links
//	nat ROUTER B [TYPE]  the router translates what it forwards to B, as with `nat on`
//	forward ROUTER PROTOCOL PORT B:PORT  a port forward of the router's NATs to B
//	dns NODE [ZONE]      the node that serves the names of all nodes; or dns off
//
// or the course's form, in which all nodes forward:
//
//	node A localhost     a node and the host that it runs on
//	A <-> B              a link
//
// In either form, nodes may run on other machines:
//
//	host NAME ssh DESTINATION [address ADDRESS]
//	node A NAME
//
// A node with several links is a router unless a host line names it. A node with one link is a host
// unless a router line names it. This package does not know the arguments of `impair`: check
// returns the error in them, with a position that counts from the first argument. A nil check
// accepts everything. The returned error is an lnx.Errors with all errors of the file.
func Parse(file string, text []byte, check func(words string) *lnx.Error) (*Plan, error) {
	r := &reader{text: lnx.Cut(file, text), plan: &Plan{}, index: map[string]int{}, check: check}
	for _, words := range r.text.Lines {
		r.directive(words)
	}
	if r.text.Err() == nil {
		for _, f := range r.plan.faults() {
			r.fault(f)
		}
		r.natFaults()
		for _, m := range r.plan.Machines {
			if !slices.ContainsFunc(r.plan.Nodes, func(n Node) bool { return n.host == m.Name }) {
				r.text.Wrong(m.at, "host "+m.Name+" has no node",
					"a line `node NAME "+m.Name+"`, or no line for the host")
			}
		}
	}
	if err := r.text.Err(); err != nil {
		return nil, err
	}
	return r.plan, nil
}

// fault reports an error of the plan as a whole at the line that causes it.
func (r *reader) fault(f fault) {
	switch {
	case len(r.plan.Links) == 0 && f.node < 0:
		r.text.Wrong(lnx.Word{}, "the file has no link", "link A B")
	case f.node >= 0:
		want := "link %s %s"
		if r.plan.course {
			want = "%s <-> %s"
		}
		all := append(slices.Clip(r.plan.Nodes), Node{Name: "OTHER"})
		want = fmt.Sprintf(want, all[f.node].Name, all[(f.node+1)%2].Name)
		r.text.Wrong(r.nodes[f.node], f.msg, want)
	case f.ports:
		r.text.Wrong(r.plan.portAt, f.msg, "a smaller first port")
	default:
		r.text.Wrong(lnx.Word{}, f.msg, "a smaller network")
	}
}

func (r *reader) directive(words []lnx.Word) {
	switch {
	case len(words) > 1 && words[1].Text == courseArrow:
		r.courseLink(words)
		return
	case isMachine(words):
		r.machine(words)
		return
	}
	rest := words[1:]
	switch words[0].Text {
	case "node":
		r.courseNode(words[0], rest)
	case "link":
		r.native(words[0])
		r.link(words[0], rest)
	case "host":
		r.native(words[0])
		r.role(words[0], rest, Host)
	case "router":
		r.native(words[0])
		r.role(words[0], rest, Router)
	case "port":
		r.firstPort(words[0], rest)
	case "family":
		r.native(words[0])
		r.family(words[0], rest)
	case "nat":
		r.native(words[0])
		r.nat(words[0], rest)
	case "forward":
		r.native(words[0])
		r.forward(words[0], rest)
	case "dns":
		r.native(words[0])
		r.dns(words[0], rest)
	default:
		r.text.Wrong(words[0], diagnostic.Quote(words[0].Text)+fmt.Sprintf(" is not a directive%s",
			diagnostic.DidYouMean(words[0].Text, directives)), diagnostic.OneOf(directives))
	}
}

// node finds a node by its name, or adds it. It returns false if the name is invalid.
func (r *reader) node(w lnx.Word) (int, bool) {
	i, ok := r.index[w.Text]
	if ok {
		return i, true
	}
	if !IsName(w.Text) {
		r.text.Wrong(w, diagnostic.Quote(w.Text)+" cannot name a node",
			fmt.Sprintf("up to %d letters, digits, dots, - and _", LongestName))
		return 0, false
	}
	r.plan.Nodes = append(r.plan.Nodes, Node{Name: w.Text})
	r.nodes = append(r.nodes, w)
	r.index[w.Text] = len(r.plan.Nodes) - 1
	return r.index[w.Text], true
}

// LongestName limits the name of a node in characters, because it becomes part of file names.
const LongestName = 64

// IsName reports whether a text can be the name of a node. It may contain letters, digits and _,
// and after the first character also - and dots.
func IsName(text string) bool {
	for n, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if n >= LongestName || !letter && (n == 0 || c != '-' && c != '.') {
			return false
		}
	}
	return text != ""
}

func (r *reader) link(at lnx.Word, words []lnx.Word) {
	if len(words) < 2 {
		r.text.Wrong(at, "the link must have two ends", "link A B [delay 20ms loss 1%]")
		return
	}
	r.words(words[2:])
	r.addLink(words[0], words[1], joined(words[2:]))
}

func (r *reader) addLink(one, other lnx.Word, words string) {
	a, first := r.node(one)
	b, second := r.node(other)
	switch {
	case !first || !second:
		return
	case a == b:
		r.text.Wrong(other, one.Text+" is linked to itself", "another node")
		return
	}
	r.plan.Links = append(r.plan.Links, Link{A: a, B: b, Words: words})
}

// words checks the impairments of a link.
func (r *reader) words(words []lnx.Word) {
	text := joined(words)
	if n := utf8.RuneCountInString(text); n > maxImpairment {
		r.text.Wrong(words[0], fmt.Sprintf("the link's arguments have %d characters", n),
			fmt.Sprintf("at most %d", maxImpairment))
		return
	}
	if len(words) == 0 || r.check == nil {
		return
	}
	e := r.check(text)
	if e == nil {
		return
	}
	last := words[len(words)-1]
	place := lnx.Word{Pos: last.Pos} // position after the last word
	place.Pos.Col += utf8.RuneCountInString(last.Text)
	before := []rune(text)
	i := strings.Count(string(before[:min(max(0, e.Col-1), len(before))]), " ")
	if e.Text != "" && i < len(words) {
		place = lnx.Word{Text: e.Text, Pos: words[i].Pos}
	}
	r.text.Wrong(place, e.Msg, e.Want)
}

func joined(words []lnx.Word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.Text
	}
	return strings.Join(list, " ")
}

func (r *reader) role(at lnx.Word, words []lnx.Word, role Role) {
	if len(words) == 0 {
		r.text.Wrong(at, "a name is missing", at.Text+" NAME...")
	}
	for _, w := range words {
		i, ok := r.node(w)
		switch {
		case !ok:
		case r.plan.Nodes[i].Role != Unsaid && r.plan.Nodes[i].Role != role:
			r.text.Wrong(w, w.Text+" has the other role in an earlier line",
				"either host or router")
		default:
			r.plan.Nodes[i].Role = role
		}
	}
}

// firstPort reads the number of the first port.
func (r *reader) firstPort(at lnx.Word, words []lnx.Word) {
	if len(words) != 1 {
		r.text.Wrong(at, "the line must have one port number", "port 6000")
		return
	}
	n, err := strconv.ParseUint(words[0].Text, 10, 16)
	switch {
	case err != nil || n == 0:
		r.text.Wrong(words[0], diagnostic.Quote(words[0].Text)+" is not a port",
			"a port from 1 to 65535")
	case r.plan.portAt.Text != "":
		r.text.Wrong(at, fmt.Sprintf("the first port is already set on line %d",
			r.plan.portAt.Pos.Line),
			"only one such line")
	default:
		r.plan.Port, r.plan.portAt = int(n), words[0]
		r.plan.portSource = r.text.Source(at.Pos.Line)
	}
}

func (r *reader) family(at lnx.Word, words []lnx.Word) {
	if len(words) != 1 {
		r.text.Wrong(at, "the line must have one address family", "family 6")
		return
	}
	var err error
	if r.plan.Family, err = ParseFamily(words[0].Text); err != nil {
		r.text.Wrong(words[0], diagnostic.Quote(words[0].Text)+" is not an address family",
			"4, 6 or dual")
	}
}

// Format returns the plan as text. Parse makes the same plan from it, without the links' addresses.
func (p *Plan) Format() []byte {
	var b strings.Builder
	if p.About != "" {
		b.WriteString("# " + p.About + "\n")
	}
	if p.Port != 0 {
		fmt.Fprintf(&b, "port %d\n", p.Port)
	}
	if p.Family != IPv4 {
		fmt.Fprintf(&b, "family %s\n", Families[p.Family])
	}
	for _, m := range p.Machines {
		b.WriteString("host " + m.Name + " ssh " + m.SSH)
		if m.Address.IsValid() {
			b.WriteString(" address " + m.Address.String())
		}
		b.WriteString("\n")
	}
	if p.NamesAt != "" {
		b.WriteString("dns " + p.NamesAt + prefixed(" ", p.Zone) + "\n")
	}
	if p.course {
		p.formatCourse(&b)
		return []byte(b.String())
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
	for _, n := range p.Nodes {
		if n.host != "" {
			b.WriteString("node " + n.Name + " " + n.host + "\n")
		}
	}
	for _, l := range p.Links {
		b.WriteString("link " + p.Nodes[l.A].Name + " " + p.Nodes[l.B].Name +
			prefixed(" ", l.Words) + "\n")
	}
	for _, n := range p.NATs {
		b.WriteString("nat " + p.Nodes[n.Router].Name + " " + p.Nodes[n.Outside].Name +
			prefixed(" ", n.Words) + "\n")
	}
	for _, f := range p.Forwards {
		fmt.Fprintf(&b, "forward %s %s %s:%s\n", p.Nodes[f.Router].Name, f.Words,
			p.Nodes[f.To].Name, f.Port)
	}
	return []byte(b.String())
}
