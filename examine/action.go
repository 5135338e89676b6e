package examine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// actions carry out the steps that are not commands of the subject's user.
var actions map[string]func(x *execution, s *step) error

func init() {
	actions = map[string]func(x *execution, s *step) error{
		"then":     func(*execution, *step) error { return nil },
		"send":     (*execution).send,
		"expect":   (*execution).expect,
		"never":    func(x *execution, s *step) error { x.never = append(x.never, s); return nil },
		"no":       (*execution).absent,
		"most":     (*execution).most,
		"peers":    (*execution).peers,
		"garbage":  (*execution).garbage,
		"receive":  (*execution).data,
		"wait":     (*execution).wait,
		"backoff":  (*execution).backoff,
		"printed":  (*execution).printed,
		"file":     (*execution).file,
		"keep":     (*execution).keep,
		"transfer": (*execution).transfer,
		"fill":     func(x *execution, _ *step) error { return x.fill() },
		"fresh":    func(x *execution, _ *step) error { x.reset(); return nil },
		"iss": func(x *execution, s *step) error {
			x.conn.iss = uint32(s.count.value(x.symbol))
			return nil
		},
		"window": func(x *execution, s *step) error {
			x.window = uint16(s.count.value(x.symbol))
			return nil
		},
	}
}

// defaultTTL is the TTL of the packets that the examiner sends.
const defaultTTL = 64

func (x *execution) send(s *step) error {
	times := int64(1)
	if s.count != nil {
		times = s.count.value(x.symbol)
	}
	for i := range times {
		var arrived []*packet // packets that arrived since the step began
		if i > 0 && s.span.unit != "" {
			if err := x.wait(s); err != nil {
				return err
			}
			arrived = slices.Clone(x.pending)
		}
		var p *packet
		switch s.pattern.kind {
		case segmentKind:
			p = x.build(s.pattern)
		case ripKind:
			p = x.buildRIP(s.pattern)
		default:
			p = x.buildPacket(s.pattern)
		}
		x.seal(s.pattern, p)
		if err := x.pieces(s.pattern, p); err != nil {
			return err
		}
		x.pending = append(x.pending, arrived...)
	}
	return nil
}

// pieces sends a packet, in fragments if the template asks for them.
func (x *execution) pieces(w *pattern, p *packet) error {
	t := w.find("fragments")
	if t == nil {
		return x.transmit(p)
	}
	size := int(t.lo.value(x.symbol)) &^ 7
	for at := 0; at < len(p.body); at += size {
		h := p.ip
		end := min(at+size, len(p.body))
		h.FragOff, h.MF, h.TotalLen = at, end < len(p.body), ip.HeaderLen+end-at
		piece := &packet{at: p.at, link: p.link, sent: true, ip: h, body: p.body[at:end]}
		piece.raw = append(h.Append(nil), piece.body...)
		if err := x.transmit(piece); err != nil {
			return err
		}
	}
	return nil
}

// on returns the link that a template names.
func (x *execution) on(w *pattern) int {
	if t := w.find("on"); t != nil {
		return int(min(max(t.lo.value(x.symbol), 0), int64(len(x.setup.Links)-1)))
	}
	return 0
}

func (x *execution) buildRIP(w *pattern) *packet {
	var entries []ripEntry
	for i := range w.terms {
		if t := &w.terms[i]; t.key == "route" {
			entries = append(entries, ripEntry{x.prefix(t), int(t.lo.value(x.symbol))})
		}
	}
	width := 12
	if !x.wide() {
		width = 8
	}
	p := &packet{sent: true, body: appendRIP(nil, int(w.flags), width, entries)}
	if t := w.find("entries"); t != nil {
		binary.BigEndian.PutUint16(p.body[2:], uint16(t.lo.value(x.symbol)))
	}
	l := x.setup.Links[x.on(w)]
	p.ip = ip.Header{Src: l.Peer, Dst: l.Addr.Addr(), Protocol: ip.ProtoRIP}
	p.rip = &ripMessage{command: int(w.flags), count: len(entries), entries: entries}
	return p
}

func (x *execution) buildPacket(w *pattern) *packet {
	l := x.setup.Links[x.on(w)]
	p := &packet{sent: true, ip: ip.Header{Src: l.Peer, Dst: l.Addr.Addr()}}
	var icmp [2]byte
	for i := range w.terms {
		t := &w.terms[i]
		n := int64(0)
		if t.lo != nil {
			n = t.lo.value(x.symbol)
		}
		switch t.key {
		case "proto":
			p.ip.Protocol = uint8(n)
		case "data":
			p.body = t.text
		case "len":
			p.body = stream(0, int(n))
		case "type":
			p.ip.Protocol, icmp[0] = ip.ProtoICMP, byte(n)
		case "code":
			icmp[1] = byte(n)
		}
	}
	if p.ip.Protocol == ip.ProtoICMP {
		b := append([]byte{icmp[0], icmp[1], 0, 0, 0x12, 0x34, 0, 1}, p.body...)
		binary.BigEndian.PutUint16(b[2:], checksum.Checksum(b))
		p.body = b
	}
	return p
}

