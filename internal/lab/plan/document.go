package plan

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

const (
	maxFileBytes = 1 << 20
	maxDepth     = 32
	maxNodes     = 100_000
	maxTokens    = 4 * maxNodes
	maxKeys      = 2000 // limit per mapping: the parser's time is quadratic
)

type source struct {
	name  string
	flag  bool // the source is an argument of a command, on one line
	lines []string
	shift int // column of the value in the parsed text minus its column in the flag
}

// place is a position in a source. Line and col count from 1.
type place struct {
	src              *source
	line, col, width int
}

type kind uint8

const (
	scalar kind = iota
	list
	mapping
)

// node is a part of a document. YAML numbers and booleans are stored as texts, because the meaning
// of a text depends on its key.
type node struct {
	place
	kind   kind
	text   string // text of a scalar
	quoted bool
	items  []*node // items of a list
	pairs  []pair  // pairs of a mapping, in the order of the file
}

type pair struct{ key, value *node }

func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

func (n *node) empty() bool { return n.kind == scalar && n.text == "" && !n.quoted }

func (n *node) plain(text string) bool { return n != nil && n.kind == scalar && n.text == text }

// builder makes nodes from the YAML parser's nodes and rejects unsupported syntax.
type builder struct {
	report *report
	src    *source
	nodes  int
}

// read parses the text of a source. It returns nil if it has reported errors.
func read(r *report, src *source, text string) *node {
	b, before := &builder{report: r, src: src}, len(r.errs)
	switch {
	case len(text) > maxFileBytes:
		r.add(place{src: src}, "too long", "at most 1 MiB")
		return nil
	case !utf8.ValidString(text):
		r.add(b.invalid(), "not UTF-8", "UTF-8 text")
		return nil
	}
	tokens := lexer.Tokenize(text)
	if !b.flat(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		b.syntax(err)
		return nil
	}
	var root *node
	for i, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			b.report.add(b.at(file.Docs[i].Start), "the file has a second document",
				"one experiment per file")
			return nil
		default:
			root = b.node(doc.Body, 0)
		}
	}
	if root == nil && len(r.errs) == before {
		r.add(place{src: src}, "the file is empty", "an experiment")
	}
	if len(r.errs) > before {
		return nil
	}
	return root
}

// invalid returns the place of the first byte that is not UTF-8.
func (b *builder) invalid() place {
	for i, line := range b.src.lines {
		for at, r := range line {
			if r == utf8.RuneError && strings.HasPrefix(line[at:], "\xef\xbf\xbd") {
				continue
			}
			if r == utf8.RuneError {
				return place{b.src, i + 1, utf8.RuneCountInString(line[:at]) + 1, 1}
			}
		}
	}
	return place{src: b.src}
}

// flat rejects nesting so deep that the parser could overflow its stack, and unsupported syntax
// such as anchors and tags.
func (b *builder) flat(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		b.report.add(place{src: b.src}, "too many values", strconv.Itoa(maxNodes)+" at most")
		return false
	}
	depth, entries := 0, 0
	var wide mappings
	for i, t := range tokens {
		if t.Type != token.SequenceEntryType {
			entries = 0
		}
		refused := ""
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			entries++
			wide.leave(t.Position.Column)
		case token.MappingValueType:
			if i > 0 && wide.key(tokens[i-1].Position.Column) > maxKeys {
				b.report.add(b.at(tokens[i-1]), "too many keys", strconv.Itoa(maxKeys)+" at most")
				return false
			}
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			refused = "anchors, aliases and merge keys"
		case token.TagType:
			refused = "tags"
		case token.MappingKeyType:
			refused = "complex keys"
		case token.DirectiveType:
			refused = "directives"
		default:
		}
		if refused != "" {
			b.report.add(b.at(t), refused+" are not supported", "the value written out")
			return false
		}
		if depth > maxDepth || entries > maxDepth {
			b.report.add(b.at(t), "nested too deeply", strconv.Itoa(maxDepth)+" levels at most")
			return false
		}
	}
	return true
}

