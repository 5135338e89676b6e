package nat

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// These are offsets in headers, and lengths of headers (RFC 791 §3.1, RFC 9293 §3.1, RFC 768).
const (
	headerLen   = 20
	fragmentAt  = 6
	protocolAt  = 9
	sumAt       = 10
	srcAt       = 12
	dstAt       = 16
	dstPortAt   = 2
	tcpFlagsAt  = 13
	tcpSumAt    = 16
	udpSumAt    = 6
	icmpSumAt   = 2
	icmpIDAt    = 4
	leastTCP    = 20
	leastOthers = 8 // length of UDP's and ICMP's headers
)

// addrOf and number convert an IPv4 address from and to a number.
func addrOf(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// change contains the sums of 16-bit words before and after a translation, for the address alone
// and for address and port.
type change struct{ addrWas, addrIs, allWas, allIs uint16 }

func changeOf(was, is endpoint) change {
	words := func(a uint32) uint64 { return uint64(a>>16) + uint64(a&0xffff) }
	fold := func(s uint64) uint16 {
		s = s>>16 + s&0xffff
		return uint16(s>>16 + s&0xffff)
	}
	return change{
		addrWas: fold(words(was.addr)), addrIs: fold(words(is.addr)),
		allWas: fold(words(was.addr) + uint64(was.port)),
		allIs:  fold(words(is.addr) + uint64(is.port)),
	}
}

// update changes the checksum at b (RFC 1624 §3).
func update(b []byte, was, is uint16) {
	stored := binary.BigEndian.Uint16(b)
	binary.BigEndian.PutUint16(b, checksum.Update(stored, was, is))
}

// setSums computes the session's changes.
func (s *session) setSums(outside uint32) {
	public := endpoint{outside, s.port}
	s.sums = [2]change{changeOf(s.inside, public), changeOf(public, s.inside)}
}

// outline contains the parts of a packet that a NAT reads.
type outline struct {
	transport []byte // transport header and payload
	src, dst  endpoint
	protocol  uint8
	flags     byte // TCP flags
	query     bool // an ICMP query or its reply; src and dst have its identifier
	reply     bool
	isError   bool // the packet is an ICMP error
}

// These are ICMP types.
const (
	echoReply        = 0
	unreachable      = 3
	echo             = 8
	timeExceeded     = 11
	parameterProblem = 12
	timestamp        = 13
	timestampReply   = 14
)

// read reads a packet whose IP header is valid. If quoted is set, the packet is from an ICMP error,
// and eight bytes of its transport header suffice.
func read(b []byte, quoted bool) (o outline, v Verdict) {
	size := int(b[0]&0x0f) * 4
	if size < headerLen || size > len(b) {
		return o, Malformed
	}
	const offset, more = 0x1fff, 0x2000
	fragment := binary.BigEndian.Uint16(b[fragmentAt:])
	if fragment&offset != 0 || fragment&more != 0 && !quoted {
		return o, Malformed // a later fragment has no ports; the router must reassemble first
	}
	o.transport, o.protocol = b[size:], b[protocolAt]
	o.src.addr = binary.BigEndian.Uint32(b[srcAt:])
	o.dst.addr = binary.BigEndian.Uint32(b[dstAt:])
	least := leastOthers
	if o.protocol == tcp && !quoted {
		least = leastTCP
	}
	if len(o.transport) < least {
		return o, Malformed
	}
	switch o.protocol {
	case tcp, udp:
		o.src.port = binary.BigEndian.Uint16(o.transport)
		o.dst.port = binary.BigEndian.Uint16(o.transport[dstPortAt:])
		if o.protocol == tcp && !quoted {
			o.flags = o.transport[tcpFlagsAt]
		}
		return o, Translate
	case icmp:
		return o, o.readICMP()
	}
	return o, Unsupported
}

func (o *outline) readICMP() Verdict {
	id := binary.BigEndian.Uint16(o.transport[icmpIDAt:])
	switch o.transport[0] {
	case echo, timestamp:
		o.query, o.src.port = true, id
	case echoReply, timestampReply:
		o.query, o.reply, o.dst.port = true, true, id
	case unreachable, timeExceeded, parameterProblem:
		o.isError = true
	default:
		return Unsupported
	}
	return Translate
}

// Match is the translation of one packet.
type Match struct {
	nat     *NAT
	session *session
	dir     direction
	flags   byte // TCP flags
	isError bool
	size    int // length of the IP header
	quoted  int // length of the IP header that an ICMP error quotes
}

// Inside returns the inside address of the packet.
func (m *Match) Inside() netip.Addr { return addrOf(m.session.inside.addr) }

// Outbound returns the translation of a packet from inside, whose IP header is valid.
func (n *NAT) Outbound(now clock.Time, b []byte) (m Match, v Verdict) {
	o, v := read(b, false)
	if v != Translate {
		return m, v
	}
	if o.isError {
		return n.translateError(b, &o, outbound)
	}
	if o.reply {
		o.src.port = o.dst.port // an inside host answers a query from outside
		o.dst.port = 0
	}
	s := n.insideSessions[pair(o.src, o.dst, o.protocol)]
	if s == nil {
		if o.reply {
			return m, Untranslated
		}
		mp, v := n.outboundMapping(o.src, o.dst, o.protocol)
		if v == Translate {
			s, v = n.add(now, mp, o.dst, outbound)
		}
		if v != Translate {
			n.info.Refused++
			return m, v
		}
		n.removeHeld(s)
	}
	return n.match(b, &o, s, outbound), Translate
}

func (n *NAT) match(b []byte, o *outline, s *session, dir direction) Match {
	return Match{
		nat: n, session: s, dir: dir, flags: o.flags, size: len(b) - len(o.transport),
	}
}

// Known is like Outbound or Inbound, for a packet of an existing session that is not an ICMP
// message.
func (n *NAT) Known(b []byte, inward bool) (m Match, ok bool) {
	o, v := read(b, false)
	if v != Translate || o.isError || o.query {
		return m, false
	}
	dir, key, sessions := outbound, pair(o.src, o.dst, o.protocol), n.insideSessions
	if inward {
		dir, sessions = inbound, n.outsideSessions
		key = pair(endpoint{port: o.dst.port}, o.src, o.protocol)
	}
	r := &n.recent[dir]
	if r.key != key || r.session == nil {
		s := sessions[key]
		if s == nil {
			return m, false
		}
		*r = recent{key, s}
	}
	return n.match(b, &o, r.session, dir), true
}

// recent is the last session that Known found. The next packet often belongs to the same session.
type recent struct {
	key     pairKey
	session *session
}

// Inbound returns the translation of a packet to the outside address, whose IP header is valid.
func (n *NAT) Inbound(now clock.Time, b []byte) (m Match, v Verdict) {
	o, v := read(b, false)
	switch {
	case v == Unsupported, o.dst.addr != n.outside:
		return m, Untranslated
	case v != Translate:
		return m, v
	case o.isError:
		return n.translateError(b, &o, inbound)
	case o.query && !o.reply:
		return m, Untranslated // the query is for the router
	}
	remote, public := o.src, endpoint{port: o.dst.port}
	s := n.outsideSessions[pair(public, remote, o.protocol)]
	if s == nil {
		if s, v = n.admit(now, b, &o); v != Translate {
			return m, v
		}
	}
	return n.match(b, &o, s, inbound), Translate
}

// admit decides whether a packet from outside without a session is accepted, and adds a session.
func (n *NAT) admit(now clock.Time, b []byte, o *outline) (*session, Verdict) {
	m := n.ports[portOf(o.protocol, o.dst.port)]
	if n.owns(o.protocol, o.dst.port, o.src) || m == nil && o.flags&(syn|ack) != syn {
		return nil, Untranslated
	}
	if o.protocol == icmp {
		return nil, Untranslated // RFC 5508 §3.1: only replies are accepted
	}
	if m != nil && (m.forward || n.accepts(m, o)) {
		return n.add(now, m, o.src, inbound)
	}
	if o.flags&(syn|ack) == syn {
		n.hold(now, b, o)
		return nil, Held
	}
	n.info.Filtered++
	return nil, Filtered
}

// accepts reports whether the filter of a mapping accepts a remote endpoint without a session (RFC
// 4787 §5, RFC 5382 §4.3).
func (n *NAT) accepts(m *mapping, o *outline) bool {
	if n.cfg.Filtering == AddressDependent {
		return m.remotes[o.src.addr] > 0
	}
	return n.cfg.Filtering == EndpointIndependent
}

// hold keeps a SYN from outside until synWait is over (RFC 5382 §4.3).
func (n *NAT) hold(now clock.Time, b []byte, o *outline) {
	key := pair(endpoint{port: o.dst.port}, o.src, o.protocol)
	for i := range n.held {
		if n.held[i].key == key {
			return // the SYN is a retransmission
		}
	}
	const header = 128 // headers have at most 120 bytes; a SYN's data is not quoted
	if len(n.held) < maxHeld {
		b = b[:min(len(b), header)]
		n.held = append(n.held, held{key, now.Add(synWait), append([]byte(nil), b...)})
	}
}

// removeHeld removes the held SYN of a connection that an inside host opens at the same time (RFC
// 5382 §4.2, §4.3).
func (n *NAT) removeHeld(s *session) {
	for i := range n.held {
		if n.held[i].key == pair(endpoint{port: s.port}, s.remote, s.protocol) {
			n.held = append(n.held[:i:i], n.held[i+1:]...)
			return
		}
	}
}

// Hairpins reports whether a packet from inside to the outside address is for an inside host (RFC
// 4787 §6, RFC 5382 §7.2, RFC 5508 §5). Such a packet is an ICMP error, or its port has a mapping.
func (n *NAT) Hairpins(b []byte) bool {
	o, v := read(b, false)
	return v == Translate && (o.isError ||
		!o.query && n.ports[portOf(o.protocol, o.dst.port)] != nil)
}

// translateError returns the translation of an ICMP error about a packet of a session (RFC 5508
// §4). It neither refreshes nor removes the session (RFC 5508 §4.3).
func (n *NAT) translateError(b []byte, o *outline, dir direction) (m Match, v Verdict) {
	const quoteAt = 8
	quote := o.transport[quoteAt:]
	// RFC 5508 §4.1: the checksums of the message and of the quoted header must be valid, and IP
	// options must not hide the transport header.
	if len(quote) < headerLen || !checksum.Verify(o.transport, 0) || quote[0]>>4 != 4 {
		return m, Malformed
	}
	size := int(quote[0]&0x0f) * 4
	if size < headerLen || size > len(quote) || !checksum.Verify(quote[:size], 0) {
		return m, Malformed
	}
	q, v := read(quote, true)
	if v != Translate || q.isError {
		return m, Unsupported // RFC 1122 §3.2.2: no error about an error
	}
	// The quoted packet went in the other direction.
	from, to := q.src, q.dst
	var s *session
	if dir == inbound {
		if from.addr != n.outside {
			return m, Untranslated
		}
		s = n.outsideSessions[pair(endpoint{port: from.port}, to, q.protocol)]
	} else {
		s = n.insideSessions[pair(to, from, q.protocol)]
	}
	if s == nil {
		return m, Untranslated
	}
	m = n.match(b, o, s, dir)
	m.isError, m.quoted = true, size
	return m, Translate
}

// Apply translates the packet of the match, which the router sends at the time now, and counts it
// for its session. It updates checksums, and a wrong checksum stays wrong.
func (m *Match) Apply(now clock.Time, b []byte) {
	s := m.session
	if m.isError {
		m.nat.packets[m.dir]++
		m.applyError(b)
		return
	}
	m.nat.touch(now, s, m.dir, m.flags)
	if m.dir == outbound {
		put(b, m.size, srcAt, 0, endpoint{m.nat.outside, s.port}, &s.sums[outbound])
	} else {
		put(b, m.size, dstAt, dstPortAt, s.inside, &s.sums[inbound])
	}
}

// put writes an address and a port into a packet, at the given offsets in its IP and its transport
// header.
func put(b []byte, size, addrAt, portAt int, e endpoint, c *change) {
	binary.BigEndian.PutUint32(b[addrAt:], e.addr)
	update(b[sumAt:], c.addrWas, c.addrIs)
	t := b[size:]
	switch b[protocolAt] {
	case tcp:
		binary.BigEndian.PutUint16(t[portAt:], e.port)
		if len(t) >= tcpSumAt+2 {
			update(t[tcpSumAt:], c.allWas, c.allIs)
		}
	case udp:
		binary.BigEndian.PutUint16(t[portAt:], e.port)
		if sum := t[udpSumAt:]; sum[0]|sum[1] != 0 { // RFC 768: zero means no checksum
			update(sum, c.allWas, c.allIs)
			if sum[0]|sum[1] == 0 {
				sum[0], sum[1] = 0xff, 0xff
			}
		}
	case icmp: // ICMP's checksum does not cover the addresses
		was := binary.BigEndian.Uint16(t[icmpIDAt:])
		binary.BigEndian.PutUint16(t[icmpIDAt:], e.port)
		update(t[icmpSumAt:], was, e.port)
	}
}

// applyError translates an ICMP error. In the quoted packet, it restores the addresses that the
// packet's sender used (RFC 5508 §4.2).
func (m *Match) applyError(b []byte) {
	s := m.session
	message := b[m.size:]
	quote := message[8:]
	addr, at := m.nat.outside, srcAt
	if m.dir == inbound {
		// The quoted packet came from the inside host, so its source was translated.
		put(quote, m.quoted, srcAt, 0, s.inside, &s.sums[inbound])
		addr, at = s.inside.addr, dstAt
	} else {
		put(quote, m.quoted, dstAt, dstPortAt, endpoint{m.nat.outside, s.port}, &s.sums[outbound])
	}
	was := changeOf(endpoint{addr: binary.BigEndian.Uint32(b[at:])}, endpoint{addr: addr})
	binary.BigEndian.PutUint32(b[at:], addr)
	update(b[sumAt:], was.addrWas, was.addrIs)
	message[icmpSumAt], message[icmpSumAt+1] = 0, 0
	binary.BigEndian.PutUint16(message[icmpSumAt:], checksum.Checksum(message))
}