// seal puts an IP header in front of the packet's body, with the faults that the template asks for.
func (x *execution) seal(w *pattern, p *packet) {
	p.link = x.on(w)
	h := &p.ip
	h.TTL, h.TotalLen = defaultTTL, ip.HeaderLen+len(p.body)
	number := func(key string, standard int) int {
		if t := w.find(key); t != nil {
			return int(t.lo.value(x.symbol))
		}
		return standard
	}
	h.TTL = uint8(number("ttl", defaultTTL))
	h.ID = uint32(number("id", 0))
	h.FragOff, h.MF = number("off", 0), number("mf", 0) != 0
	if t := w.find("src"); t != nil {
		h.Src = x.address(t)
	}
	if t := w.find("dst"); t != nil {
		h.Dst = x.address(t)
	}
	if t := w.find("ipoptions"); t != nil {
		h.Options = t.text
		h.TotalLen = h.Size() + len(p.body)
	}
	h.TotalLen = number("iplen", h.TotalLen)
	b := h.Append(nil)
	b[0] = byte(number("version", 4))<<4 | byte(number("ihl", len(b)/4))
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b))
	if t := w.find("ipsum"); t != nil && t.bad {
		b[10] ^= 0x55
	}
	p.raw = append(append(b, p.body...), make([]byte, number("trailer", 0))...)
	p.at = x.run.Now()
}

func (x *execution) expect(s *step) error {
	p, err := x.recall(s.pattern), error(nil)
	if p == nil {
		p, err = x.await(s.pattern, x.patience(s.span))
	}
	if err != nil {
		return err
	}
	if p == nil {
		x.note(EventExpected, s.pattern.text)
		return failed("the stack did not send `%s` within %s%s", s.pattern.text,
			x.patience(s.span).Round(time.Millisecond), x.instead(s.pattern))
	}
	x.before, x.last = x.last, p
	return nil
}

