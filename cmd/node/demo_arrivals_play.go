package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const (
	firstSeq = 705500 // sequence number of the peer's first byte in founding document 001
	iss      = 1000   // the initial sequence number of this host's SYN
	gap      = 50 * time.Millisecond
)

var (
	here = netip.MustParseAddrPort("192.168.0.2:5000")
	peer = netip.MustParseAddrPort("192.168.0.4:4323")
)

// arrivalPlayer passes segments to one TCP connection in virtual time.
type arrivalPlayer struct {
	out   io.Writer
	err   error
	host  *tcp.Host
	conn  *tcp.Conn
	now   clock.Time
	begin clock.Time
	read  int // bytes that the application has read
}

// playArrivals opens a connection with a receive buffer of window bytes, executes one step every 50
// ms, and prints how the receiver handles each. It fails if it cannot write to out, or if the
// application reads other bytes than the peer sent.
func playArrivals(out io.Writer, window int, steps []arrival) error {
	path := tcp.Path{MTU: 1400, Local: here.Addr()}
	h, err := tcp.NewHost(tcp.Config{
		Knobs:    tcp.Knobs{NoWindowScale: true},
		Buffers:  tcp.Buffers{Recv: window, RecvMax: window},
		Route:    func(netip.Addr) tcp.Path { return path },
		Sequence: func(tcp.Tuple) uint32 { return iss },
	})
	if err != nil {
		return err
	}
	l, err := h.Listen(here, 1)
	if err != nil {
		return err
	}
	begin := clock.Time(time.Second)
	p := &arrivalPlayer{out: out, host: h, now: begin, begin: begin}
	p.say("%v receives from %v, with a window of %d bytes.", here, peer, window)
	p.arrive(tcp.Header{Seq: firstSeq - 1, Flags: tcp.SYN, Options: tcp.Options{
		MSS: 1360, SACKPermitted: true,
	}}, 0)
	p.drain("")
	p.arrive(tcp.Header{Seq: firstSeq, Ack: iss + 1, Flags: tcp.ACK}, 0)
	c, ok := l.Accept()
	if !ok {
		panic("BUG: arrivals: the handshake failed")
	}
	p.conn = c
	p.state()
	for _, s := range steps {
		p.pass(gap)
		p.step(s)
	}
	p.pass(gap)
	return p.err
}

func (p *arrivalPlayer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func (p *arrivalPlayer) stamp() string {
	return fmt.Sprintf("%7.3f s", p.now.Sub(p.begin).Seconds())
}

// margin is the indentation of lines that belong to a timestamp.
const margin = "           "

func (p *arrivalPlayer) pass(d time.Duration) {
	end := p.now.Add(d)
	for due := p.host.Deadline(); due.Due(end); due = p.host.Deadline() {
		p.now = max(p.now, due)
		p.host.Advance(p.now)
		p.drain(p.stamp() + "  timer: ")
	}
	p.now = end
}

func (p *arrivalPlayer) step(s arrival) {
	if s.Read {
		p.take()
		return
	}
	seq := uint32(firstSeq + s.Offset)
	before, drops := p.conn.Reassembly(), p.host.Drops()
	p.say("\n%s  SeqNo %d, %s", p.stamp(), seq, s.what())
	p.say(margin+"%s", arrivalVerdict(&before, p.conn.Arrival(seq, s.Len), s))
	flags := tcp.ACK
	if s.FIN {
		flags |= tcp.FIN
	}
	p.arrive(tcp.Header{Seq: seq, Ack: iss + 1, Flags: flags}, s.Len)
	for i, n := range p.host.Drops() {
		if n > drops[i] {
			p.say(margin+"counted as: %v", tcp.Drop(i))
		}
	}
	p.drain(margin)
	p.state()
}

func (p *arrivalPlayer) arrive(h tcp.Header, n int) {
	h.Window = 65535
	text := make([]byte, n)
	for i := range text {
		text[i] = letter(int(int32(h.Seq-firstSeq)) + i)
	}
	s := tcp.Segment{
		Tuple: tcp.Tuple{
			LocalAddr: here.Addr(), LocalPort: here.Port(),
			RemoteAddr: peer.Addr(), RemotePort: peer.Port(),
		},
		Header: h, Len: n, Count: 1,
	}
	if n > 0 {
		s.Payload = [][]byte{text}
	}
	p.host.Input(p.now, &s)
}

func letter(offset int) byte { return byte(offset%251) ^ byte(offset>>8) }

// drain takes the host's segments and prints them after the prefix lead, if lead is not empty.
func (p *arrivalPlayer) drain(lead string) {
	var t tcp.Train
	sent := false
	for p.host.Output(p.now, []int{64}, &t) {
		sent = true
		if lead == "" {
			continue
		}
		text := fmt.Sprintf("answer: ACK %d, window %d", t.Ack, t.Header.Window)
		if n := t.Options.SACKCount; n > 0 {
			text += ", SACK" + spans(t.Options.SACK[:n])
		}
		p.say("%s%s", lead, text)
	}
	if !sent && lead == margin {
		p.say(margin + "no answer yet")
	}
}

// span formats a SACK block as packet traces do: its first sequence number, and one after its last.
func span(b tcp.SACKBlock) string { return fmt.Sprintf("%d:%d", b.Start, b.End) }

// spans formats SACK blocks, with a space before each.
func spans(blocks []tcp.SACKBlock) string {
	var text strings.Builder
	for _, b := range blocks {
		text.WriteString(" " + span(b))
	}
	return text.String()
}

func (p *arrivalPlayer) state() {
	r := p.conn.Reassembly()
	text := fmt.Sprintf("RCV.NXT %d, window %s; %d bytes to read; ", r.Next,
		span(tcp.SACKBlock{Start: r.Next, End: r.Next + uint32(r.Window)}), r.Readable)
	switch {
	case r.Closed:
		text += "the peer has closed: " + p.conn.State().String()
	case len(r.Held) == 0:
		text += "no data held"
	default:
		text += "held:" + spans(r.Held)
	}
	p.say(margin+"%s", text)
}

// take makes the application read all available bytes, and checks each of them.
func (p *arrivalPlayer) take() {
	buf := make([]byte, p.conn.Rx().Len())
	n := p.conn.Rx().Read(buf)
	p.conn.Consumed(p.now)
	p.say("\n%s  the application reads %d bytes", p.stamp(), n)
	for i, b := range buf[:n] {
		if b != letter(p.read+i) {
			if p.err == nil {
				p.err = fmt.Errorf("byte %d differs from the byte that was sent", p.read+i)
			}
			return
		}
	}
	if n > 0 {
		p.say(margin+"bytes %d to %d of the stream, each correct", p.read, p.read+n-1)
	}
	p.read += n
	p.drain(margin)
	p.state()
}
