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

// ErrTooMany means that the maximum number of probers, raw sockets or ports is in use.
var ErrTooMany = errors.New("too many are running")

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

// output sends the probes that are due. A probe that does not fit in the stack's queue fails at
// once, because sending it late would give a wrong time.
func (pr *Probers) output(now clock.Time) {
	if len(pr.list) == 0 {
		return // avoids the allocation of packet
	}
	var packet icmp.Packet
	for _, p := range pr.list {
		for p.Output(now, &packet) {
			switch err := pr.send(now, &packet); {
			case err == nil:
			case errors.Is(err, ErrNoNeighbor):
				p.Input(now, pr.hostUnreachable(&packet))
			case errors.Is(err, ErrTooBig):
				p.Refused(now, err, pr.routing.MTUTo(packet.Dst))
			default:
				p.Refused(now, err, 0)
			}
		}
	}
}

// hostUnreachable returns the answer to a probe whose destination is on a link but does not exist:
// host unreachable from the node itself, as if ARP failed.
func (pr *Probers) hostUnreachable(p *icmp.Packet) *icmp.Answer {
	a := &icmp.Answer{
		Kind: p.Kind, ID: p.ID, Seq: p.Seq, Dst: p.Dst, From: p.Src,
		Verdict: icmp.Unreachable, Type: icmp.TypeUnreachable, Code: icmp.CodeHost,
	}
	if p.Dst.Is6() {
		a.Type, a.Code = icmp.TypeUnreachable6, icmp.CodeAddress
	}
	if !a.From.IsValid() {
		a.From = pr.routing.LocalTo(p.Dst)
	}
	return a
}

// send renders a probe and queues it.
func (pr *Probers) send(now clock.Time, p *icmp.Packet) error {
	h := ip.Header{TTL: p.TTL, TOS: p.TOS, DF: p.DF, Dst: p.Dst}
	if p.Src.IsValid() {
		h.Src = p.Src
	} else if p.Iface >= 0 {
		h.Src = pr.ifs.Source(p.Iface, p.Dst)
	} else {
		var err error
		if h.Src, err = pr.routing.sourceTo(h.Dst); err != nil {
			return err
		}
	}
	var payload []byte
	switch p.Kind {
	case icmp.Echo:
		request, _ := icmp.EchoTypes(h.Dst)
		m := icmp.Message{Type: request, Rest: icmp.EchoRest(p.ID, p.Seq), Body: p.Data}
		h.Protocol, payload = icmpOf(h.Dst), m.Append(nil, h.Src, h.Dst)
	case icmp.Datagram:
		header := udp.Header{SrcPort: p.ID, DstPort: p.Seq}
		h.Protocol, payload = ip.ProtoUDP, header.Append(nil, h.Src, h.Dst, p.Data)
	case icmp.SYN:
		h.Protocol, payload = ip.ProtoTCP, synProbe(h.Src, h.Dst, p)
	}
	if _, self := pr.ifs.self(h.Dst); self || p.Iface < 0 {
		return pr.out.send(now, h, payload)
	}
	hop := h.Dst
	if i, via, err := pr.routing.nextHop(h.Dst); err == nil && i == p.Iface {
		hop = via
	} else if !pr.ifs.present(p.Iface, h.Dst) && !isSpecial(h.Dst) &&
		!pr.ifs.isNetBroadcast(p.Iface, v4Of(h.Dst)) {
		return ErrNoRoute
	}
	return pr.out.sendVia(now, p.Iface, hop, h, payload)
}

// synProbe returns a SYN without options. No connection exists for a SYN-ACK to it, so TCP answers
// that with a RST (RFC 9293 §3.10.7.1), which closes the peer's connection.
func synProbe(src, dst netip.Addr, p *icmp.Packet) []byte {
	h := tcp.Header{Seq: uint32(p.ID) << 16, Flags: tcp.SYN, Window: 5840}
	b := make([]byte, h.Size())
	h.Put(b, p.ID, p.Seq)
	sum := checksum.Sum(b, checksum.PseudoHeader(src, dst, ip.ProtoTCP, len(b)))
	binary.BigEndian.PutUint16(b[16:], ^checksum.Fold(sum))
	return b
}

// input passes a packet for this node to the probers, because it may be the answer to a probe.
func (pr *Probers) input(now clock.Time, i int, h *ip.Header, payload []byte) {
	if len(pr.list) == 0 {
		return
	}
	a := icmp.Answer{ // the source of the reply is the destination of the probe
		From: h.Src, Dst: h.Src, TTL: int(h.TTL),
		Bytes: len(payload),
	}
	switch h.Protocol {
	case icmpOf(h.Dst):
		if !a.Parse(payload, h.Dst) {
			return
		}
		a.Dst = pr.ifs.list[i].zoned(a.Dst)
	case ip.ProtoUDP:
		u, _, ok := udp.ParseHeader(payload)
		if !ok {
			return
		}
		a.Kind, a.ID, a.Seq = icmp.Datagram, u.DstPort, u.SrcPort
	case ip.ProtoTCP:
		src, dst, t, _, ok := tcp.ParseHeader(payload)
		if !ok || t.Flags&tcp.ACK == 0 || t.Ack != uint32(dst)<<16+1 {
			return // RFC 9293 §3.10.7: every answer to a SYN has ACK set
		}
		a.Kind, a.ID, a.Seq = icmp.SYN, dst, src
	default:
		return
	}
	for _, p := range pr.list {
		p.Input(now, &a)
	}
}