// instead lists the other packets of the pattern's kind that arrived.
func (x *execution) instead(w *pattern) string {
	var list []string
	for _, p := range x.pending {
		same := w.kind == ripKind && p.rip != nil ||
			w.kind == segmentKind && p.tcp != nil && x.conn.owns(p)
		if text := "`" + p.describe(x.conn) + "`"; same && p.fail == "" &&
			!slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	const most = 3
	switch {
	case len(list) == 0:
		return ""
	case len(list) > most:
		list = append(list[:most], "…")
	}
	return ", but " + strings.Join(list, ", ")
}

// absent checks that no matching packet arrives for a time.
func (x *execution) absent(s *step) error {
	p, err := x.await(s.pattern, x.duration(s.span))
	if err != nil || p == nil {
		return err
	}
	x.ladder[len(x.ladder)-1].Kind = EventUnwanted
	return failed("the stack sent `%s`", p.describe(x.conn))
}

// wait lets time pass. It fails if a forbidden packet arrives in the meantime.
func (x *execution) wait(s *step) error {
	until := x.run.Now().Add(x.duration(s.span))
	for {
		p, err := x.receive(until)
		if p == nil || err != nil {
			return err
		}
		x.pending = append(x.pending, p)
	}
}

// data waits for bytes of the subject's stream, and acknowledges them if the check asks for that.
func (x *execution) data(s *step) error {
	c := x.conn
	goal := c.got + s.count.value(x.symbol)
	until := x.run.Now().Add(x.patience(s.span))
	for c.got < goal {
		p, err := x.receive(until)
		if err != nil {
			return err
		}
		if p == nil {
			x.note(EventExpected, fmt.Sprintf("%d more bytes of the stream", goal-c.got))
			return failed("%d of %d bytes did not arrive within %s", goal-c.got,
				s.count.value(x.symbol), x.patience(s.span).Round(time.Millisecond))
		}
		if c.owns(p) && p.fail == "" && p.tcp.span() > 0 {
			if x.last = p; s.acking {
				if err := x.acknowledge(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (x *execution) acknowledge() error {
	w := &pattern{kind: segmentKind, flags: flagACK}
	p := x.build(w)
	x.seal(w, p)
	return x.transmit(p)
}

// fill sends data until the subject's window is closed and remains closed.
func (x *execution) fill() error {
	c := x.conn
	const size, most = 1000, 8 << 20
	for c.next < most {
		n := min(size, c.acked+c.win-c.next)
		if n > 0 {
			w := &pattern{kind: segmentKind, flags: flagACK | flagPSH}
			w.terms = []term{{key: "len", lo: &expr{[]exprPart{{1, n, ""}}}}}
			p := x.build(w)
			x.seal(w, p)
			if err := x.transmit(p); err != nil {
				return err
			}
			if n == size && c.next-c.acked < 10*size {
				continue
			}
		}
		ok, err := x.poll(x.patience(span{}), func() bool { return c.acked >= c.next })
		if err != nil {
			return err
		}
		if !ok {
			return failed("%d bytes inside the window were not acknowledged", c.next-c.acked)
		}
		if c.acked+c.win > c.next {
			continue
		}
		open, err := x.poll(x.duration(span{5, "rtt"}), func() bool {
			return c.acked+c.win > c.next
		})
		if err != nil || !open {
			return err
		}
	}
	return failed("the window is still open after %d unread bytes", most)
}

// backoff expects retransmissions of the last packet at growing intervals. It compares the last
// interval with the two before it. The first interval may be a tail loss probe's (RFC 8985 §7).
func (x *execution) backoff(s *step) error {
	first := x.last
	if first == nil || first.tcp == nil {
		return &stop{Void, "backoff must follow an expected segment"}
	}
	seq, _ := x.conn.relative(first.tcp, false)
	w := &pattern{kind: segmentKind, flags: first.tcp.flags &^ flagPSH, terms: []term{{
		key: "seq", lo: &expr{[]exprPart{{1, seq, ""}}}, hi: &expr{[]exprPart{{1, seq, ""}}},
	}}}
	at := first.at
	var gaps []time.Duration
	most := int(s.count.value(x.symbol))
	// Intervals shorter than the answer time depend on the machine's load more than on the subject.
	enough := func() bool {
		return len(gaps) >= most && gaps[len(gaps)-3] >= 2*x.units.RTT || len(gaps) >= 4*most
	}
	for !enough() {
		limit := 8 * x.units.RTO
		if len(gaps) > 0 {
			limit = max(limit, 8*gaps[len(gaps)-1])
		}
		p, err := x.await(w, limit)
		if err != nil {
			return err
		}
		if p == nil {
			x.note(EventExpected, w.text+fmt.Sprintf("retransmission %d", len(gaps)+1))
			return failed("retransmission %d did not come within %s", len(gaps)+1, limit)
		}
		gaps = append(gaps, p.at.Sub(at))
		at = p.at
	}
	last := len(gaps) - 1
	for back := 1; back <= 2 && last-back > 0; back++ {
		if float64(gaps[last]) < math.Pow(s.factor, float64(back))*float64(gaps[last-back]) {
			return failed("the intervals between retransmissions do not grow by %g: %s", s.factor,
				join(gaps))
		}
	}
	return nil
}

func join(list []time.Duration) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.Round(time.Millisecond).String())
	}
	return strings.Join(texts, ", ")
}

// poll receives packets until a condition holds, and reports whether it does within d. In real time
// it checks the condition after each packet, and at least 50 times in d.
func (x *execution) poll(d time.Duration, holds func() bool) (bool, error) {
	until := x.run.Now().Add(d)
	for !holds() {
		if x.run.Now() >= until {
			return false, nil
		}
		const looks = 50
		if _, err := x.receive(min(until, x.run.Now().Add(d/looks))); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (x *execution) printed(s *step) error {
	ok, err := x.poll(x.patience(s.span), func() bool {
		return strings.Contains(x.run.Printed(), string(s.text))
	})
	if err != nil || ok {
		return err
	}
	x.note(EventExpected, fmt.Sprintf("output with %q", s.text))
	text := x.run.Printed()
	const shown = 300
	if len(text) > shown {
		text = "…" + text[len(text)-shown:]
	}
	return failed("the stack did not print %q; it printed %q", s.text, text)
}

// file checks that the subject has stored the file that was sent to it.
func (x *execution) file(s *step) error {
	want := x.sent
	if want == nil {
		want = stream(0, int(x.conn.next-1))
	}
	var got []byte
	_, err := x.poll(x.patience(s.span), func() bool {
		var done bool
		got, done = x.run.File()
		return done && bytes.Equal(got, want)
	})
	if err != nil || bytes.Equal(got, want) {
		return err
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return failed("the received file has %d bytes, the sent file %d; they differ from "+
		"offset %d on", len(got), len(want), at)
}

func (x *execution) keep(s *step) error {
	n, ok := int64(0), false
	if x.last != nil {
		n, ok = x.fact(s.words[1], x.last)
	}
	if !ok {
		return failed("the last expected packet has no %s", s.words[1])
	}
	x.kept[s.words[0]] = n
	return nil
}

// command makes the subject's user do something.
func (x *execution) command(s *step) error {
	c, l := s.command, x.setup.Links[0]
	c.Port = servicePort
	if s.count != nil {
		c.N = int(s.count.value(x.symbol))
	}
	switch c.Kind {
	case CommandConnect, CommandSendFile:
		c.Addr, c.Port = l.Peer, peerPort
		x.conn.expectOpen(c.Port)
	case CommandTest:
		c.Addr = x.address(&s.pattern.terms[0])
	default: // the command has no address
	}
	if c.Kind == CommandWrite || c.Kind == CommandSendFile {
		if c.Data == nil {
			c.Data = stream(int64(len(x.conn.wrote)), c.N)
		}
		x.conn.wrote = append(x.conn.wrote, c.Data...)
	}
	x.note(EventCommand, s.source)
	x.pending = x.pending[:0]
	err := x.run.Do(c)
	if errors.Is(err, ErrUnsupported) {
		return &stop{Skipped, err.Error() + ": " + s.verb}
	}
	if err != nil {
		return failed("%s: %v", s.verb, err)
	}
	if c.Kind == CommandUp && x.setup.Announce {
		x.announce()
	}
	return nil
}
