package stack

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Prober is an engine of package icmp: a ping or a traceroute.
type Prober interface {
	Output(now clock.Time, p *icmp.Packet) bool
	Refused(now clock.Time, err error, mtu int)
	Input(now clock.Time, a *icmp.Answer)
	Deadline() clock.Time
	Advance(now clock.Time)
}

// Probers runs engines of package icmp.
type Probers struct {
	ifs     *Interfaces
	routing *Routing
	out     *sender
	list    []Prober
}

// maxProbers is the largest number of pings and traceroutes at a time.
const maxProbers = 64

// ErrTooMany is returned if maxProbers are running.
var ErrTooMany = errors.New("too many at once")

// Start runs a prober until Stop.
func (pr *Probers) Start(p Prober) error {
	if len(pr.list) >= maxProbers {
		return ErrTooMany
	}
	pr.list = append(pr.list, p)
	return nil
}

// Stop ends a prober.
func (pr *Probers) Stop(p Prober) {
	pr.list = slices.DeleteFunc(pr.list, func(q Prober) bool { return q == p })
}

// deadline returns when the next prober has something to do.
func (pr *Probers) deadline() (t clock.Time) {
	for _, p := range pr.list {
		t = clock.Earliest(t, p.Deadline())
	}
	return t
}

func (pr *Probers) advance(now clock.Time) {
	for _, p := range pr.list {
		p.Advance(now)
	}
}

// output sends the probes that are due. Probes that do not fit into the stack's queue fail at once:
// a probe that is sent late gives a wrong time.
func (pr *Probers) output(now clock.Time) {
	if len(pr.list) == 0 {
		return // before anything is allocated
	}
	var packet icmp.Packet
	for _, p := range pr.list {
		for p.Output(now, &packet) {
			switch err := pr.send(now, &packet); {
			case err == nil:
			case errors.Is(err, ErrNoNeighbor):
				p.Input(now, pr.noHost(&packet))
			case errors.Is(err, ErrTooBig):
				p.Refused(now, err, pr.routing.MTUTo(packet.Dst))
			default:
				p.Refused(now, err, 0)
			}
		}
	}
}

// noHost returns the answer to a probe whose destination is on a link but does not exist: host
// unreachable from the node itself, as if ARP failed.
func (pr *Probers) noHost(p *icmp.Packet) *icmp.Answer {
	a := &icmp.Answer{
		Kind: p.Kind, ID: p.ID, Seq: p.Seq, Dst: p.Dst, From: p.Src,
		Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable, Code: icmp.CodeHost,
	}
	if !a.From.IsValid() {
		a.From = pr.routing.LocalTo(p.Dst)
	}
	return a
}

// send renders a probe and queues it.
func (pr *Probers) send(now clock.Time, p *icmp.Packet) error {
	h := ip.Header{TTL: p.TTL, TOS: p.TOS, DF: p.DF, Dst: p.Dst}
	if h.TTL == 0 {
		h.TTL = defaultTTL
	}
	if p.Src.IsValid() {
		h.Src = p.Src
	} else if p.Iface >= 0 {
		h.Src = pr.ifs.list[p.Iface].addr
	} else {
		var err error
		if h.Src, err = pr.routing.sourceTo(h.Dst); err != nil {
			return err
		}
	}
	var payload []byte
	switch p.Kind {
	case icmp.Echo:
		m := icmp.Message{Type: icmp.TypeEcho, Rest: icmp.EchoRest(p.ID, p.Seq), Body: p.Data}
		h.Protocol, payload = ip.ProtoICMP, m.Append(nil)
	case icmp.Datagram:
		header := udp.Header{SrcPort: p.ID, DstPort: p.Seq}
		h.Protocol, payload = ip.ProtoUDP, header.Append(nil, h.Src, h.Dst, p.Data)
	case icmp.SYN:
		h.Protocol, payload = ip.ProtoTCP, synProbe(h.Src, h.Dst, p)
	}
	dst := v4Of(h.Dst)
	if _, self := pr.ifs.self(dst); self || p.Iface < 0 {
		return pr.out.send(now, h, payload)
	}
	hop := h.Dst
	if i, via, err := pr.routing.way(h.Dst); err == nil && i == p.Iface {
		hop = via
	} else if !pr.ifs.present(p.Iface, h.Dst) && !dst.isSpecial() && !pr.ifs.all(p.Iface, dst) {
		return ErrNoRoute
	}
	return pr.out.sendVia(now, p.Iface, hop, h, payload)
}