// mappings has the column and the number of keys of each mapping around a token, outermost first.
type mappings []struct{ column, keys int }

// leave removes the mappings that end before a token in this column.
func (m *mappings) leave(column int) {
	for len(*m) > 0 && (*m)[len(*m)-1].column > column {
		*m = (*m)[:len(*m)-1]
	}
}

// key counts a key, and returns the number of keys in the key's mapping so far.
func (m *mappings) key(column int) int {
	m.leave(column)
	if len(*m) == 0 || (*m)[len(*m)-1].column < column {
		*m = append(*m, struct{ column, keys int }{column, 0})
	}
	top := &(*m)[len(*m)-1]
	top.keys++
	return top.keys
}

func (b *builder) syntax(err error) {
	var known yaml.Error
	if !errors.As(err, &known) {
		b.report.add(place{src: b.src}, "invalid YAML: "+err.Error(), "")
		return
	}
	msg := strings.ReplaceAll(diagnostic.Visible(known.GetMessage()), "\t", `\t`)
	b.report.add(b.at(known.GetToken()), "invalid YAML: "+msg, "")
}

func (b *builder) at(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{src: b.src}
	}
	width := utf8.RuneCountInString(t.Value)
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		width = utf8.RuneCountInString(strings.TrimSpace(t.Origin))
	}
	return place{b.src, t.Position.Line, max(1, t.Position.Column) - b.src.shift, width}
}

func (b *builder) node(n ast.Node, depth int) *node {
	if b.nodes++; b.nodes > maxNodes {
		b.report.add(b.at(n.GetToken()), "too many values", strconv.Itoa(maxNodes)+" at most")
		return nil
	}
	if depth > maxDepth {
		b.report.add(b.at(n.GetToken()), "nested too deeply",
			strconv.Itoa(maxDepth)+" levels at most")
		return nil
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.mapping(n, n.Values, depth)
	case *ast.MappingValueNode:
		return b.mapping(n, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := &node{place: b.at(n.GetToken()), kind: list}
		for _, v := range n.Values {
			item := b.node(v, depth+1)
			if item == nil {
				return nil
			}
			out.items = append(out.items, item)
		}
		return out
	}
	return b.scalar(n)
}

func (b *builder) mapping(n ast.Node, values []*ast.MappingValueNode, depth int) *node {
	out := &node{place: b.at(n.GetToken()), kind: mapping}
	if len(values) > 0 && n.GetToken().Type != token.MappingStartType {
		out.place = b.at(values[0].Key.GetToken())
	}
	seen := map[string]place{}
	for _, v := range values {
		key := b.scalar(v.Key)
		if key == nil {
			return nil
		}
		if before, again := seen[key.text]; again {
			b.report.add(key.place, diagnostic.Quote(key.text)+" was already set on line "+
				strconv.Itoa(before.line), "each key once")
			continue
		}
		seen[key.text] = key.place
		value := b.node(v.Value, depth+1)
		if value == nil {
			return nil
		}
		if value.empty() { // an empty value has no position
			value.line, value.col, value.width = key.line, key.col, key.width
		}
		out.pairs = append(out.pairs, pair{key, value})
	}
	return out
}

func (b *builder) scalar(n ast.Node) *node {
	t := n.GetToken()
	out := &node{place: b.at(t)}
	switch n := n.(type) {
	case *ast.LiteralNode:
		out.text, out.quoted = n.Value.Value, true
	case *ast.NullNode:
		if t.Type != token.ImplicitNullType {
			out.text = t.Value
		}
	case *ast.StringNode:
		out.text = t.Value
		out.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.text = t.Value
	default:
		b.report.add(out.place,
			diagnostic.Quote(t.Value)+" is YAML that experiments do not support", "")
		return nil
	}
	return out
}

func fileSource(name, text string) *source {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return &source{name: name, lines: lines}
}
