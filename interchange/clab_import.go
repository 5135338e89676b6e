package interchange

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// Limits of a topology file. The YAML parser handles files within them in reasonable time.
const (
	maxTokens = 100_000
	maxDepth  = 50
)

type lab struct {
	*importer
	anchors map[string]ast.Node
	ours    bool // Export wrote the file
}

func (m *importer) topology(text []byte) error {
	tokens := lexer.Tokenize(string(text))
	if err := m.flat(tokens); err != nil {
		return err
	}
	file, err := parser.Parse(tokens, 0)
	var known yaml.Error
	switch {
	case errors.As(err, &known):
		return m.fail(tokenPlace(known.GetToken()), "invalid YAML: %s", known.GetMessage())
	case err != nil:
		return m.fail(place{}, "invalid YAML: %v", err)
	}
	l := &lab{importer: m, anchors: map[string]ast.Node{}}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		for _, n := range ast.Filter(ast.AnchorType, doc.Body) {
			anchor := n.(*ast.AnchorNode)
			l.anchors[anchor.Name.GetToken().Value] = anchor.Value
		}
		topo := l.get(doc.Body, "topology")
		if topo == nil || len(l.pairs(l.get(topo, "nodes"))) == 0 {
			return m.fail(nodePlace(doc.Body), "not a containerlab topology: add `topology:` "+
				"with `nodes:` and `links:`")
		}
		l.nodes(topo)
		l.links(topo)
		for _, p := range l.pairs(doc.Body) {
			if key := l.text(p.Key); !l.ours && key != "name" && key != "topology" {
				m.note(nodePlace(p.Key), "%s is not carried over: links are UDP on this machine",
					key)
			}
		}
		return nil
	}
	return m.fail(place{}, "the file is empty: must be a containerlab topology")
}

// flat rejects files that are nested too deep or too long for the parser.
func (m *importer) flat(tokens token.Tokens) error {
	depth, dashes, line := 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type { //nolint:exhaustive // other tokens do not nest
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth || t.Position.Column > 1000 {
			return m.fail(tokenPlace(t), "nested too deeply: at most %d levels",
				maxDepth)
		}
		if i == maxTokens {
			return m.fail(tokenPlace(t), "too long: at most %d YAML tokens",
				maxTokens)
		}
	}
	return nil
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{t.Position.Line, max(1, t.Position.Column)}
}

func nodePlace(n ast.Node) place {
	if p := pairsOf(n); len(p) > 0 {
		return tokenPlace(p[0].Key.GetToken())
	}
	return tokenPlace(n.GetToken())
}

func pairsOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// value resolves anchors, aliases and tags.
func (l *lab) value(n ast.Node) ast.Node {
	for range maxDepth {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.TagNode:
			n = at.Value
		case *ast.AliasNode:
			n = l.anchors[at.Value.GetToken().Value]
		default:
			return n
		}
	}
	return nil
}

// pairs returns the keys and values of a mapping. Those merged by `<<` are at the end.
func (l *lab) pairs(n ast.Node) (list []*ast.MappingValueNode) {
	for _, p := range pairsOf(l.value(n)) {
		if _, merge := p.Key.(*ast.MergeKeyNode); !merge {
			list = append(list, p)
		}
	}
	for _, p := range pairsOf(l.value(n)) {
		if _, merge := p.Key.(*ast.MergeKeyNode); merge {
			list = append(list, pairsOf(l.value(p.Value))...)
		}
	}
	return list
}

// get returns the value of a key, or nil.
func (l *lab) get(n ast.Node, key string) ast.Node {
	for _, p := range l.pairs(n) {
		if l.text(p.Key) == key {
			return l.value(p.Value)
		}
	}
	return nil
}