// synProbe returns a SYN without options. No connection exists for the answer, so TCP resets the
// peer's (RFC 9293 §3.10.7.1).
func synProbe(src, dst netip.Addr, p *icmp.Packet) []byte {
	h := tcp.Header{Seq: uint32(p.ID) << 16, Flags: tcp.SYN, Window: 5840}
	b := make([]byte, h.Size())
	h.Put(b, p.ID, p.Seq)
	sum := checksum.Sum(b, checksum.PseudoHeader(src, dst, ip.ProtoTCP, len(b)))
	binary.BigEndian.PutUint16(b[16:], ^checksum.Fold(sum))
	return b
}

// hear passes a packet for this node to the probers: it can be the answer to a probe.
func (pr *Probers) hear(now clock.Time, h *ip.Header, payload []byte) {
	if len(pr.list) == 0 {
		return
	}
	a := icmp.Answer{ // the reply's source is the destination of the probe
		From: h.Src, Dst: h.Src, TTL: int(h.TTL),
		Bytes: len(payload),
	}
	switch h.Protocol {
	case ip.ProtoICMP:
		if !answerICMP(&a, payload) {
			return
		}
	case ip.ProtoUDP:
		u, _, ok := udp.ParseHeader(payload)
		if !ok {
			return
		}
		a.Kind, a.ID, a.Seq = icmp.Datagram, u.DstPort, u.SrcPort
	case ip.ProtoTCP:
		src, dst, t, _, ok := tcp.ParseHeader(payload)
		if !ok || t.Flags&tcp.ACK == 0 || t.Ack != uint32(dst)<<16+1 {
			return // RFC 9293 §3.10.7: every answer to a SYN has ACK
		}
		a.Kind, a.ID, a.Seq = icmp.SYN, dst, src
	default:
		return
	}
	for _, p := range pr.list {
		p.Input(now, &a)
	}
}

// answerICMP parses an ICMP message. It returns false if the message cannot be an answer to a
// probe.
func answerICMP(a *icmp.Answer, b []byte) bool {
	m, intact := icmp.Parse(b)
	if !intact {
		if len(b) < icmp.HeaderLen || b[0] != icmp.TypeEchoReply {
			return false
		}
		m = icmp.Message{Type: b[0], Rest: [4]byte(b[4:8]), Body: b[icmp.HeaderLen:]}
	}
	a.Type, a.Code, a.Damaged = m.Type, m.Code, !intact
	if m.Type == icmp.TypeEchoReply {
		a.Kind, a.Data = icmp.Echo, m.Body
		a.ID, a.Seq = m.Echo()
		return true
	}
	switch m.Type {
	case icmp.TypeTimeExceeded:
		a.Verdict = icmp.Expired
	case icmp.TypeUnreachable:
		a.Verdict = icmp.Unreachable
		if m.Code == icmp.CodeFragNeeded {
			a.MTU = m.MTU()
		}
	case icmp.TypeParameterProblem:
		a.Verdict, a.Pointer = icmp.Unreachable, m.Rest[0]
	case icmp.TypeRedirect:
		a.Verdict, a.Gateway = icmp.Noted, netip.AddrFrom4(m.Rest)
	case icmp.TypeSourceQuench:
		a.Verdict = icmp.Noted
	default:
		return false
	}
	q, rest, ok := icmp.Quoted(m.Body)
	if !ok {
		return false
	}
	a.Dst = q.Dst
	a.ID, a.Seq = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	switch q.Protocol {
	case ip.ProtoICMP:
		a.Kind = icmp.Echo
		a.ID, a.Seq = binary.BigEndian.Uint16(rest[4:]), binary.BigEndian.Uint16(rest[6:])
		return rest[0] == icmp.TypeEcho
	case ip.ProtoUDP:
		a.Kind = icmp.Datagram
	case ip.ProtoTCP:
		a.Kind = icmp.SYN
	default:
		return false
	}
	return true
}
