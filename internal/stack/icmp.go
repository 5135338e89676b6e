package stack

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// icmpHost answers queries, sends errors about packets, and passes received errors to the
// protocols.
type icmpHost struct {
	ifs       *Interfaces
	routing   *Routing
	local     *local
	out       *sender
	tcp       *tcp.Host
	udp       *udp.Host
	in        *incoming
	knobs     *Knobs
	discovery *discoverers

	bucket    icmp.Bucket   // token bucket for error messages
	timeOfDay time.Duration // see Config.TimeOfDay

	caught func(now clock.Time, e *Echo) // called with echo requests to other hosts; may be nil
}

// input handles an ICMP message for this node. It ignores redirects: routes are changed by the
// operator or by RIP (RFC 1812 §5.2.7.2 for routers; RFC 1122 §3.2.2.2 differs for hosts, but
// redirects can be forged). It also ignores source quenches (RFC 6633 §3), and messages that RFC
// 6918 §2 and others deprecate: address masks, information requests and router discovery.
func (ih *icmpHost) input(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	m, ok := icmp.Parse(payload, h.Src, h.Dst)
	if !ok {
		return ip.DropICMP
	}
	switch m.Type {
	case icmp.TypeEcho, icmp.TypeEcho6:
		if ih.caught != nil && !ih.ifs.isOurs(i, h.Dst) {
			ih.caught(now, &Echo{Src: h.Src, Dst: h.Dst, TTL: h.TTL, Rest: m.Rest, Body: m.Body})
			return ip.DropNone
		}
		_, m.Type = icmp.EchoTypes(h.Src)
		if !ih.knobs.ICMP.NoEcho {
			ih.reply(now, i, h, &m, b)
		}
	case icmp.TypeTimestamp:
		if m, ok = m.TimestampReply(ih.millis(now)); !ok {
			return ip.DropICMP
		}
		if !ih.knobs.ICMP.NoTimestamp {
			ih.reply(now, i, h, &m, b)
		}
	case icmp.TypeUnreachable, icmp.TypeTimeExceeded, icmp.TypeParameterProblem:
		return ih.deliverError(now, i, &m)
	case icmp.TypeListenerQuery, icmp.TypeListenerReport, icmp.TypeListenerReport1,
		icmp.TypeListenerDone:
		if ih.discovery.on(i) != nil && !h.RouterAlert() {
			return ip.DropMLDAlert // required by RFC 3810 §6.2 and §7.4
		}
		if m.Type == icmp.TypeListenerQuery {
			return ih.discovery.input(now, i, h, &m)
		}
	case icmp.TypeRouterSolicit6, icmp.TypeRouterAdvert6, icmp.TypeNeighborSolicit,
		icmp.TypeNeighborAdvert, icmp.TypeRedirect6:
		return ih.discovery.input(now, i, h, &m)
	default:
		if m.Type.Is6() && m.Type < icmp.TypeEcho6 {
			return ih.deliverError(now, i, &m) // RFC 4443 §2.4(a): also errors of unknown types
		}
	}
	return ip.DropNone
}

// reply answers the query b with m, if the node answers queries to that destination. The reply's
// source is the request's destination (RFC 1122 §3.2.2.6), and its type of service is that of the
// request (RFC 1812 §4.3.2.5).
func (ih *icmpHost) reply(now clock.Time, i int, h *ip.Header, m *icmp.Message, b []byte) {
	r := ip.Header{
		Protocol: icmpOf(h.Dst), TOS: h.TOS, Src: h.Dst, Dst: h.Src,
		Options: ih.returned(now, h, b),
	}
	if !ih.ifs.isOwn(h.Dst) {
		// RFC 1122 §3.2.2.6 and §3.2.2.8: queries to a broadcast address may be ignored, so that
		// not all hosts answer at once. RFC 4443 §4.2 asks for an answer.
		if !h.Is6() && (!ih.knobs.ICMP.EchoBroadcast || m.Type != icmp.TypeEchoReply) {
			return
		}
		r.Src = ih.ifs.Source(i, h.Src)
	}
	if isSpecial(r.Dst) && !ih.ifs.isOwn(r.Dst) || ih.ifs.isAnyBroadcast(v4Of(r.Dst)) {
		return
	}
	_ = ih.out.send(now, r, m.Append(nil, r.Src, r.Dst)) // a reply without a route is lost
}

// returned returns the options of a reply: the query's record route and timestamp (RFC 1122
// §3.2.2.6, §3.2.2.8). This node enters itself twice: as the end of the request's path, and as the
// beginning of the reply's path. Other options are not returned.
func (ih *icmpHost) returned(now clock.Time, h *ip.Header, b []byte) (options []byte) {
	if h.Options == nil || h.Is6() {
		return nil
	}
	o, _, _ := ip.ParseOptions(h.Options) // readOptions has validated the options
	header := append([]byte(nil), b[:h.Len]...)
	for range 2 {
		o.Stamp(header, h.Dst, ih.millis(now), ih.ifs.isOwn)
	}
	for _, at := range []int{o.RecordRoute, o.Timestamp} {
		if at != 0 {
			options = append(options, header[at:at+int(header[at+1])]...)
		}
	}
	return options
}

