package repl

import (
	"strings"
)

// columns is how many a terminal gives a text, at the most: it knows of characters of two columns
// only that none of them is below U+1100.
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

// textWidth is what a line of text has at the most, so that it fits a terminal of 80.
const textWidth = 78

// wrapped breaks a line at blanks; what follows the first has an indent.
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

// fold breaks the lines that a terminal of that width would break anywhere; 0: it is none.
func fold(width int, text string) string { return foldUnder(width, "  ", text) }

// foldUnder is fold with an indent for what follows.
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

// usageLines are a command's usage line, broken between its flags.
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
