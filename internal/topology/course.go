package topology

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// The course has its own .net files, which its program net2lnx reads:
//
//	node A localhost   a node and the host that it runs on
//	A <-> B            a link
//
// Like net2lnx, this package makes files of the 2018 grammar from them, with one UDP port for each
// node and two addresses for each link, from 192.168.0.1 on. So the course's own nodes can take
// part in the network.

// courseArrow stands between the two nodes of a link.
const courseArrow = "<->"

// courseDefaultPort is the first UDP port of net2lnx.
const courseDefaultPort = 5000

// courseNode reads `node NAME HOST`.
func (r *reader) courseNode(at lnx.Word, words []lnx.Word) {
	if len(words) != 2 {
		r.text.Wrong(at, "the line must have a node's name and a host", "node A localhost")
		return
	}
	if len(r.plan.Machines) > 0 {
		r.placeNode(words)
		return
	}
	host := words[1].Text
	if a, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !a.Is4()) {
		r.text.Wrong(words[1], diagnostic.Quote(host)+" is not a host",
			"localhost, an IPv4 address, or a line `host "+host+" ssh USER@MACHINE` above")
		r.node(words[0]) // other lines may contain the node's name
		return
	}
	r.course(at)
	if _, again := r.index[words[0].Text]; again {
		r.text.Wrong(words[0], words[0].Text+" is already a node", "another name")
		return
	}
	if i, ok := r.node(words[0]); ok {
		r.plan.Nodes[i].host = host
	}
}

// courseLink reads `A <-> B`.
func (r *reader) courseLink(words []lnx.Word) {
	r.course(words[1])
	if len(words) != 3 {
		r.text.Wrong(words[1], "the link must have two ends", "A <-> B")
		return
	}
	for _, w := range []lnx.Word{words[0], words[2]} {
		if _, ok := r.index[w.Text]; !ok {
			r.text.Wrong(w, diagnostic.Quote(w.Text)+" is not a node",
				"a line `node "+w.Text+" localhost` above")
			return
		}
	}
	r.addLink(words[0], words[2], "")
}

// course records that the file uses the course's syntax, and native that it uses tidepool's.
func (r *reader) course(at lnx.Word) { r.form(at, true) }
func (r *reader) native(at lnx.Word) { r.form(at, false) }

func (r *reader) form(at lnx.Word, course bool) {
	switch {
	case r.formAt.Text == "":
		r.formAt, r.plan.course = at, course
	case course != r.plan.course:
		r.text.Wrong(at, fmt.Sprintf("line %d uses the other .net syntax", r.formAt.Pos.Line),
			"either `link A B`, or `node A localhost` and `A <-> B`")
	}
}

// courseFiles makes the files that net2lnx would make.
func (p *Plan) courseFiles() []File {
	texts := make([]strings.Builder, len(p.Nodes))
	udp := func(i int) string { return fmt.Sprintf("%s %d", p.courseHost(i), p.port()+i) }
	for i := range texts {
		texts[i].WriteString(udp(i) + "\n")
	}
	for i, l := range p.Links {
		a, b := courseAddrs(i)
		fmt.Fprintf(&texts[l.A], "%s %v %v\n", udp(l.B), a, b)
		fmt.Fprintf(&texts[l.B], "%s %v %v\n", udp(l.A), b, a)
	}
	files := make([]File, len(p.Nodes))
	for i, n := range p.Nodes {
		files[i] = File{Name: n.Name, Text: []byte(texts[i].String())}
	}
	return files
}

// courseAddrs returns the addresses of the two ends of a link.
func courseAddrs(link int) (a, b netip.Addr) {
	n := 192<<24 | 168<<16 + 1 + 2*uint32(link)
	a = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return a, a.Next()
}

// courseHost returns the host of a node's only UDP socket. If any link of the node leaves the
// machine, all its links use the machine's address.
func (p *Plan) courseHost(node int) string {
	for _, l := range p.Links {
		other := l.A + l.B - node
		if (l.A == node || l.B == node) && p.MachineOf(node) != p.MachineOf(other) {
			return p.udpHost(node, other)
		}
	}
	if p.MachineOf(node) != nil {
		return localhost
	}
	return p.Nodes[node].host
}

// formatCourse is like Format, in the course's syntax.
func (p *Plan) formatCourse(b *strings.Builder) {
	for _, n := range p.Nodes {
		fmt.Fprintf(b, "node %s %s\n", n.Name, n.host)
	}
	for _, l := range p.Links {
		fmt.Fprintf(b, "%s %s %s\n", p.Nodes[l.A].Name, courseArrow, p.Nodes[l.B].Name)
	}
}