// deliverError passes an error that arrived at interface i to the protocol whose datagram it
// quotes.
func (ih *icmpHost) deliverError(now clock.Time, i int, m *icmp.Message) ip.DropReason {
	mtu, tooBig := m.TooBig()
	if m.Type.Is6() && tooBig && mtu < ip.MinMTU6 {
		return ip.DropICMPMTU // RFC 8201 §4, RFC 8021 §4: nodes send no atomic fragments
	}
	quoted, rest, ok := icmp.Quoted(m.Body)
	if !ok || quoted.Src.Is6() != m.Type.Is6() {
		return ip.DropNone
	}
	quoted.Src, quoted.Dst = ih.ifs.list[i].zoned(quoted.Src), ih.ifs.list[i].zoned(quoted.Dst)
	if !ih.ifs.isOwn(quoted.Src) && ih.local.catching == (catching{}) {
		return ip.DropNone // the message quotes no datagram of this node
	}
	if m.Type == icmp.TypeTooBig && mtu < quoted.TotalLen {
		ih.out.paths.learn(now, quoted.Dst, mtu)
	}
	switch quoted.Protocol {
	case ip.ProtoTCP:
		ih.tcpError(now, quoted, rest, m)
	case ip.ProtoUDP:
		ih.udpError(now, quoted, rest, m)
	}
	return ip.DropNone
}

// tcpError passes an ICMP error to the connection whose segment it quotes.
func (ih *icmpHost) tcpError(now clock.Time, q icmp.Quote, rest []byte, m *icmp.Message) {
	t, seq := quotedTuple(q, rest), binary.BigEndian.Uint32(rest[4:])
	if mtu, tooBig := m.TooBig(); tooBig {
		ih.tcp.TooBig(now, t, seq, reportedMTU(q, mtu))
		return
	}
	r := m.Report()
	ih.tcp.Unreachable(now, t, seq, r, r.Refuses())
}

// reportedMTU returns the MTU that a router reported (RFC 1191 §4), or an estimate if the router
// predates RFC 1191 and reports 0.
func reportedMTU(q icmp.Quote, mtu int) int {
	if mtu != 0 {
		return mtu
	}
	return tcp.Plateau(q.TotalLen)
}

// quotedTuple returns the connection whose segment an error quotes.
func quotedTuple(q icmp.Quote, rest []byte) tcp.Tuple {
	return tcp.Tuple{
		LocalAddr: q.Src, RemoteAddr: q.Dst,
		LocalPort: binary.BigEndian.Uint16(rest), RemotePort: binary.BigEndian.Uint16(rest[2:]),
	}
}

// reportError sends the source of original the reason for its drop.
func (ih *icmpHost) reportError(
	now clock.Time, i int, typ icmp.Type, code uint8, original []byte,
) {
	ih.report(now, i, icmp.ReportError{Type: typ, Code: code}, 0, original)
}

// rejectExtension drops a packet of interface i because of an IPv6 extension header.
func (ih *icmpHost) rejectExtension(now clock.Time, i int, r ip.Refusal, b []byte) {
	ih.ifs.dropOne(now, i, Inbound, r.Drop, b)
	if r.Report {
		e := icmp.ReportError{Type: icmp.TypeParameterProblem6, Code: r.Code}
		ih.report(now, i, e, r.Pointer, b)
	}
}

// reportTooBig sends a fragmentation needed with the next hop's MTU (RFC 1191 §4), or a packet too
// big (RFC 4443 §3.2).
func (ih *icmpHost) reportTooBig(now clock.Time, i, mtu int, original []byte) {
	ih.report(now, i, icmp.ReportError{Type: icmp.TypeUnreachable, Code: icmp.CodeFragNeeded},
		mtu, original)
}

