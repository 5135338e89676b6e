package repl

import (
	"strings"
	"unicode/utf8"
)

// frame is a terminal's whole screen, painted again and again, beside what stood there before.
type frame struct {
	screen        *screen
	width, height int
	last          []string
}

// What a terminal takes to show its other screen, and the first again (xterm's ctlseqs).
const (
	otherScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	firstScreen = "\x1b[?25h\x1b[?1049l"
	topLeft     = "\x1b[H"
	eraseRight  = "\x1b[K"
	eraseBelow  = "\x1b[J"
	reverse     = "\x1b[7m"
	upright     = "\x1b[0m"
)

// begin takes the screen. What others write waits.
func (f *frame) begin() { f.screen.hold(otherScreen) }

// end gives it back.
func (f *frame) end() { f.screen.release(firstScreen) }

// paint shows a title and a text, as far as there is room; what differs from the last is reversed.
func (f *frame) paint(title, text string) {
	room := max(1, f.height-3)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, f.broken(strings.ReplaceAll(line, "\t", "    "))...)
	}
	if len(lines) > room {
		lines = lines[:room]
	}
	var b strings.Builder
	b.WriteString(topLeft + leading(title, f.width) + eraseRight + "\r\n" + eraseRight + "\r\n")
	for i, line := range lines {
		was := line
		if f.last != nil {
			was = ""
			if i < len(f.last) {
				was = f.last[i]
			}
		}
		b.WriteString(differing(was, line) + eraseRight + "\r\n")
	}
	b.WriteString(eraseBelow)
	f.last = lines
	f.screen.paint(b.String())
}

// broken is a line in pieces that fit.
func (f *frame) broken(line string) (pieces []string) {
	for utf8.RuneCountInString(line) > f.width {
		piece := leading(line, f.width)
		pieces = append(pieces, piece)
		line = line[len(piece):]
	}
	return append(pieces, line)
}

// leading is the first characters of a text.
func leading(text string, width int) string {
	for i := range text {
		if width == 0 {
			return text[:i]
		}
		width--
	}
	return text
}

// differing is a line whose characters that are not those of another are reversed.
func differing(was, line string) string {
	old := []rune(was)
	var b strings.Builder
	on := false
	i := 0
	for _, r := range line {
		if changed := i >= len(old) || old[i] != r; changed != on {
			on = changed
			b.WriteString(map[bool]string{true: reverse, false: upright}[on])
		}
		b.WriteRune(r)
		i++
	}
	if on {
		b.WriteString(upright)
	}
	return b.String()
}
