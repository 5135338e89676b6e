package fuzz

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// model is the connection as the rules describe it. Sequence numbers are relative to the SYN of
// their sender.
type model struct {
	state     tcp.State
	passive   bool // opened by LISTEN
	opened    bool // a connection has existed
	listening bool
	orphan    bool
	irs, rcv  int64 // the peer's SYN, RCV.NXT
	end       int64 // end of the stream after the peer's FIN, or none
	una       int64
	data      int64 // the SYN and the data that the user has written
	fin       int64 // sequence number of the stack's FIN; 0: none
	early     [][2]int64
	unread    int64
	reading   bool          // a read waits for data
	limited   time.Duration // when a rate-limited answer was last due
	tolerant  bool          // any ACK counts as a rate-limited answer
	now       time.Duration
	stalled   bool // old data is unacknowledged: the congestion window may be closed
}

// expectation is what the model allows a stack to send.
type expectation struct {
	before  tcp.State
	rule    int      // line of the last rule that applied
	need    []Answer // one answer of each set is required
	allowed Answer
	acked   int64 // RCV.NXT
	sent    int64 // SND.NXT after everything is sent
}

// none means that there is no sequence number.
const none = math.MinInt64

// forever is so long ago that no rate limit applies.
const forever = -time.Hour

func newModel() model { return model{limited: forever, end: none} }

// permits reports whether an event may happen now. Calls may happen in the states for which the
// model has rules. permits excludes events after which the stack may choose its answer: a new
// connection on the same ports, because either end may choose any sequence number, and a peer that
// contradicts itself about the end of its data.
func (m *model) permits(e *Event, p *peer) bool {
	switch e.Kind {
	case Send:
		again := e.Flags.Has(tcp.SYN) && !e.Flags.Has(tcp.ACK) && !e.Flags.Has(tcp.RST) &&
			(m.state == tcp.StateTimeWait || m.opened &&
				(m.state == tcp.StateListen || m.state == tcp.StateClosed))
		return !again && !m.contradicts(e, p)
	case Wait:
		return true
	case Listen, Connect:
		if m.opened || m.listening {
			return false
		}
	case Read:
		if m.orphan || m.reading {
			return false
		}
	default:
		if m.orphan {
			return false
		}
	}
	for i := range rules {
		if r := &rules[i]; r.kind == e.Kind && r.states&(1<<m.state) != 0 {
			return true
		}
	}
	return false
}

// contradicts reports whether a segment in the window has a FIN before data that has already
// arrived, or data after a FIN that has already arrived.
func (m *model) contradicts(e *Event, p *peer) bool {
	seq := p.sequence(e)
	end := seq + int64(e.Len)
	if end <= m.rcv-1 || e.Len == 0 && !e.Flags.Has(tcp.FIN) {
		return false
	}
	if m.end != none && (end > m.end-1 || e.Flags.Has(tcp.FIN) && end != m.end-1) {
		return true
	}
	if !e.Flags.Has(tcp.FIN) {
		return false
	}
	return m.end == none && end < m.rcv ||
		slices.ContainsFunc(m.early, func(r [2]int64) bool { return r[1] > end })
}

// step applies the rules to an event. p is the peer before the stack answers.
func (m *model) step(e *Event, s *Segment, p *peer, x *expectation) {
	m.now += Settle
	if m.una < p.got && m.state >= tcp.StateEstablished {
		m.stalled = true
	}
	*x = expectation{before: m.state, need: x.need[:0], allowed: Repeat}
	if e.Kind == Wait {
		m.now += longWait
	}
	var c condition
	if m.unread > 0 {
		c |= isUnread
	}
	if e.Kind == Send {
		c |= m.conditions(s, p)
	}
	for i := range rules {
		r := &rules[i]
		if r.kind != e.Kind || r.states&(1<<m.state) == 0 || c&r.want != r.want ||
			c&r.not != 0 {
			continue
		}
		x.rule = r.line
		if m.apply(r, e, s, p, x) {
			break
		}
	}
	x.acked, x.sent = m.rcv, m.data
	if m.fin > 0 {
		x.sent = m.fin + 1
	}
	if p.got < x.sent && m.opened {
		x.allowed |= Data | Fin // the congestion window may have delayed it
	}
	for _, a := range x.need {
		x.allowed |= a
	}
}

// conditions returns the facts about a segment.
func (m *model) conditions(s *Segment, p *peer) condition {
	c := condition(0)
	set := func(holds bool, bit condition) {
		if holds {
			c |= bit
		}
	}
	seq := int64(int32(s.Seq - p.iss))
	end := seq + s.span()
	set(s.Flags.Has(tcp.SYN), hasSyn)
	set(s.Flags.Has(tcp.FIN), hasFin)
	set(s.Flags.Has(tcp.RST), hasRst)
	set(s.Len > 0, hasData)
	set(s.span() == 0 && seq >= m.rcv && seq < p.edge ||
		s.span() > 0 && seq < p.edge && end > m.rcv, inWindow)
	set(seq == m.rcv, isExact)
	set(seq == m.irs, isFirst)
	set(seq+int64(s.Len) > m.rcv, hasNews)
	set(m.passive, isPassive)
	set(m.orphan, isOrphan)
	if s.Flags.Has(tcp.ACK) {
		ack := int64(int32(s.Ack - p.irs))
		c |= hasAck
		set(p.known && ack >= 1 && ack <= p.got, acksSyn)
		set(m.fin > 0 && ack > m.fin && ack <= p.got, acksFin)
		set(ack > p.got, isFuture)
		set(ack < m.una-1<<16, isAncient)
	}
	return c
}