// text returns a scalar as text, or "".
func (l *lab) text(n ast.Node) string {
	switch n := l.value(n).(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	return ""
}

func (l *lab) items(n ast.Node) []ast.Node {
	if s, ok := l.value(n).(*ast.SequenceNode); ok {
		return s.Values
	}
	return nil
}

// nodes reads the nodes. A node's kind may come from its group or from the defaults.
func (l *lab) nodes(topo ast.Node) {
	for _, p := range l.pairs(l.get(topo, "nodes")) {
		name, at := l.text(p.Key), nodePlace(p.Key)
		kind := l.text(l.get(p.Value, "kind"))
		if kind == "" {
			group := l.get(l.get(topo, "groups"), l.text(l.get(p.Value, "group")))
			kind = l.text(l.get(group, "kind"))
		}
		if kind == "" {
			kind = l.text(l.get(l.get(topo, "defaults"), "kind"))
		}
		role := map[string]topology.Role{
			routerRole: topology.Router, hostRole: topology.Host,
		}[l.text(l.get(l.get(p.Value, "labels"), roleLabel))]
		l.ours = l.ours || role != topology.Unsaid
		switch kind {
		case "bridge", "ovs-bridge":
			l.switchNode(at, name)
			continue
		case "host":
			l.note(at, "%s is this machine: it becomes a node; to reach the machine, write "+
				"`interface … tun:DEV` into its file", name)
		case "linux", "":
		default:
			l.note(at, "%s is of kind %s%s: it becomes a tidepool node", name, kind,
				diagnostic.DidYouMean(kind, []string{"linux", "bridge", "ovs-bridge"}))
		}
		l.node(at, name, role)
		var lost []string
		for _, key := range l.pairs(p.Value) {
			if k := l.text(key.Key); role == topology.Unsaid &&
				!slices.Contains([]string{"kind", "group", "labels"}, k) {
				lost = append(lost, k)
			}
		}
		if len(lost) > 0 {
			l.note(at, "%s of %s: not carried over; write what they configure into %s.lnx",
				strings.Join(lost, ", "), name, l.plan.Nodes[l.index[name]].Name)
		}
	}
}

// switchNode adds a router for a switch.
func (m *importer) switchNode(at place, name string) {
	m.note(at, "%s is a switch: it becomes a router, and each of its links a network of its own",
		name)
	m.node(at, name, topology.Router)
}

// links reads the links, in the brief or the extended form.
func (l *lab) links(topo ast.Node) {
	for _, item := range l.items(l.get(topo, "links")) {
		at := nodePlace(item)
		if kind := l.text(l.get(item, "type")); kind != "" && kind != "veth" &&
			kind != "veth-stitch" {
			l.note(at, "the link of type %s is left out: it does not join two nodes", kind)
			continue
		}
		ends := l.items(l.get(item, "endpoints"))
		if len(ends) != 2 {
			l.note(at, "the link is left out: it must have 2 ends, not %d; write "+
				"`endpoints: [\"A:eth1\", \"B:eth1\"]`", len(ends))
			continue
		}
		var names [2]string
		for i, e := range ends {
			names[i], _, _ = strings.Cut(l.text(e), ":")
			if len(pairsOf(l.value(e))) > 0 {
				names[i] = l.text(l.get(e, "node"))
			}
		}
		vars := l.get(item, "vars")
		link := l.addresses(at, item, vars, ends)
		link.Words = l.impair(at, l.text(l.get(vars, impairVar)))
		if !l.link(at, names[0], names[1], link) {
			continue
		}
		if mtu, err := strconv.Atoi(l.text(l.get(item, "mtu"))); err == nil {
			l.note(at, "mtu %d is not carried over: write `link IF mtu %d` into the files of %s "+
				"and %s", mtu, mtu, names[0], names[1])
		}
	}
}

// addresses reads the addresses of a link's ends. In the brief form they belong to the link, in the
// extended form to each end. In a file from Export, they are variables.
func (l *lab) addresses(at place, item, vars ast.Node, ends []ast.Node) (link topology.Link) {
	brief, brief6 := l.items(l.get(item, "ipv4")), l.items(l.get(item, "ipv6"))
	ours := l.items(l.get(vars, addrsVar))
	some := func(list []ast.Node, i int, e ast.Node, key string) string {
		if i < len(list) {
			return l.text(list[i])
		}
		return l.text(l.get(e, key))
	}
	for i, e := range ends {
		addr, addr6 := some(brief, i, e, "ipv4"), some(brief6, i, e, "ipv6")
		if i < len(ours) {
			addr, addr6 = "", ""
			for text := range strings.FieldsSeq(l.text(ours[i])) {
				switch {
				case !strings.Contains(text, ":"):
					addr = text
				case addr6 == "":
					addr6 = text
				default:
					l.note(at, "%s is not carried over: the end has %s; write `address IF %s` "+
						"into its node's file", text, addr6, text)
				}
			}
		}
		link.Addrs[i] = l.address(at, addr, 32)
		link.Addrs6[i] = l.addressOf(at, addr6, 64, true)
	}
	if a := link.Addrs6; a[0].Masked() != a[1].Masked() || a[0] == a[1] && a[0].IsValid() {
		l.note(at, "the link's IPv6 addresses are not two of one subnet: its ends get others")
		link.Addrs6 = [2]netip.Prefix{}
		l.plan.Family = topology.Dual
	}
	if link.Addrs6[0].IsValid() {
		l.plan.Family = topology.Dual
	}
	return link
}
