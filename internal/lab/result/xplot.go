package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// xplot writes commands for Shepard's xplot, in tcptrace's colors.
type xplot struct {
	text  []byte
	color string
}

// Xplot returns the time-sequence graph of a flow as a file for xplot, and for programs that read
// tcptrace's files. Each segment is an interval between arrows, retransmissions are red with an R,
// acknowledged data is a green staircase with a tick for each duplicate, the advertised window is
// yellow, and selective acknowledgments are purple. Xplot returns nil if the flow has no segments.
func Xplot(title string, f *FlowRecord) []byte {
	if len(f.Segments) == 0 {
		return nil
	}
	y := "unsigned" // unsigned numbers have 32 bits, as in tcptrace
	for i := range f.Segments {
		s := &f.Segments[i]
		if max(s.Seq+uint64(max(s.Len, 0)), s.Ack+uint64(max(s.Window, 0))) > math.MaxUint32 {
			y = "double"
		}
	}
	x := &xplot{text: make([]byte, 0, 120*len(f.Segments))}
	x.text = fmt.Appendf(x.text, "timeval %s\ntitle\n%s\nxlabel\ntime\nylabel\nsequence number\n",
		y, oneLine(title))
	var last *Segment // last segment from the receiver
	for i := range f.Segments {
		s := &f.Segments[i]
		switch {
		case s.Received:
			x.acknowledgment(s, last)
			last = s
		case s.Len > 0:
			x.segment(s)
		}
	}
	return append(x.text, "go\n"...)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}

// command writes a command, which is a shape and pairs of an instant and a sequence number.
func (x *xplot) command(color, what string, points ...any) {
	if color != x.color {
		x.text = append(append(x.text, color...), '\n')
		x.color = color
	}
	x.text = append(x.text, what...)
	for _, p := range points {
		x.text = append(x.text, ' ')
		switch p := p.(type) {
		case time.Duration:
			x.text = fmt.Appendf(x.text, "%d.%06d", p/time.Second, p%time.Second/time.Microsecond)
		case uint64:
			x.text = strconv.AppendUint(x.text, p, 10)
		}
	}
	x.text = append(x.text, '\n')
}

func (x *xplot) segment(s *Segment) {
	color := "white"
	if s.Again {
		color = "red"
	}
	end := s.Seq + uint64(s.Len)
	x.command(color, "darrow", s.At, s.Seq)
	x.command(color, "uarrow", s.At, end)
	x.command(color, "line", s.At, s.Seq, s.At, end)
	if s.Again {
		x.command(color, "atext", s.At, end)
		x.text = append(x.text, "R\n"...)
	}
}

func (x *xplot) acknowledgment(s, last *Segment) {
	if last != nil {
		x.command("green", "line", last.At, last.Ack, s.At, last.Ack)
		if s.Ack == last.Ack {
			x.command("green", "utick", s.At, s.Ack)
		} else {
			x.command("green", "line", s.At, last.Ack, s.At, s.Ack)
		}
		before, now := offered(last), offered(s)
		x.command("yellow", "line", last.At, before, s.At, before)
		if before != now {
			x.command("yellow", "line", s.At, before, s.At, now)
		}
	}
	for _, block := range s.SACK {
		x.command("purple", "line", s.At, block[0], s.At, block[1])
	}
}

func offered(s *Segment) uint64 { return s.Ack + uint64(max(s.Window, 0)) }
