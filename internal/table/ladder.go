package table

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/control"
)

// LadderConfig configures a ladder.
type LadderConfig struct {
	Width int  // width in columns; 0: 80
	Color bool // allows colored output
	Plain bool // draws only with ASCII characters
	Each  bool // draws a line for each segment
}

// Ladder draws a connection's segments between two lifelines. Time increases downward. One
// goroutine owns it.
type Ladder struct {
	cfg    LadderConfig
	put    func(string)
	begun  bool
	left   int // number of columns to the left of the lifelines
	inside int // number of columns between the lifelines
	margin int // number of columns to the right of the lifelines
	last   [2]seen
	shown  shownMoment
	train  train
}

type seen struct {
	ack    uint64
	window int
	any    bool
}

// shownMoment is the last state in the margin.
type shownMoment struct {
	state, recovery string
	cwnd, ssthresh  int
}

type train struct {
	n     int
	first control.TracedSegment
	last  control.TracedSegment
}

// These are widths of parts of a ladder.
const (
	minLadder    = 72
	maxLadder    = 132
	ladderTime   = 10  // for the time since the previous segment
	ladderWide   = 110 // minimum width for the time of day and a wider margin
	ladderClock  = 16
	ladderNarrow = 17 // width of the margin
	ladderBroad  = 36
)

// trainGap is the maximum time between segments that are drawn as one. If no segment comes for a
// time of pause or more, a line shows that time.
const (
	trainGap = 2 * time.Millisecond
	pause    = 150 * time.Millisecond
)

// NewLadder returns a ladder that passes its lines to put.
func NewLadder(cfg LadderConfig, put func(string)) *Ladder {
	cfg.Width = cmp.Or(cfg.Width, 80)
	cfg.Width = min(max(cfg.Width, minLadder), maxLadder)
	l := &Ladder{cfg: cfg, put: put, left: ladderTime, margin: ladderNarrow}
	if l.wide() {
		l.left, l.margin = l.left+ladderClock, ladderBroad
	}
	l.inside = cfg.Width - l.left - l.margin - 3
	return l
}

func (l *Ladder) wide() bool { return l.cfg.Width >= ladderWide }

// Add draws a segment. It may keep the segment until the next one shows whether the two are drawn
// as one.
func (l *Ladder) Add(s *control.TracedSegment) {
	if !l.begun {
		l.begun = true
		l.head(s)
	}
	if l.joins(s) {
		l.train.n++
		l.train.last = *s
		return
	}
	l.Flush()
	if l.alone(s) {
		l.row(s, s, 1)
		return
	}
	l.train = train{1, *s, *s}
}

// Flush draws the kept segments.
func (l *Ladder) Flush() {
	if t := l.train; t.n > 0 {
		l.train.n = 0
		l.row(&t.first, &t.last, t.n)
	}
}

// Waiting reports whether segments are kept.
func (l *Ladder) Waiting() bool { return l.train.n > 0 }

func (l *Ladder) alone(s *control.TracedSegment) bool {
	return l.cfg.Each || len(s.Marks) > 0 || s.Drop != "" || len(s.SACK) > 0 ||
		strings.ContainsAny(s.Flags, "SFRUEW") || s.ECN == "ce"
}

// joins reports whether a segment extends the kept ones: consecutive data, or another
// acknowledgment.
func (l *Ladder) joins(s *control.TracedSegment) bool {
	t := &l.train
	if t.n == 0 || l.alone(s) || s.Sent != t.last.Sent || s.Missed > 0 ||
		s.Since > trainGap || (s.Length == 0) != (t.last.Length == 0) ||
		s.Connection.Recovery != t.last.Connection.Recovery ||
		s.Connection.State != t.last.Connection.State {
		return false
	}
	if s.Length == 0 {
		return true
	}
	return s.Seq == t.last.Seq+uint64(t.last.Length) && s.Ack == t.last.Ack &&
		(s.Length == t.last.Length || s.Length < t.first.Length)
}

