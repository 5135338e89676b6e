package tcp

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// arrivals are segments that may arrive in any state. Their numbers are relative to RCV.NXT (seq)
// and SND.NXT (ack).
var arrivals = []struct {
	name  string
	flags Flags
	seq   int32
	ack   int32
	n     int
	edit  func(s *script, g *Segment)
}{
	{"RST at RCV.NXT (RFC 5961 §3.2)", RST, 0, 0, 0, nil},
	{"RST in the window", RST, 100, 0, 0, nil},
	{"RST off the window", RST, -100, 0, 0, nil},
	{"RST,ACK with data at RCV.NXT (RFC 1122 §4.2.2.12)", RST | ACK, 0, 0, 9, nil},
	{"SYN in the window (RFC 5961 §4.2)", SYN, 100, 0, 0, nil},
	{"SYN off the window", SYN, -100000, 0, 0, nil},
	{"SYN,ACK in the window", SYN | ACK, 100, 0, 0, nil},
	{"SYN,FIN", SYN | FIN, 100, 0, 0, nil},
	{"ACK of all", ACK, 0, 0, 0, nil},
	{"ACK of unsent data (RFC 5961 §5.2)", ACK, 0, 1, 0, nil},
	{"very old ACK", ACK, 0, -100000, 0, nil},
	{"no flags", 0, 0, 0, 9, nil},
	{"data at RCV.NXT", ACK, 0, 0, 9, nil},
	{"data with a bad ACK", ACK, 0, 1, 9, nil},
	{"data in the window, out of order", ACK, 50, 0, 9, nil},
	{"data off the window", ACK, -100, 0, 9, nil},
	{"data, urgent (RFC 9293 §3.8.5)", ACK | URG, 0, 0, 9, func(_ *script, g *Segment) {
		g.Urgent = 5
	}},
	{"data, marked (RFC 3168 §6.1.3)", ACK, 0, 0, 9, func(_ *script, g *Segment) { g.ECN = CE }},
	{"data with an old timestamp (RFC 7323 §5.3)", ACK, 0, 0, 9, func(_ *script, g *Segment) {
		g.Options.TSVal -= 500
	}},
	{"data without a timestamp (RFC 7323 §3.2)", ACK, 0, 0, 9, func(_ *script, g *Segment) {
		g.Options = Options{}
	}},
	{"FIN", FIN | ACK, 0, 0, 0, nil},
	{"FIN without ACK", FIN, 0, 0, 0, nil},
	{"FIN out of order", FIN | ACK, 50, 0, 0, nil},
	{"new SYN, newer timestamp (RFC 6191 §2)", SYN, 100000, 0, 0, func(_ *script, g *Segment) {
		g.Options = allOptions
		g.Options.TSVal += 1000
	}},
	{"ACK before the window", ACK, -100, 0, 0, nil},
	{"ACK beyond the window", ACK, 10_000_000, 0, 0, nil},
	{"data beyond the window", ACK, 10_000_000, 0, 9, nil},
	{"FIN beyond the window", FIN | ACK, 10_000_000, 0, 0, nil},
	{"FIN one before RCV.NXT", FIN | ACK, -1, 0, 0, nil},
	{"FIN one before RCV.NXT, without ACK", FIN, -1, 0, 0, nil},
	{"FIN on old data", FIN | ACK, -9, 0, 9, nil},
	{"FIN on partly old data", FIN | ACK, -5, 0, 9, nil},
	{"SYN one before RCV.NXT, with data", SYN, -1, 0, 9, nil},
	{"SYN,ACK one before RCV.NXT, with data", SYN | ACK, -1, 0, 9, nil},
	{"SYN,FIN,ACK one before RCV.NXT, with data", SYN | FIN | ACK, -1, 0, 9, nil},
}