// report sends an error message about a packet that arrived at interface i, if RFC 1122 §3.2.2 or
// RFC 4443 §2.4 permits one and the rate limit has room (RFC 1812 §4.3.2.8). Its source is the
// packet's destination if that is an address of this node. Otherwise it is the address of the
// interface toward the packet's source (RFC 1812 §4.3.2.4, RFC 4443 §2.2). Its type of service is
// the packet's with precedence 6, internetwork control (RFC 1812 §4.3.2.5).
func (ih *icmpHost) report(
	now clock.Time, i int, r icmp.ReportError, value int, original []byte,
) {
	const precedence, internetControl = 0xe0, 6 << 5
	if !icmp.MayReport(original, r, ih.in.self) {
		return
	}
	src, dst, tos := ip.Outline(original)
	h := ip.Header{
		Protocol: icmpOf(src), Dst: ih.ifs.list[i].zoned(src),
		TOS: tos&^(precedence|ecnBits) | internetControl,
	}
	if ih.ifs.isAnyBroadcast(v4Of(src)) || ih.ifs.isAnyBroadcast(v4Of(dst)) {
		return
	}
	if dst = ih.ifs.list[i].zoned(dst); ih.ifs.isOwn(dst) {
		h.Src = dst
	}
	size := ip.MaxPacketLen
	out, self := ih.ifs.self(h.Dst)
	if !self {
		if ih.knobs.ICMP.NoErrors {
			return
		}
		var err error
		if out, _, err = ih.routing.nextHop(h.Dst); err != nil {
			return // an error message that cannot be sent is lost, like any datagram
		}
		size = ih.ifs.list[out].MTU
	}
	if !h.Src.IsValid() {
		h.Src = ih.ifs.Source(out, h.Dst)
	}
	if !ih.bucket.Take(now) {
		ih.ifs.list[out].tx.drops[ip.DropICMPRate]++ // there is no packet to show to the tap
		return
	}
	_ = ih.out.send(now, h, icmp.Error(nil, h.Src, r, value, original, size))
}

// icmpOf returns the protocol number of ICMP for a's family.
func icmpOf(a netip.Addr) uint8 {
	if a.Is6() {
		return ip.ProtoICMPv6
	}
	return ip.ProtoICMP
}

// ecnBits are the bits of the ECN field in the type of service (RFC 3168 §5).
const ecnBits = 3

// udpError passes an ICMP error to the socket whose datagram it quotes.
func (ih *icmpHost) udpError(now clock.Time, q icmp.Quote, rest []byte, m *icmp.Message) {
	local := netip.AddrPortFrom(q.Src, binary.BigEndian.Uint16(rest))
	remote := netip.AddrPortFrom(q.Dst, binary.BigEndian.Uint16(rest[2:]))
	r := m.Report()
	mtu, tooBig := m.TooBig()
	switch {
	case tooBig:
		ih.udp.TooBig(now, local, remote, q.TotalLen, max(ip.MinMTU, reportedMTU(q, mtu)))
	case r.Refuses():
		ih.udp.Report(local, remote, udp.ErrRefused)
	case r.Permanent():
		ih.udp.Report(local, remote, r)
	default:
		ih.udp.Report(local, remote, nil)
	}
}

// readOptions handles the options of a packet that is delivered or forwarded. It returns false if
// the packet is dropped because of them. Source routes are dropped with an ICMP error, as RFC 7126
// §4.3.5 and §4.4.5 advise. RFC 1812 §5.3.13.4 would forward them. Security options, router alerts
// and unknown options are ignored. RFC 7126 §4.5.5 and §4.7.5 advise dropping record route and
// timestamp as well, to protect production networks; this stack supports them because they help to
// understand a network.
func (ih *icmpHost) readOptions(now clock.Time, i int, h *ip.Header, b []byte) bool {
	if h.Is6() {
		r := h.CheckOptions(b)
		if r.Drop != ip.DropNone {
			r.Report = r.Report && ih.mayAnswer(i, h)
			ih.rejectExtension(now, i, r, b)
		}
		return r.Drop == ip.DropNone
	}
	o, pointer, ok := ip.ParseOptions(h.Options)
	switch {
	case !ok:
		ih.ifs.dropOne(now, i, Inbound, ip.DropOption, b)
		if ih.mayAnswer(i, h) {
			ih.report(now, i, icmp.ReportError{Type: icmp.TypeParameterProblem}, pointer, b)
		}
		return false
	case o.SourceRoute != 0:
		ih.ifs.dropOne(now, i, Inbound, ip.DropSourceRoute, b)
		if ih.mayAnswer(i, h) {
			ih.reportError(now, i, icmp.TypeUnreachable, icmp.CodeSourceRoute, b)
		}
		return false
	}
	return true
}

// mayAnswer reports whether the node may send an error about a packet. A host sends none about
// packets to other hosts (RFC 1122 §3.2.1.3).
func (ih *icmpHost) mayAnswer(i int, h *ip.Header) bool {
	return ih.ifs.router || ih.ifs.isOurs(i, h.Dst)
}

// stamp adds the node to the record route and the timestamp of a packet, with the given address
// (RFC 1812 §5.3.13.5, §5.3.13.6).
func (ih *icmpHost) stamp(now clock.Time, h *ip.Header, b []byte, self netip.Addr) {
	if h.Options != nil && !h.Is6() {
		o, _, _ := ip.ParseOptions(h.Options) // readOptions has validated the options
		o.Stamp(b, self, ih.millis(now), ih.ifs.isOwn)
	}
}

// millis returns the time in the form of timestamps: milliseconds since midnight UT (RFC 791 §3.1,
// RFC 792).
func (ih *icmpHost) millis(now clock.Time) uint32 {
	const day = 24 * time.Hour
	return uint32((ih.timeOfDay + time.Duration(now)) % day / time.Millisecond)
}
