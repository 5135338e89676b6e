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

// icmpHost answers queries, reports errors to the senders of packets, and tells the protocols
// about reports that arrive.
type icmpHost struct {
	ifs     *Interfaces
	routing *Routing
	local   *local
	out     *sender
	tcp     *tcp.Host
	udp     *udp.Host
	in      *incoming
	knobs   *Knobs

	bucket    icmp.Bucket   // of errors
	timeOfDay time.Duration // see Config
}

// input takes an ICMP message for this node. What is not answered is taken in
// silence: redirects, for a route is the operator's or RIP's to change (RFC 1812 §5.2.7.2
// has routers ignore them; RFC 1122 §3.2.2.2 would have a host obey whoever sends one);
// source quenches (RFC 6633 §3); and the address masks, information requests and router
// discovery that RFC 6918 §2 and others have retired.
func (ih *icmpHost) input(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	m, ok := icmp.Parse(payload)
	if !ok {
		return ip.DropICMP
	}
	switch m.Type {
	case icmp.TypeEcho:
		m.Type = icmp.TypeEchoReply
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
		ih.hear(now, &m)
	}
	return ip.DropNone
}

// reply answers the query b with m, if a query to its destination is answered at all.
// RFC 1122 §3.2.2.6: the reply's source is the request's destination, and RFC 1812
// §4.3.2.5: its type of service is the request's.
func (ih *icmpHost) reply(now clock.Time, i int, h *ip.Header, m *icmp.Message, b []byte) {
	r := ip.Header{
		Protocol: ip.ProtoICMP, TTL: defaultTTL, TOS: h.TOS, Src: h.Dst, Dst: h.Src,
		Options: ih.returned(now, h, b),
	}
	if !ih.ifs.isHost(h.Dst) {
		// RFC 1122 §3.2.2.6 and §3.2.2.8: what all were asked may be ignored, lest all
		// answer at once.
		if !ih.knobs.ICMP.EchoBroadcast || m.Type != icmp.TypeEchoReply {
			return
		}
		r.Src = ih.ifs.list[i].addr
	}
	if special(r.Dst) && !ih.ifs.isHost(r.Dst) || ih.ifs.isMany(r.Dst) {
		return
	}
	_ = ih.out.send(now, r, m.Append(nil)) // a reply that finds no way is a reply that was lost
}

// returned are the options of a reply: the query's record route and timestamp, with this
// node in them (RFC 1122 §3.2.2.6, §3.2.2.8) twice: as the end of the way there, and as
// the beginning of the way back. The rest of the options is not repeated.
func (ih *icmpHost) returned(now clock.Time, h *ip.Header, b []byte) (options []byte) {
	if h.Options == nil {
		return nil
	}
	o, _, _ := ip.ParseOptions(h.Options) // readOptions has found them right
	header := append([]byte(nil), b[:h.IHL]...)
	for range 2 {
		o.Stamp(header, h.Dst, ih.millis(now), ih.ifs.isHost)
	}
	for _, at := range []int{o.RecordRoute, o.Timestamp} {
		if at != 0 {
			options = append(options, header[at:at+int(header[at+1])]...)
		}
	}
	return options
}

// hear gives an error to whom it concerns: the sender of the datagram
// that it quotes.
func (ih *icmpHost) hear(now clock.Time, m *icmp.Message) {
	quoted, rest, ok := icmp.Quoted(m.Body)
	if !ok || !ih.ifs.isHost(quoted.Src) && ih.local.catching == (catching{}) {
		return // nothing that was sent here
	}
	switch quoted.Protocol {
	case ip.ProtoTCP:
		if m.Type == icmp.TypeUnreachable && m.Code == icmp.CodeFragNeeded {
			ih.tcp.TooBig(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]),
				reportedMTU(quoted, m))
			return
		}
		r := m.Report()
		ih.tcp.Unreachable(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]), r,
			r.Refuses())
	case ip.ProtoUDP:
		ih.hearUDP(now, quoted, rest, m)
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
func (ih *icmpHost) reportError(now clock.Time, typ, code uint8, original []byte) {
	ih.report(now, typ, code, [4]byte{}, original)
}

// reportTooBig reports fragmentation needed with the next hop's MTU (RFC 1191 §4).
func (ih *icmpHost) reportTooBig(now clock.Time, mtu int, original []byte) {
	ih.report(now, icmp.TypeUnreachable, icmp.CodeFragNeeded, icmp.MTURest(mtu), original)
}

