package plan

import (
	"strconv"
	"strings"
	"unicode"
)

// flowStyle writes a node in one line.
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

// scalarText writes a scalar, in quotes where YAML or a reader would take it for something
// else without.
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
	return doubleQuoted(text)
}

// doubleQuoted writes a text with YAML's escapes.
func doubleQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r) || r == ' ':
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	b.WriteByte('"')
	return b.String()
}

func hex(r rune, digits int) string {
	const base = 16
	text := strconv.FormatInt(int64(r), base)
	return strings.Repeat("0", digits-len(text)) + text
}
