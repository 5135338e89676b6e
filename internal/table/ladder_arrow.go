package table

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/control"
)

// arrow returns the part between the lifelines: a line with a label and a tip. A dropped segment
// has a cross and the reason instead of the tip.
func (l *Ladder) arrow(first, last *control.TracedSegment, n int) string {
	dash := l.glyph("─", "-")
	shaft := dash
	if has(first, control.MarkRetransmission) {
		shaft = l.glyph("═", "=")
	}
	color := arrowColor(first)
	label := " " + l.fit(l.label(first, last, n), l.inside-6-l.dropRoom(first)) + " "
	room := l.inside - utf8.RuneCountInString(label) - l.dropRoom(first)
	if first.Drop != "" {
		return l.dropped(first, label, shaft, room)
	}
	if first.Sent {
		return l.paint(color, shaft+shaft+label+strings.Repeat(shaft, max(0, room-3))+
			l.glyph("▶", ">"))
	}
	return l.paint(color, l.glyph("◀", "<")+shaft+label+strings.Repeat(shaft, max(0, room-2)))
}

func (l *Ladder) dropRoom(s *control.TracedSegment) int {
	if s.Drop == "" {
		return 0
	}
	return min(utf8.RuneCountInString(s.Drop), l.inside/2) + 3
}

func (l *Ladder) dropped(s *control.TracedSegment, label, shaft string, room int) string {
	cross := l.glyph("✗", "X")
	why := s.Drop
	if most := l.inside / 2; utf8.RuneCountInString(why) > most {
		why = string([]rune(why)[:most])
	}
	line := strings.Repeat(shaft, max(0, room-2))
	if s.Sent {
		return l.paint(red, shaft+shaft+label+line+cross+" "+why+" ")
	}
	return l.paint(red, " "+why+" "+cross+line+label+shaft+shaft)
}

func arrowColor(s *control.TracedSegment) string {
	switch {
	case strings.Contains(s.Flags, "R"):
		return red
	case has(s, control.MarkRetransmission, control.MarkGap, control.MarkFillsGap):
		return yellow
	case has(s, control.MarkZeroWindow, control.MarkProbe):
		return magenta
	case strings.ContainsAny(s.Flags, "SF"):
		return cyan
	case has(s, control.MarkDupAck):
		return yellow
	case s.Length == 0:
		return faint
	}
	return ""
}

// part is a part of a label. The least important parts are omitted if they do not fit.
type part struct {
	text   string
	weight int // parts with a higher weight are kept longer
}

func (l *Ladder) label(first, last *control.TracedSegment, n int) []part {
	var parts []part
	add := func(weight int, format string, args ...any) {
		parts = append(parts, part{fmt.Sprintf(format, args...), weight})
	}
	if words := flagWordsOf(first); words != "" {
		add(9, "%s", words)
	}
	if n > 1 {
		add(9, "%d%s", n, l.glyph("×", "x"))
	}
	switch {
	case last.Length > 0:
		end := last.Seq + uint64(last.Length)
		add(10, "%d:%d", first.Seq, end)
		add(6, "(%d)", end-first.Seq)
	case strings.ContainsAny(first.Flags, "SFR"):
		add(7, "seq %d", first.Seq)
	case has(first, control.MarkKeepalive, control.MarkProbe):
		add(10, "seq %d", first.Seq)
	}
	before := l.last[0]
	if !last.Sent {
		before = l.last[1]
	}
	pure := last.Length == 0 && !strings.ContainsAny(last.Flags, "SFR")
	if strings.Contains(last.Flags, ".") && (pure || !before.any || before.ack != last.Ack) {
		add(8, "ack %d", last.Ack)
	}
	for _, b := range first.SACK {
		add(5, "sack %d:%d", b.Begin, b.End)
	}
	if !before.any || before.window != last.Window || strings.Contains(first.Flags, "S") {
		add(3, "win %d", last.Window)
	}
	if first.MSS > 0 {
		add(4, "mss %d", first.MSS)
	}
	if strings.Contains(first.Flags, "S") && first.Scale >= 0 {
		add(2, "scale %d", first.Scale)
	}
	if strings.Contains(first.Flags, "S") && first.TSVal > 0 {
		add(1, "ts")
	}
	if first.ECN == "ce" {
		add(7, "CE")
	}
	for _, m := range first.Marks {
		add(11, "%s", l.markWord(first, m))
	}
	return parts
}

// markWord returns a mark's text in a label.
func (l *Ladder) markWord(s *control.TracedSegment, m control.Mark) string {
	switch m {
	case control.MarkRetransmission:
		return l.glyph("↻ retransmitted", "AGAIN")
	case control.MarkDupAck:
		return "dup #" + strconv.Itoa(s.DupAck)
	case control.MarkZeroWindow:
		return "ZERO WINDOW"
	case control.MarkDSACK:
		return "d-sack"
	case control.MarkECE:
		return "ECE"
	case control.MarkCWR:
		return "CWR"
	case control.MarkGap, control.MarkFillsGap, control.MarkWindow, control.MarkProbe,
		control.MarkKeepalive:
	}
	return string(m)
}

// flagWordsOf returns a segment's flags, except for the acknowledgment, which is shown with its
// number.
func flagWordsOf(s *control.TracedSegment) string {
	var words []string
	for i, letter := range "SFRPU" {
		if strings.ContainsRune(s.Flags, letter) {
			words = append(words, []string{"SYN", "FIN", "RST", "PSH", "URG"}[i])
		}
	}
	return strings.Join(words, " ")
}

func (l *Ladder) fit(parts []part, room int) string {
	for {
		least, length := -1, -1
		for i, p := range parts {
			length += 1 + utf8.RuneCountInString(p.text)
			if least < 0 || p.weight <= parts[least].weight {
				least = i
			}
		}
		if length <= room || len(parts) <= 1 {
			break
		}
		parts = append(parts[:least:least], parts[least+1:]...)
	}
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.text
	}
	return strings.Join(texts, " ")
}