// apply carries out a rule, and reports whether this is the last rule for the event.
func (m *model) apply(r *rule, e *Event, s *Segment, p *peer, x *expectation) bool {
	x.allowed |= r.optional
	if r.limited && m.now-m.limited < 500*time.Millisecond {
		x.allowed |= r.need[0]
	} else {
		x.need = append(x.need, r.need...)
	}
	if r.limited {
		m.limited = m.now
		if m.state == tcp.StateSynReceived {
			x.allowed |= Ack // or a retransmitted SYN-ACK
			x.need = x.need[:0]
		}
	}
	if r.moves {
		m.move(r.to)
	}
	for _, f := range r.effects {
		switch f {
		case doStop:
			return true
		case doAccept:
			m.irs = int64(int32(s.Seq - p.iss))
			m.rcv, m.opened, m.data = m.irs+1, true, max(m.data, 1)
			m.passive = x.before == tcp.StateListen
		case doUna:
			m.una = max(m.una, min(int64(int32(s.Ack-p.irs)), p.got))
			m.stalled = m.stalled && m.una < p.got
		case doText:
			m.text(int64(int32(s.Seq-p.iss)), s)
		case doEnd:
			m.takeEnd(int64(int32(s.Seq-p.iss)), s)
		case doRead:
			m.reading = m.unread == 0 && m.end != m.rcv
			m.unread = 0
		case doClose:
			m.orphan = true
		case doData:
			m.data += int64(e.Len)
			m.wait(x)
		case doFin:
			m.fin = m.data
			m.wait(x)
		}
	}
	return false
}

// wait makes required answers optional if the congestion window may be closed.
func (m *model) wait(x *expectation) {
	if m.stalled {
		x.need = x.need[:0]
	}
}

// move enters a state.
func (m *model) move(to tcp.State) {
	switch to {
	case tcp.StateListen:
		m.listening = true
	case tcp.StateSynSent:
		m.opened, m.data = true, 1
	case tcp.StateClosed:
		if m.listening {
			to = tcp.StateListen
		}
	default: // no other state changes the model
	}
	m.state = to
}

// text adds the data of a segment to the stream.
func (m *model) text(seq int64, s *Segment) {
	if s.Flags.Has(tcp.SYN) {
		seq++
	}
	m.early = append(m.early, [2]int64{seq, seq + int64(s.Len)})
	before := m.rcv
	for moved := true; moved; {
		moved = false
		m.early = slices.DeleteFunc(m.early, func(r [2]int64) bool {
			if r[0] > m.rcv {
				return false
			}
			if r[1] > m.rcv {
				m.rcv, moved = r[1], true
			}
			return true
		})
	}
	if m.end != none {
		m.rcv = min(m.rcv, m.end-1)
	}
	if m.unread += m.rcv - before; m.reading && m.unread > 0 {
		m.reading, m.unread = false, 0
	}
	m.finish()
}

// takeEnd records the FIN of a segment.
func (m *model) takeEnd(seq int64, s *Segment) {
	if m.end == none && s.Flags.Has(tcp.FIN) {
		m.end = seq + s.span()
	}
	m.finish()
}

// finish changes the state once everything before the peer's FIN has arrived.
func (m *model) finish() {
	if m.end == none || m.rcv != m.end-1 {
		return
	}
	m.rcv = m.end
	switch m.state {
	case tcp.StateEstablished:
		m.move(tcp.StateCloseWait)
	case tcp.StateFinWait1:
		m.move(tcp.StateClosing)
	case tcp.StateFinWait2:
		m.move(tcp.StateTimeWait)
	default: // no other state accepts a FIN
	}
}

// answered updates the model with what the stack has sent.
func (m *model) answered(o *Outcome) {
	if m.tolerant && o.Answer&Ack != 0 {
		m.limited = m.now
	}
}

// tooMuch describes an acknowledgment beyond RCV.NXT.
const tooMuch = "it must not acknowledge so much"

// judge compares what the stack sent with what the model allows. It returns a description of the
// violation, or "".
func (x *expectation) judge(o *Outcome) string {
	if odd := o.Answer &^ x.allowed; odd != 0 {
		return "it must not send " + odd.String()
	}
	for _, set := range x.need {
		if o.Answer&set == 0 && (set != Ack || o.Answer&(Data|Fin|SynAck|Repeat) == 0) {
			return "it must send " + (set & -set).String()
		}
		if set == Ack && o.Acked != x.acked {
			return "it must acknowledge the data and the FIN, not more and not less"
		}
	}
	switch {
	case o.Acked > x.acked:
		return tooMuch
	case o.Sent > x.sent:
		return "it must not send so much"
	}
	return ""
}
