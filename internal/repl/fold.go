package repl

import "strings"

// columns returns an upper bound of a text's width on a terminal. Characters below U+1100 take one
// column, all others up to two.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

func clip(text string, width int) string {
	for i, r := range text {
		if width -= runeColumns(r); width < 0 {
			return text[:i]
		}
	}
	return text
}

// textWidth is the maximum line length for a terminal of 80 columns.
const textWidth = 78

// wrapped breaks a line at spaces and indents all lines but the first.
func wrapped(text, indent string) string { return wrappedTo(textWidth, text, indent) }

func wrappedTo(width int, text, indent string) string {
	var b strings.Builder
	for len(text) > width {
		at := strings.LastIndexByte(text[:width+1], ' ')
		if at <= len(indent) {
			break
		}
		b.WriteString(strings.TrimRight(text[:at], " ") + "\n")
		text = indent + text[at+1:]
	}
	b.WriteString(text + "\n")
	return b.String()
}

// fold breaks lines that are wider than the terminal. If width is 0, the output is not a terminal.
func fold(width int, text string) string { return foldUnder(width, "  ", text) }

func foldUnder(width int, indent, text string) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columns(line) > width {
			lines[i] = strings.TrimSuffix(wrappedTo(width, line, indent), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// usageLines returns a command's usage. It breaks lines only between flags.
func usageLines(width int, use string) string {
	const indent = "       "
	parts := strings.SplitAfter("usage: "+use, "] ")
	var b strings.Builder
	at := 0
	for _, part := range parts {
		if at > 0 && at+len(strings.TrimRight(part, " ")) > width {
			b.WriteString("\n" + indent)
			at = len(indent)
		}
		b.WriteString(part)
		at += len(part)
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
