package drill

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func (s *segment) run(w *world, e *event) error {
	if s.outbound {
		return s.expect(w, e)
	}
	if err := w.reach(e); err != nil {
		return err
	}
	return s.inject(w)
}

// inject sends the segment to the host. The header is encoded and parsed, so that invalid options
// reach the host's parser.
func (s *segment) inject(w *world) error {
	p := w.peerOf(s)
	if s.header.Flags.Has(tcp.SYN) && !s.header.Flags.Has(tcp.RST) && p.irs == 0 {
		p.irs = s.header.Seq
	}
	options, err := s.mapOptions(p)
	if err != nil {
		return w.fail("%v", err)
	}
	b := make([]byte, tcp.HeaderSize+len(options)+s.length)
	h := s.header
	if h.Flags.Has(tcp.ACK) {
		h.Ack += p.iss
	}
	h.Window = uint16(s.window)
	h.Urgent = uint16(max(s.urgent, 0))
	h.Put(b, p.tuple.RemotePort, p.tuple.LocalPort)
	b[12] = byte((tcp.HeaderSize+len(options))/4) << 4
	copy(b[tcp.HeaderSize:], options)
	first := h.Seq - p.irs - 1
	if h.Flags.Has(tcp.SYN) {
		first++ // the SYN takes the first sequence number
	}
	fill(b[tcp.HeaderSize+len(options):], first)
	_, _, header, text, ok := tcp.ParseHeader(b)
	if !ok {
		return w.pump() // the stack drops what it cannot parse
	}
	g := tcp.Segment{
		Tuple: p.tuple, Header: header, Len: len(text), Count: 1, ECN: codepoints[s.ecn],
	}
	if len(text) > 0 {
		g.Payload = [][]byte{text}
	}
	w.host.Input(w.now, &g)
	return w.pump()
}

// mapOptions converts the SACK edges and the echoed timestamp, which the script writes relative to
// the host's first ones, to absolute values.
func (s *segment) mapOptions(p *peer) ([]byte, error) {
	b := append([]byte(nil), s.options...)
	for i := 0; i < len(b) && b[i] != 0; {
		if b[i] == 1 {
			i++
			continue
		}
		body := b[i+2 : i+int(b[i+1])]
		switch b[i] {
		case 5:
			for ; len(body) > 0; body = body[4:] {
				binary.BigEndian.PutUint32(body, binary.BigEndian.Uint32(body)+p.iss)
			}
		case 8:
			ecr, err := p.echo(binary.BigEndian.Uint32(body[4:]))
			if err != nil {
				return nil, err
			}
			binary.BigEndian.PutUint32(body[4:], ecr)
		}
		i += int(b[i+1])
	}
	return b, nil
}

// echo returns the host's timestamp that the script calls v.
func (p *peer) echo(v uint32) (uint32, error) {
	if live, ok := p.stamps[v]; ok {
		return live, nil
	}
	switch {
	case v == 0:
		return 0, nil
	case p.hasSaid:
		return v - p.said + p.live, nil
	}
	return 0, fmt.Errorf("ecr %d: no line has shown this timestamp", v)
}

// expect takes the host's next segment, waiting for it if necessary, and compares it. If the
// script's segment is longer, it also takes the segments that follow.
func (s *segment) expect(w *world, e *event) error {
	from, to := w.at(e.when)
	slack := w.slack(max(from.Sub(w.now), 0))
	if err := w.runUntil(to.Add(slack), true); err != nil {
		return err
	}
	if len(w.out) == 0 {
		return w.fail("the host sent nothing by %s\n\twant %s %s",
			stamp(w.now), when(e, from, to), s.raw)
	}
	got := w.out[0]
	w.out = w.out[1:]
	for got.length < s.length && len(w.out) > 0 && got.continues(&w.out[0], s.length) {
		got.join(&w.out[0])
		w.out = w.out[1:]
	}
	problem := s.compare(w, &got)
	if problem == "" && e.when.kind != anyTime &&
		(got.at < from.Add(-slack) || got.at > to.Add(slack)) {
		problem = "the time is wrong"
	}
	if problem != "" {
		return w.fail("%s\n\twant %s %s\n\tgot  %s %s", problem, when(e, from, to), s.raw,
			stamp(got.at), got.describe())
	}
	return nil
}

func when(e *event, from, to clock.Time) string {
	switch {
	case e.when.kind == anyTime:
		return "*"
	case e.when.ranged:
		return stamp(from) + "~" + stamp(to)
	}
	return stamp(from)
}

// continues reports whether t directly follows s and both together have at most n bytes.
func (s *sent) continues(t *sent, n int) bool {
	return t.peer == s.peer && t.header.Seq == s.header.Seq+uint32(s.length) && t.length > 0 &&
		s.length+t.length <= n && t.at.Sub(s.at) <= time.Millisecond &&
		t.header.Ack == s.header.Ack
}

func (s *sent) join(t *sent) {
	if s.foreign < 0 && t.foreign >= 0 {
		s.foreign = s.length + t.foreign
	}
	s.length += t.length
	s.header.Flags |= t.header.Flags
	s.header.Window = t.header.Window
}