func (l *Ladder) head(s *control.TracedSegment) {
	left, right := s.Left, s.Right
	const over = 6 // number of columns by which a name extends beyond the lifelines
	gap := max(2, l.inside+2+2*over-utf8.RuneCountInString(left+right))
	l.put(strings.Repeat(" ", l.left-over) + l.paint(bold, left) + strings.Repeat(" ", gap) +
		l.paint(bold, right))
	l.put(strings.Repeat(" ", l.left) + l.glyph("│", "|") + strings.Repeat(" ", l.inside) +
		l.glyph("│", "|"))
}

func (l *Ladder) glyph(fine, plain string) string {
	if l.cfg.Plain {
		return plain
	}
	return fine
}

// These are the styles and colors, as parameters of an ANSI escape sequence (SGR).
const (
	bold    = "1"
	faint   = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

func (l *Ladder) paint(color, text string) string {
	if !l.cfg.Color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// row draws a segment, or a train of n segments from first to last.
func (l *Ladder) row(first, last *control.TracedSegment, n int) {
	line := l.glyph("│", "|")
	if first.Missed > 0 {
		missed := strconv.FormatUint(first.Missed, 10)
		l.between(missed + " segments missed: this reader was too slow")
	}
	if first.Since >= pause {
		l.between(l.glyph("· ", ". ") + l.spell(first.Since) + l.glyph(" ·", " ."))
	}
	left := right(l.since(first.Since), ladderTime-1) + " "
	if l.wide() {
		left = first.At.Format("15:04:05.000000") + " " + left
	}
	arrow := l.arrow(first, last, n)
	l.put(strings.TrimRight(l.paint(faint, left)+line+arrow+line+" "+l.connectionText(last), " "))
	end := 0
	if !last.Sent {
		end = 1
	}
	l.last[end] = seen{last.Ack, last.Window, true}
}

func (l *Ladder) between(text string) {
	line := l.glyph("┆", ":")
	if most := l.inside; utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	room := l.inside - utf8.RuneCountInString(text)
	before := max(0, room/2)
	l.put(strings.Repeat(" ", l.left) + line +
		strings.Repeat(" ", before) + l.paint(faint, text) +
		strings.Repeat(" ", max(0, room-before)) + line)
}

func right(text string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text))) + text
}

func (l *Ladder) since(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return "+" + l.spell(d)
}

// spell formats a duration in a suitable unit.
func (l *Ladder) spell(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e3, 'f', 0, 64) + l.glyph(" µs", " us")
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + " ms"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

// connectionText returns the text for the margin: the changes of the connection's state.
func (l *Ladder) connectionText(s *control.TracedSegment) string {
	c := &s.Connection
	if c.State == "" {
		return ""
	}
	now := shownMoment{
		state: c.State, recovery: c.Recovery, cwnd: segments(c.Cwnd, c.SendMSS),
		ssthresh: segments(c.Ssthresh, c.SendMSS),
	}
	was := l.shown
	l.shown = now
	var parts []string
	if now.state != was.state {
		parts = append(parts, l.paint(cyan, shortState(now.state)))
	}
	if now.recovery != was.recovery && (was.recovery != "" || now.recovery != "open") {
		color := green
		if now.recovery != "open" {
			color = magenta
		}
		parts = append(parts, l.paint(color, now.recovery))
	}
	if now.cwnd != was.cwnd && now.cwnd > 0 {
		parts = append(parts, "cwnd "+strconv.Itoa(now.cwnd))
	}
	if l.wide() {
		if now.ssthresh != was.ssthresh && now.ssthresh > 0 {
			parts = append(parts, "ssthresh "+strconv.Itoa(now.ssthresh))
		}
		if c.Pipe > 0 {
			flight := strconv.Itoa(segments(c.Pipe, c.SendMSS))
			parts = append(parts, l.paint(faint, "flight "+flight))
		}
	}
	return strings.Join(parts, " ")
}

func shortState(name string) string {
	if name == "ESTABLISHED" {
		return "ESTAB"
	}
	return strings.ReplaceAll(name, "_", "-")
}

func has(s *control.TracedSegment, marks ...control.Mark) bool {
	return slices.ContainsFunc(s.Marks, func(m control.Mark) bool {
		return slices.Contains(marks, m)
	})
}

// segments converts a window to segments, if their size is known.
func segments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}
