package repl

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// perfText formats a measurement like iperf3's text output.
type perfText struct {
	start  control.PerfStart
	server bool
	format string // letter of the unit of rates; empty: choose a unit
	tests  int
	ruled  bool // the last printed line is a separator
}

const (
	perfRule  = "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
	perfRuler = "-----------------------------------------------------------\n"
)

func (p *perfText) listening(port int) string {
	p.tests++
	return fmt.Sprintf("%sServer listening on %d (test #%d)\n%s", perfRuler, port, p.tests,
		perfRuler)
}

func (p *perfText) begin(r *control.PerfStart) string {
	p.start, p.ruled = *r, false
	var b strings.Builder
	if a := r.AcceptedConnection; a != nil {
		fmt.Fprintf(&b, "Accepted connection from %s, port %d\n", printable(a.Host), a.Port)
	}
	if to := r.ConnectingTo; to != nil && r.TestStart.Reverse != 0 {
		fmt.Fprintf(&b, "Reverse mode, remote host %s is sending\n", printable(to.Host))
	}
	for _, c := range r.Connected {
		fmt.Fprintf(&b, "[%3d] local %s port %d connected to %s port %d\n", c.Socket,
			printable(c.LocalHost), c.LocalPort, printable(c.RemoteHost), c.RemotePort)
	}
	return b.String() + p.header(true)
}

func (p *perfText) bidir() bool { return p.start.TestStart.Bidir != 0 }

func (p *perfText) sends() bool { return (p.start.TestStart.Reverse != 0) == p.server }

// header formats the column titles of the intervals, or of the final report.
func (p *perfText) header(intervals bool) string {
	text := "[ ID] Interval           Transfer     Bitrate"
	if p.bidir() {
		text = "[ ID][Role] Interval           Transfer     Bitrate"
	}
	switch p.start.TestStart.Protocol {
	case "UDP":
		if intervals && p.sends() && !p.bidir() {
			text += "         Total Datagrams"
		} else {
			text += "         Jitter    Lost/Total Datagrams"
		}
	case "TCP":
		switch {
		case !p.bidir() && !p.sends() && (intervals || p.server):
		case intervals:
			text += "         Retr  Cwnd"
		default:
			text += "         Retr"
		}
	}
	return text + "\n"
}

func (p *perfText) interval(i *control.PerfInterval) string {
	var b strings.Builder
	for n := range i.Streams {
		row := &i.Streams[n]
		b.WriteString(p.row(perfID(row.Socket), row, omittedWord(row)))
	}
	if len(i.Streams) < 2 || len(i.Streams) == 2 && p.bidir() {
		return b.String()
	}
	b.WriteString(p.row("[SUM]", &i.Sum, omittedWord(&i.Sum)))
	if i.SumBidirReverse != nil {
		b.WriteString(p.row("[SUM]", i.SumBidirReverse, omittedWord(i.SumBidirReverse)))
	}
	p.ruled = true
	return b.String() + perfRule
}

func perfID(socket int) string { return fmt.Sprintf("[%3d]", socket) }

func omittedWord(row *control.PerfRow) string {
	if row.Omitted != nil && *row.Omitted {
		return "(omitted)"
	}
	return ""
}

func (p *perfText) row(id string, r *control.PerfRow, word string) string {
	if p.bidir() {
		way, end := "RX", "C"
		if r.Sender {
			way = "TX"
		}
		if p.server {
			end = "S"
		}
		id += "[" + way + "-" + end + "]"
	}
	text := fmt.Sprintf("%s %6.2f-%-6.2f sec  %ss  %ss/sec", id, r.Start, r.End,
		perfUnit(float64(r.Bytes), "A"), p.rate(r.BitsPerSecond))
	switch {
	case r.JitterMS != nil:
		text += fmt.Sprintf("  %5.3f ms  %d/%d (%.2g%%)  ", *r.JitterMS, *r.LostPackets, *r.Packets,
			*r.LostPercent)
	case r.Packets != nil:
		text += fmt.Sprintf("  %d  ", *r.Packets)
	case r.Retransmits != nil && r.SndCwnd != nil:
		text += fmt.Sprintf("  %3d   %ss       ", *r.Retransmits,
			perfUnit(float64(*r.SndCwnd), "A"))
	case r.Retransmits != nil:
		text += fmt.Sprintf("  %3d             ", *r.Retransmits)
	default:
		text += strings.Repeat(" ", 18)
	}
	return strings.TrimRight(text+word, " ") + "\n"
}

// end formats the final report. A server prints only its own numbers, a client those of both ends.
func (p *perfText) end(r *control.PerfReport) string {
	var b strings.Builder
	if !p.ruled {
		b.WriteString(perfRule)
	}
	b.WriteString(p.header(false))
	show := func(id string, sender, receiver *control.PerfRow, own bool) {
		if sender != nil && (!p.server || own) {
			b.WriteString(p.row(id, sender, "sender"))
		}
		if receiver != nil && (!p.server || !own) {
			b.WriteString(p.row(id, receiver, "receiver"))
		}
	}
	for _, s := range r.End.Streams {
		row := s.Sender
		if row == nil {
			continue
		}
		show(perfID(row.Socket), row, s.Receiver, row.Sender)
	}
	e := &r.End
	if n := len(e.Streams); n > 2 || n == 2 && !p.bidir() {
		sender := len(e.Streams) > 0 && e.Streams[0].Sender != nil && e.Streams[0].Sender.Sender
		if p.bidir() {
			sender = true
		}
		show("[SUM]", p.directed(&e.SumSent, sender), p.directed(&e.SumReceived, sender), sender)
		if e.SumSentBidirReverse != nil {
			show("[SUM]", p.directed(e.SumSentBidirReverse, false),
				p.directed(e.SumReceivedBidirReverse, false), false)
		}
	}
	if !p.server && r.Error == "" {
		b.WriteString("\nperf Done.\n")
	}
	return b.String()
}

func (p *perfText) directed(r *control.PerfRow, sender bool) *control.PerfRow {
	row := *r
	row.Sender = sender
	return &row
}

func (p *perfText) rate(bits float64) string {
	format := cmp.Or(p.format, "a")
	return perfUnit(bits/8, format)
}

// perfUnit formats a number of bytes like iperf3. Capital letters are bytes in units of 1024, small
// letters bits in units of 1000. A and a choose a suitable unit.
func perfUnit(bytes float64, format string) string {
	letter := format[0]
	base, name := 1000.0, "bit"
	v := bytes * 8
	if letter < 'a' {
		base, name, v = 1024, "Byte", bytes
	}
	prefixes := []string{"", "K", "M", "G", "T"}
	i := strings.IndexByte("kmgt", letter|0x20) + 1
	if i == 0 {
		for w := v; w >= base && i < len(prefixes)-1; w /= base {
			i++
		}
	}
	for range i {
		v /= base
	}
	digits := 0
	switch {
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	return fmt.Sprintf("%4.*f %s%s", digits, v, prefixes[i], name)
}

func describePerf(e *control.PerfEnded) string {
	if e.Problem != "" {
		return fmt.Sprintf("perf %d: error - %s", e.Port, printable(e.Problem))
	}
	p := &perfText{server: true, start: e.Report.Start}
	peer := ""
	if a := e.Report.Start.AcceptedConnection; a != nil {
		peer = " of " + printable(a.Host)
	}
	return fmt.Sprintf("perf %d: test%s by %s ended\n%s", e.Port, peer,
		printable(e.Report.Start.TestStart.Protocol),
		strings.TrimRight(strings.TrimPrefix(p.end(&e.Report), perfRule), "\n"))
}