// report sends an error message about a packet, if one may be sent (RFC 1122 §3.2.2) and
// the limit allows it (RFC 1812 §4.3.2.8). Its source is the address that the packet was
// for, if that is ours, else that of the interface which leads back (RFC 1812 §4.3.2.4).
// Its type of service is the packet's, its precedence 6, internetwork control (RFC 1812
// §4.3.2.5).
func (ih *icmpHost) report(now clock.Time, typ, code uint8, rest [4]byte, original []byte) {
	const tos, precedence, internetControl = 1, 0xe0, 6 << 5
	if !icmp.MayReport(original, ih.in.self) {
		return
	}
	h := ip.Header{
		Protocol: ip.ProtoICMP, TTL: defaultTTL, Dst: ip.Addr(original[12:16]),
		TOS: original[tos]&^(precedence|ecnBits) | internetControl,
	}
	dst := ip.Addr(original[16:20])
	if ih.ifs.isMany(h.Dst) || ih.ifs.isMany(dst) {
		return
	}
	if ih.ifs.isHost(dst) {
		h.Src = dst
	}
	size := ip.MaxPacketLen
	i, self := ih.ifs.self(h.Dst)
	if !self {
		if ih.knobs.ICMP.NoErrors {
			return
		}
		var err error
		if i, _, err = ih.routing.way(h.Dst); err != nil {
			return // a report that cannot be sent is lost, like any other datagram
		}
		size = ih.ifs.list[i].MTU
	}
	if !ih.bucket.Take(now) {
		ih.ifs.list[i].tx.drops[ip.DropICMPRate]++ // there is nothing to show to a tap
		return
	}
	_ = ih.out.send(now, h, icmp.Error(nil, typ, code, rest, original, size))
}

// ecnBits are those of the type of service that are congestion's (RFC 3168 §5).
const ecnBits = 3

// hearUDP gives an ICMP error to the socket whose datagram it quotes.
func (ih *icmpHost) hearUDP(now clock.Time, q icmp.Quote, rest []byte, m *icmp.Message) {
	local := netip.AddrPortFrom(netip.AddrFrom4(q.Src), binary.BigEndian.Uint16(rest))
	remote := netip.AddrPortFrom(netip.AddrFrom4(q.Dst), binary.BigEndian.Uint16(rest[2:]))
	r := m.Report()
	switch {
	case m.Type == icmp.TypeUnreachable && m.Code == icmp.CodeFragNeeded:
		ih.udp.TooBig(now, local, remote, q.TotalLen, max(ip.MinMTU, reportedMTU(q, m)))
	case r.Refuses():
		ih.udp.Report(local, remote, udp.ErrRefused)
	case r.Lasting():
		ih.udp.Report(local, remote, r)
	default:
		ih.udp.Report(local, remote, nil)
	}
}

// readOptions looks through the options of a packet that goes on, here or to others;
// false: it does not, because of them. Nobody may say which way a packet takes: source
// routes are refused, as RFC 7126 §4.3.5 and §4.4.5 advise, and RFC 1812 §5.3.13.4 is not
// followed. Their sender is told. Security options, router alerts and what is unknown
// are left alone. That RFC 7126 §4.5.5 and §4.7.5 would have recorded routes and times
// dropped, too, is for networks that somebody pays for: here they are to be seen.
func (ih *icmpHost) readOptions(now clock.Time, i int, h *ip.Header, b []byte) bool {
	o, pointer, ok := ip.ParseOptions(h.Options)
	switch {
	case !ok:
		ih.ifs.dropOne(now, i, Inbound, ip.DropOption, b)
		if ih.mayAnswer(i, h) {
			ih.report(now, icmp.TypeParameterProblem, 0, icmp.PointerRest(pointer), b)
		}
		return false
	case o.SourceRoute != 0:
		ih.ifs.dropOne(now, i, Inbound, ip.DropSourceRoute, b)
		if ih.mayAnswer(i, h) {
			ih.reportError(now, icmp.TypeUnreachable, icmp.CodeSourceRoute, b)
		}
		return false
	}
	return true
}

// mayAnswer reports whether a packet is any of the node's business: a host is silent
// about what is for others (RFC 1122 §3.2.1.3).
func (ih *icmpHost) mayAnswer(i int, h *ip.Header) bool {
	return ih.routing.forwards || ih.ifs.isOurs(i, h.Dst)
}

// stamp enters the node into the record route and the timestamp of a packet that goes on
// from the given address (RFC 1812 §5.3.13.5, §5.3.13.6).
func (ih *icmpHost) stamp(now clock.Time, h *ip.Header, b []byte, self ip.Addr) {
	if h.Options != nil {
		o, _, _ := ip.ParseOptions(h.Options) // readOptions has found them right
		o.Stamp(b, self, ih.millis(now), ih.ifs.isHost)
	}
}

// millis is the time as timestamps have it: milliseconds since midnight UT (RFC 791 §3.1,
// RFC 792).
func (ih *icmpHost) millis(now clock.Time) uint32 {
	const day = 24 * time.Hour
	return uint32((ih.timeOfDay + time.Duration(now)) % day / time.Millisecond)
}
