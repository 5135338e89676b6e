package repl

import "strings"

// frame repaints a terminal's whole screen. At the end it restores the previous screen.
type frame struct {
	screen        *screen
	width, height int
	last          []string
}

// These control sequences switch screens, erase, and reverse colors (xterm's ctlseqs).
const (
	otherScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	firstScreen = "\x1b[?25h\x1b[?1049l"
	topLeft     = "\x1b[H"
	eraseRight  = "\x1b[K"
	eraseBelow  = "\x1b[J"
	reverse     = "\x1b[7m"
	upright     = "\x1b[0m"
)

func (f *frame) resize(width, height int) {
	width = max(1, width)
	if width != f.width || height != f.height {
		f.width, f.height, f.last = width, height, nil
	}
}

func (f *frame) begin() { f.screen.hold(otherScreen) }

func (f *frame) end() { f.screen.release(firstScreen) }

// paint shows a title and as much of a text as fits. Characters that differ from the previous text
// are in reverse video.
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
	b.WriteString(topLeft + clip(title, f.width) + eraseRight + "\r\n" + eraseRight + "\r\n")
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

func (f *frame) broken(line string) (pieces []string) {
	for columns(line) > f.width {
		piece := clip(line, f.width)
		if piece == "" {
			break // the character is wider than the screen
		}
		pieces = append(pieces, piece)
		line = line[len(piece):]
	}
	return append(pieces, line)
}

// differing returns line with the characters that differ from was in reverse video.
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
