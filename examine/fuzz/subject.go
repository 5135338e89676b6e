package fuzz

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Subject adapts a subject of the examiner to Stack: it exchanges packets with the subject.
type Subject struct {
	examine.Subject
	// Settle is how long each event takes; zero: the package's Settle. A delayed acknowledgment
	// must arrive within this time.
	Settle time.Duration
}

// subjectTrial is a started subject.
type subjectTrial struct {
	run    examine.Run
	settle time.Duration
	us     netip.AddrPort // the peer's address
	them   netip.AddrPort // without a port: the subject has not connected yet
	packet []byte
	enough func() bool
}

// quietTime is how long a subject must be silent before an event ends early.
const quietTime = 20 * time.Millisecond

// Start implements Stack.
func (s Subject) Start() (Trial, error) {
	setup := examine.Setup{Links: []examine.Link{{
		Name: "if0", Addr: netip.PrefixFrom(engineAddr, 24), Peer: peerAddr,
	}}}
	run, err := s.Subject.Start(&setup)
	if err != nil {
		return nil, err
	}
	l := setup.Links[0]
	return &subjectTrial{
		run: run, settle: cmp.Or(s.Settle, Settle), us: netip.AddrPortFrom(l.Peer, clientPort),
		them: netip.AddrPortFrom(l.Addr.Addr(), servicePort),
	}, nil
}

// commands maps calls to the commands that the subject's user types.
var commands = map[Kind]examine.CommandKind{
	Listen: examine.CommandListen, Connect: examine.CommandConnect, Write: examine.CommandWrite,
	Read: examine.CommandRead, Shutdown: examine.CommandShutdown, Close: examine.CommandClose,
}

// Call implements Trial.
func (t *subjectTrial) Call(e *Event) error {
	c := examine.Command{
		Kind: commands[e.Kind], Addr: t.us.Addr(), Port: servicePort, N: e.Len,
		Data: bytes.Repeat([]byte{'x'}, e.Len), // text that can be typed
	}
	if e.Kind == Connect {
		t.us = netip.AddrPortFrom(t.us.Addr(), peerPort)
		t.them = netip.AddrPortFrom(t.them.Addr(), 0)
		c.Port = peerPort
	}
	// A call may fail because the subject has no connection while the model has one.
	if err := t.run.Do(c); err != nil {
		return fmt.Errorf("%w: %w", examine.ErrUnsupported, err)
	}
	return nil
}

// Send implements Trial.
func (t *subjectTrial) Send(s *Segment) error {
	h := tcp.Header{Seq: s.Seq, Ack: s.Ack, Flags: s.Flags, Window: s.Win}
	if s.Flags.Has(tcp.SYN) {
		h.Options.MSS = peerMSS
	}
	const ttl = 64
	size := h.Size() + s.Len
	out := ip.Header{
		TTL: ttl, Protocol: ip.ProtoTCP, Src: t.us.Addr(), Dst: t.them.Addr(),
		TotalLen: ip.HeaderLen + size,
	}
	t.packet = append(out.Append(t.packet[:0]), make([]byte, size)...)
	b := t.packet[ip.HeaderLen:]
	h.Put(b, t.us.Port(), t.them.Port())
	sum := checksum.Sum(b, checksum.PseudoHeader(out.Src, out.Dst, ip.ProtoTCP, size))
	const at = 16 // offset of the checksum
	binary.BigEndian.PutUint16(b[at:], ^checksum.Fold(sum))
	return t.run.Send(0, t.packet)
}

// Pass implements Trial.
func (t *subjectTrial) Pass(e *Event, record func(s *Segment)) error {
	began := t.run.Now()
	if e.Kind == Wait {
		began = began.Add(longWait)
	}
	until, quiet := began.Add(t.settle), began.Add(quietTime)
	for t.run.Now() < until {
		next := until
		if t.enough != nil && t.enough() {
			next = min(until, quiet)
		}
		a, ok := t.run.Receive(next)
		if s, ours := t.decode(a.Data); ok && ours {
			record(&s)
			quiet = max(quiet, t.run.Now().Add(quietTime))
		}
		if end := t.run.Ended(); end != nil {
			return errors.New(end.Detail)
		}
		if !ok && next < until {
			return nil
		}
	}
	return nil
}

// hurry implements timed.
func (t *subjectTrial) hurry(enough func() bool) { t.enough = enough }

// decode returns a segment of the connection.
func (t *subjectTrial) decode(packet []byte) (s Segment, ok bool) {
	h, body, drop := ip.ParseHeader(packet)
	if drop != ip.DropNone || h.Protocol != ip.ProtoTCP || h.IsFragment() {
		return s, false
	}
	from, to, th, payload, ok := tcp.ParseHeader(body)
	if !ok || h.Src != t.them.Addr() || to != t.us.Port() {
		return s, false
	}
	if t.them.Port() == 0 {
		t.them = netip.AddrPortFrom(h.Src, from)
	}
	return Segment{th.Flags, th.Seq, th.Ack, th.Window, len(payload)}, from == t.them.Port()
}

// late implements timed.
func (t *subjectTrial) late() bool { return examine.Stalled(t.run) }

// Close implements Trial.
func (t *subjectTrial) Close() { t.run.Close() }