// inState brings a host into each state, with timestamps and ECN.
var inState = []struct {
	name  string
	begin func(s *script)
}{
	{"CLOSED", func(*script) {}},
	{"LISTEN", func(s *script) { s.listen(4) }},
	{"SYN-SENT", func(s *script) { s.connect(); s.collect() }},
	{"SYN-RECEIVED, passive", func(s *script) { s.listen(4); s.send(SYN|ECE|CWR, 0, 0, 0, allOptions) }},
	{"SYN-RECEIVED, active", func(s *script) {
		s.connect()
		s.collect()
		s.send(SYN, 0, 0, 0, allOptions)
	}},
	{"ESTABLISHED", func(s *script) { s.acceptAll() }},
	{"FIN-WAIT-1", func(s *script) { s.acceptAll(); _ = s.c.CloseWrite(s.now) }},
	{"FIN-WAIT-2", func(s *script) {
		s.acceptAll()
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(ACK, 1, 2, 0, stamp(1001, 1))
	}},
	{"CLOSE-WAIT", func(s *script) { s.acceptAll(); s.send(FIN|ACK, 1, 1, 0, stamp(1001, 1)) }},
	{"CLOSING", func(s *script) {
		s.acceptAll()
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(FIN|ACK, 1, 1, 0, stamp(1001, 1))
	}},
	{"LAST-ACK", func(s *script) {
		s.acceptAll()
		s.send(FIN|ACK, 1, 1, 0, stamp(1001, 1))
		_ = s.c.CloseWrite(s.now)
	}},
	{"TIME-WAIT", func(s *script) {
		s.acceptAll()
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(FIN|ACK, 1, 2, 0, stamp(1001, 1))
	}},
}

// TestRFC9293_3_10_7_Segments checks the result of every arrival in every state: the answer, the
// next state, and the drop reason.
func TestRFC9293_3_10_7_Segments(t *testing.T) {
	var b strings.Builder
	for _, st := range inState {
		fmt.Fprintf(&b, "%s\n", st.name)
		for _, a := range arrivals {
			s := newScript(t, Config{})
			st.begin(s)
			s.collect()
			s.out = nil
			s.now = s.now.Add(time.Second / 2)
			dropped := s.h.Drops()
			seq, ack := uint32(a.seq), uint32(a.ack)
			if rcv, snd, ok := s.position(); ok {
				seq, ack = rcv+seq, snd+ack
			}
			g := s.segment(a.flags, seq, ack, a.n, 65535)
			if s.h.timeWaits.byTuple[s.tuple] != nil || s.c != nil && s.c.hs.has(hsStamps) || s.l != nil {
				g.Options = stamp(1002, 1)
			}
			if a.edit != nil {
				a.edit(s, &g)
			}
			s.h.Input(s.now, &g)
			fmt.Fprintf(&b, "  %-50s %s\n", a.name, s.outcome(dropped))
			verify(t, s.h)
		}
	}
	golden(t, "segments.txt", b.String())
}

// conn is the connection under test, whether the host or the listener holds it.
func (s *script) conn() *Conn {
	if s.c != nil {
		return s.c
	}
	return s.h.Find(s.tuple)
}

// position returns RCV.NXT and SND.NXT, both relative to the SYNs.
func (s *script) position() (rcv, snd uint32, ok bool) {
	if c := s.conn(); c != nil {
		return uint32(c.rcv.nxt) - s.peer, uint32(c.snd.Nxt) - s.iss, true
	}
	return 0, 0, false
}

func (s *script) outcome(before Drops) string {
	state := "-"
	if c := s.conn(); c != nil {
		state = c.State().String()
		if c.Err() != nil {
			state += fmt.Sprintf(" (%v)", c.Err())
		}
	}
	s.collect()
	answers := []string{}
	for _, g := range s.out {
		answers = append(answers, g.flags.String())
	}
	answer := strings.Join(answers, ", ")
	why := ""
	for d, n := range s.h.Drops() {
		if n != before[d] {
			why = "dropped: " + Drop(d).String()
		}
	}
	return strings.TrimRight(fmt.Sprintf("%-34s %-20s %s", state, answer, why), " ")
}
