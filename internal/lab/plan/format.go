package plan

import (
	"strconv"
	"strings"
	"unicode"
)

// maxFlowLine limits the length of a line in YAML's flow style. Longer values are in block style.
const maxFlowLine = 96

// block writes a mapping or a list in block style with an indentation.
func block(b *strings.Builder, n *node, indent int) {
	const step = 2
	margin := strings.Repeat(" ", indent)
	for _, p := range n.pairs {
		b.WriteString(margin + scalarText(p.key, false) + ":")
		if p.value.kind == scalar {
			b.WriteString(" " + scalarText(p.value, false) + "\n")
			continue
		}
		if line, short := oneLine(p.value, indent+len(p.key.text)+step); short && indent > 0 {
			b.WriteString(" " + line + "\n")
			continue
		}
		b.WriteByte('\n')
		block(b, p.value, indent+step)
	}
	for _, item := range n.items {
		if item.kind == scalar {
			b.WriteString(margin + "- " + scalarText(item, false) + "\n")
			continue
		}
		if line, short := oneLine(item, indent+step); short || item.kind == list {
			b.WriteString(margin + "- " + line + "\n")
			continue
		}
		var inner strings.Builder
		block(&inner, item, indent+step)
		b.WriteString(margin + "- " + inner.String()[indent+step:])
	}
}

// oneLine returns a value in flow style, and reports whether it fits in a line.
func oneLine(n *node, indent int) (line string, short bool) {
	var b strings.Builder
	flowStyle(&b, n)
	return b.String(), indent+b.Len() <= maxFlowLine || len(n.items)+len(n.pairs) == 0
}

func flowStyle(b *strings.Builder, n *node) {
	switch n.kind {
	case scalar:
		b.WriteString(scalarText(n, true))
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			flowStyle(b, item)
		}
		b.WriteByte(']')
	case mapping:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(scalarText(p.key, true) + ": ")
			flowStyle(b, p.value)
		}
		b.WriteByte('}')
	}
}

// scalarText writes a scalar. It adds quotes if YAML or a reader would misread it without them.
func scalarText(n *node, flow bool) string {
	text := n.text
	if n.empty() {
		return "~"
	}
	plain := text != "" && text == strings.TrimSpace(text) && !strings.Contains(text, ": ") &&
		!strings.Contains(text, " #") && !strings.HasSuffix(text, ":") &&
		!strings.ContainsAny(text[:1], "-?:,[]{}#&*!|>'\"%@`=<~.+")
	if flow && strings.ContainsAny(text, ",[]{}:") {
		plain = false
	}
	for _, r := range text {
		plain = plain && unicode.IsPrint(r)
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}