// compare describes the difference between a segment and the expected one. It returns an empty
// string if there is no difference.
func (s *segment) compare(w *world, got *sent) string {
	p, h := got.peer, got.header
	if s.ports != [2]uint16{} {
		if p != w.peerOf(s) {
			return fmt.Sprintf("the segment belongs to %v", p.tuple)
		}
	} else if p != w.current {
		return fmt.Sprintf("the segment belongs to %v", p.tuple)
	}
	seq, ack := p.relative(h)
	switch {
	case h.Flags != s.header.Flags:
		return fmt.Sprintf("the flags are %s", letters(h.Flags))
	case seq != s.header.Seq:
		return fmt.Sprintf("the sequence number is %d", seq)
	case got.length != s.length:
		return fmt.Sprintf("there are %d bytes", got.length)
	case ack != s.header.Ack:
		return fmt.Sprintf("the acknowledgment is %d", ack)
	case s.window >= 0 && int(h.Window) != s.window:
		return fmt.Sprintf("the window is %d", h.Window)
	case s.urgent >= 0 && int(h.Urgent) != s.urgent:
		return fmt.Sprintf("the urgent pointer is %d", h.Urgent)
	case got.foreign >= 0:
		return fmt.Sprintf("byte %d differs from the stream", got.foreign)
	case !s.ecn.admits(got.ecn):
		return fmt.Sprintf("the ECN field is %s", got.ecn)
	case s.anyOpts:
		return ""
	}
	return s.compareOptions(w, got)
}

func (s *segment) compareOptions(w *world, got *sent) string {
	p, have := got.peer, got.header.Options
	b := make([]byte, tcp.HeaderSize+len(s.options))
	b[12] = byte(len(b)/4) << 4
	copy(b[tcp.HeaderSize:], s.options)
	_, _, h, _, ok := tcp.ParseHeader(b)
	if !ok {
		return "the expected options are invalid"
	}
	want := h.Options
	if want.HasTimestamps && have.HasTimestamps {
		if !p.hasSaid {
			p.hasSaid, p.said = true, want.TSVal
			p.live = have.TSVal
		}
		val := have.TSVal - p.live + p.said
		p.stamps[want.TSVal] = have.TSVal
		if w.set.tick != 0 {
			off := int64(int32(val - want.TSVal))
			if max(off, -off)*int64(w.set.tick) > int64(w.set.tolerance) {
				return fmt.Sprintf("the timestamp is %d", val)
			}
		}
		have.TSVal = want.TSVal
	}
	if want != have {
		return "the options are " + describeOptions(&have)
	}
	return ""
}

// relative returns the sequence and acknowledgment numbers as the script writes them.
func (p *peer) relative(h tcp.Header) (seq, ack uint32) {
	if h.Flags.Has(tcp.ACK) {
		ack = h.Ack
	}
	return h.Seq - p.iss, ack
}

func letters(f tcp.Flags) string {
	var b strings.Builder
	for _, r := range "SFRPEWU." {
		if f.Has(flagLetters[r]) {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "-"
	}
	return b.String()
}

// describe writes the segment in the script's notation.
func (s *sent) describe() string {
	seq, ack := s.peer.relative(s.header)
	var b strings.Builder
	b.WriteString("> ")
	if s.ecn != ecnNone {
		fmt.Fprintf(&b, "[%s] ", s.ecn)
	}
	fmt.Fprintf(&b, "%s %d:%d(%d)", letters(s.header.Flags), seq, seq+uint32(s.length), s.length)
	if s.header.Flags.Has(tcp.ACK) {
		fmt.Fprintf(&b, " ack %d", ack)
	}
	fmt.Fprintf(&b, " win %d", s.header.Window)
	o := s.header.Options
	if p := s.peer; o.HasTimestamps && p.hasSaid {
		o.TSVal += p.said - p.live
	}
	if o != (tcp.Options{}) {
		b.WriteString(" " + describeOptions(&o))
	}
	return b.String()
}

func describeOptions(o *tcp.Options) string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if o.MSS != 0 {
		add("mss %d", o.MSS)
	}
	if o.SACKPermitted {
		add("sackOK")
	}
	if o.HasTimestamps {
		add("TS val %d ecr %d", o.TSVal, o.TSEcr)
	}
	if o.HasWindowScale {
		add("wscale %d", o.WindowScale)
	}
	if o.SACKCount > 0 {
		blocks := []string{"sack"}
		for _, b := range o.SACK[:o.SACKCount] {
			blocks = append(blocks, fmt.Sprintf("%d:%d", b.Start, b.End))
		}
		add("%s", strings.Join(blocks, " "))
	}
	return "<" + strings.Join(list, ",") + ">"
}

var ecnNames = [...]string{"unchecked", "noecn", "ect0", "ect1", "ce", "ect01"}

func (m ecnMark) String() string { return ecnNames[m] }

// admits reports whether m allows a segment with the given codepoint.
func (m ecnMark) admits(got ecnMark) bool {
	return m == ecnUnchecked || m == got || m == ecnECT01 && (got == ecnECT0 || got == ecnECT1)
}
