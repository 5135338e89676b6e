package stack

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// icmpInput takes an ICMP message for this node. What is not answered is taken in
// silence: redirects, for a route is the operator's or RIP's to change (RFC 1812 §5.2.7.2
// has routers ignore them; RFC 1122 §3.2.2.2 would have a host obey whoever sends one);
// source quenches (RFC 6633 §3); and the address masks, information requests and router
// discovery that RFC 6918 §2 and others have retired.
func (s *Stack) icmpInput(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	m, ok := icmp.Parse(payload)
	if !ok {
		return ip.DropICMP
	}
	switch m.Type {
	case icmp.TypeEcho:
		m.Type = icmp.TypeEchoReply
		if !s.knobs.ICMP.NoEcho {
			s.reply(now, i, h, &m, b)
		}
	case icmp.TypeTimestamp:
		if m, ok = m.TimestampReply(s.millis(now)); !ok {
			return ip.DropICMP
		}
		if !s.knobs.ICMP.NoTimestamp {
			s.reply(now, i, h, &m, b)
		}
	case icmp.TypeUnreachable, icmp.TypeTimeExceeded, icmp.TypeParameterProblem:
		s.icmpError(now, &m)
	}
	return ip.DropNone
}

// reply answers the query b with m, if a query to its destination is answered at all.
// RFC 1122 §3.2.2.6: the reply's source is the request's destination, and RFC 1812
// §4.3.2.5: its type of service is the request's.
func (s *Stack) reply(now clock.Time, i int, h *ip.Header, m *icmp.Message, b []byte) {
	r := ip.Header{
		Protocol: ip.ProtoICMP, TTL: defaultTTL, TOS: h.TOS, Src: h.Dst, Dst: h.Src,
		Options: s.returned(now, h, b),
	}
	if !s.isHost(h.Dst) {
		// RFC 1122 §3.2.2.6 and §3.2.2.8: what all were asked may be ignored, lest all
		// answer at once.
		if !s.knobs.ICMP.EchoBroadcast || m.Type != icmp.TypeEchoReply {
			return
		}
		r.Src = s.interfaces[i].addr
	}
	if special(r.Dst) && !s.isHost(r.Dst) || s.isMany(r.Dst) {
		return
	}
	_ = s.send(now, r, m.Append(nil)) // a reply that finds no way is a reply that was lost
}

// returned are the options of a reply: the query's record route and timestamp, with this
// node in them (RFC 1122 §3.2.2.6, §3.2.2.8) twice: as the end of the way there, and as
// the beginning of the way back. The rest of the options is not repeated.
func (s *Stack) returned(now clock.Time, h *ip.Header, b []byte) (options []byte) {
	if h.Options == nil {
		return nil
	}
	o, _, _ := ip.ParseOptions(h.Options) // readOptions has found them right
	header := append([]byte(nil), b[:h.IHL]...)
	for range 2 {
		o.Stamp(header, h.Dst, s.millis(now), s.isHost)
	}
	for _, at := range []int{o.RecordRoute, o.Timestamp} {
		if at != 0 {
			options = append(options, header[at:at+int(header[at+1])]...)
		}
	}
	return options
}

// icmpError gives an error to whom it concerns: the sender of the datagram
// that it quotes.
func (s *Stack) icmpError(now clock.Time, m *icmp.Message) {
	quoted, rest, ok := icmp.Quoted(m.Body)
	if !ok || !s.isHost(quoted.Src) && s.catching == (catching{}) {
		return // nothing that was sent here
	}
	switch quoted.Protocol {
	case ip.ProtoTCP:
		if m.Type == icmp.TypeUnreachable && m.Code == icmp.CodeFragNeeded {
			s.tcp.TooBig(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]),
				reportedMTU(quoted, m))
			return
		}
		r := m.Report()
		s.tcp.Unreachable(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]), r,
			r.Refuses())
	case ip.ProtoUDP:
		s.udpError(now, quoted, rest, m)
	}
}

// reportedMTU is the MTU that a report of fragmentation needed tells (RFC 1191 §4), or
// what it may have been where a router from before RFC 1191 does not tell.
func reportedMTU(q icmp.Quote, m *icmp.Message) int {
	if mtu := m.MTU(); mtu != 0 {
		return mtu
	}
	return tcp.Plateau(q.TotalLen)
}

// quotedTuple names the connection of ours whose segment an error quotes.
func quotedTuple(q icmp.Quote, rest []byte) tcp.Tuple {
	return tcp.Tuple{
		LocalAddr: q.Src, RemoteAddr: q.Dst,
		LocalPort: binary.BigEndian.Uint16(rest), RemotePort: binary.BigEndian.Uint16(rest[2:]),
	}
}

// reportError tells the sender of original why it was dropped.
func (s *Stack) reportError(now clock.Time, typ, code uint8, original []byte) {
	s.report(now, typ, code, [4]byte{}, original)
}

// reportTooBig reports fragmentation needed with the next hop's MTU (RFC 1191 §4).
func (s *Stack) reportTooBig(now clock.Time, mtu int, original []byte) {
	s.report(now, icmp.TypeUnreachable, icmp.CodeFragNeeded, icmp.MTURest(mtu), original)
}

// report sends an error message about a packet, if one may be sent (RFC 1122 §3.2.2) and
// the limit allows it (RFC 1812 §4.3.2.8). Its source is the address that the packet was
// for, if that is ours, else that of the interface which leads back (RFC 1812 §4.3.2.4).
// Its type of service is the packet's, its precedence 6, internetwork control (RFC 1812
// §4.3.2.5).
func (s *Stack) report(now clock.Time, typ, code uint8, rest [4]byte, original []byte) {
	const tos, precedence, internetControl = 1, 0xe0, 6 << 5
	if !icmp.MayReport(original, s.in.self) {
		return
	}
	h := ip.Header{
		Protocol: ip.ProtoICMP, TTL: defaultTTL, Dst: ip.Addr(original[12:16]),
		TOS: original[tos]&^(precedence|ecnBits) | internetControl,
	}
	dst := ip.Addr(original[16:20])
	if s.isMany(h.Dst) || s.isMany(dst) {
		return
	}
	if s.isHost(dst) {
		h.Src = dst
	}
	size := ip.MaxPacketLen
	i, self := s.self(h.Dst)
	if !self {
		if s.knobs.ICMP.NoErrors {
			return
		}
		var err error
		if i, _, err = s.way(h.Dst); err != nil {
			return // a report that cannot be sent is lost, like any other datagram
		}
		size = s.interfaces[i].MTU
	}
	if !s.bucket.Take(now) {
		s.interfaces[i].tx.drops[ip.DropICMPRate]++ // there is nothing to show to a tap
		return
	}
	_ = s.send(now, h, icmp.Error(nil, typ, code, rest, original, size))
}

// ecnBits are those of the type of service that are congestion's (RFC 3168 §5).
const ecnBits = 3
