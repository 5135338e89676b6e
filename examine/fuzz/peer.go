package fuzz

import (
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Segment is a TCP segment without its data.
type Segment struct {
	Flags    tcp.Flags
	Seq, Ack uint32
	Win      uint16
	Len      int
}

// span returns how many sequence numbers the segment occupies.
func (s *Segment) span() int64 {
	n := int64(s.Len)
	if s.Flags.Has(tcp.SYN) {
		n++
	}
	if s.Flags.Has(tcp.FIN) {
		n++
	}
	return n
}

// peer is the fuzzer's end of the connection. As in a check file, sequence numbers are relative to
// the SYN of their sender.
type peer struct {
	iss, irs uint32
	known    bool  // irs is known
	answered bool  // the stack has sent a SYN-ACK
	next     int64 // next sequence number of the peer
	got      int64 // next sequence number of the stack
	edge     int64 // end of the stack's window
}

// sequence returns the sequence number of an event's segment.
func (p *peer) sequence(e *Event) int64 {
	if e.Beyond {
		return p.edge + int64(e.Seq)
	}
	return p.next + int64(e.Seq)
}

// build returns the segment of an event.
func (p *peer) build(e *Event) Segment {
	s := Segment{Flags: e.Flags, Seq: p.iss + uint32(p.sequence(e)), Win: 65535, Len: e.Len}
	if e.Flags.Has(tcp.ACK) {
		s.Ack = p.irs + uint32(p.got+int64(e.Ack))
	}
	if e.Seq == 0 && !e.Beyond && !e.Flags.Has(tcp.RST) {
		p.next += s.span()
	}
	return s
}

// Outcome is what a stack sent after an event.
type Outcome struct {
	Answer Answer
	// Sent is the stack's next sequence number, Acked its highest acknowledgment number.
	Sent, Acked int64
}

// Answer is a set of kinds of segments.
type Answer uint16

// The kinds of segments. A retransmission is always Repeat.
const (
	Ack     Answer = 1 << iota // a segment without data, SYN and FIN
	Syn                        // the first SYN
	SynAck                     // the first SYN-ACK
	Data                       // new data
	Fin                        // the first FIN
	RstAck                     // RST whose SEQ is the ACK of the event's segment
	RstSeq                     // RST with SEQ 0, which acknowledges the event's segment
	RstConn                    // RST with the connection's next sequence number
	RstOdd                     // RST with any other sequence number
	Repeat                     // a retransmitted SYN, SYN-ACK, data or FIN
)

var answerNames = [...]string{
	"ACK", "SYN", "SYN-ACK", "data", "FIN", "RST", "RST", "RST", "RST with a wrong number",
	"retransmission",
}

// resets contains all kinds of RST.
const resets = RstAck | RstSeq | RstConn | RstOdd

// String returns the kinds in words.
func (a Answer) String() string {
	var list []string
	for i, name := range answerNames {
		if a&(1<<i) != 0 && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// record records a segment that the stack sends after an event. If the event sent a segment, sent
// is that one.
func (p *peer) record(s *Segment, sent *Segment, o *Outcome) {
	if s.Flags.Has(tcp.RST) {
		o.Answer |= p.reset(s, sent)
		return
	}
	if s.Flags.Has(tcp.SYN) && !p.known {
		p.known, p.irs = true, s.Seq
	}
	seq := int64(int32(s.Seq - p.irs))
	end := seq + s.span()
	if s.Flags.Has(tcp.ACK) {
		ack := int64(int32(s.Ack - p.iss))
		o.Acked = max(o.Acked, ack)
		p.edge = ack + int64(s.Win)
	}
	switch {
	case s.span() == 0:
		o.Answer |= Ack
	case s.Flags.Has(tcp.SYN|tcp.ACK) && !p.answered:
		p.answered = true
		o.Answer |= SynAck
	case end <= p.got:
		o.Answer |= Repeat
	case s.Flags.Has(tcp.SYN):
		o.Answer |= Syn
	default:
		if s.Len > 0 {
			o.Answer |= Data
		}
		if s.Flags.Has(tcp.FIN) {
			o.Answer |= Fin
		}
	}
	p.got = max(p.got, end)
	o.Sent = p.got
}

// reset returns the kind of a RST.
func (p *peer) reset(s, sent *Segment) Answer {
	switch {
	case sent != nil && sent.Flags.Has(tcp.ACK) && s.Seq == sent.Ack:
		return RstAck
	case sent != nil && s.Seq == 0 && s.Flags.Has(tcp.ACK) &&
		s.Ack == sent.Seq+uint32(sent.span()):
		return RstSeq
	case p.known && s.Seq == p.irs+uint32(p.got):
		return RstConn
	}
	return RstOdd
}
