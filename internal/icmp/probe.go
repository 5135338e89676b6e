package icmp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Kind is a kind of probe.
type Kind uint8

// These are the kinds of probes.
const (
	Echo     Kind = iota // an echo request (RFC 792, RFC 4443 §4.1)
	Datagram             // a UDP datagram to a port that is probably closed
	SYN                  // a TCP SYN; the connection is never opened
)

// Packet is a probe to send. An echo has an identifier and a sequence number, the others a source
// and a destination port.
type Packet struct {
	Kind    Kind
	Dst     netip.Addr
	Src     netip.Addr // source; invalid: the address of the outgoing interface
	Iface   int        // outgoing interface; negative: the route's
	TTL     uint8      // TTL of the packet; 0: the host's default
	TOS     uint8
	DF      bool // forbids fragmentation
	ID, Seq uint16
	Data    []byte // valid until the next call of Output
}

// Verdict is what an answer says about its probe.
type Verdict uint8

// These are the verdicts.
const (
	Replied     Verdict = iota // the destination answered
	Expired                    // the probe's TTL expired
	Unreachable                // a router or the destination cannot deliver the probe
	Noted                      // a router sent information; the probe was still forwarded
	Failed                     // this node did not send the probe
)

// Answer is a packet, or an error of this host, about a probe.
type Answer struct {
	Kind    Kind
	ID, Seq uint16     // identification of the probe
	Dst     netip.Addr // destination of the probe, if known
	From    netip.Addr // sender of the answer
	TTL     int        // TTL of the answer when it arrived
	Bytes   int        // length of the answer after its IP header
	Verdict Verdict
	Type    Type // type of the ICMP message, if the answer is one
	Code    uint8
	MTU     int        // MTU of the next link, if the probe was too large; 0: unknown
	Gateway netip.Addr // new next hop of a redirect
	Pointer int        // offset of a parameter problem
	Data    []byte     // data of an echo reply; valid during the call
	Damaged bool       // the checksum is wrong
	Err     error      // error of a Failed probe
}

// Parse sets fields from the ICMP message b, which was sent from a.From to dst. It returns false if
// the message cannot be an answer to a probe.
func (a *Answer) Parse(b []byte, dst netip.Addr) bool {
	m, intact := Parse(b, a.From, dst)
	request, reply := EchoTypes(a.From)
	if !intact {
		if len(b) < HeaderLen || b[0] != reply.Number() {
			return false
		}
		m = parse(b, a.From)
	}
	a.Type, a.Code, a.Damaged = m.Type, m.Code, !intact
	if m.Type == reply {
		a.Kind, a.Data = Echo, m.Body
		a.ID, a.Seq = m.Echo()
		return true
	}
	switch m.Type {
	case TypeTimeExceeded, TypeTimeExceeded6:
		a.Verdict = Expired
	case TypeUnreachable, TypeUnreachable6, TypeTooBig:
		a.Verdict = Unreachable
		a.MTU, _ = m.TooBig()
	case TypeParameterProblem, TypeParameterProblem6:
		a.Verdict, a.Pointer = Unreachable, m.Pointer()
	case TypeRedirect:
		a.Verdict, a.Gateway = Noted, netip.AddrFrom4(m.Rest)
	case TypeSourceQuench:
		a.Verdict = Noted
	default:
		return false
	}
	q, rest, ok := Quoted(m.Body)
	if !ok || q.Src.Is6() != a.From.Is6() {
		return false
	}
	a.Dst = q.Dst
	a.ID, a.Seq = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	switch q.Protocol {
	case protocolICMP, protocolICMP6:
		a.Kind = Echo
		a.ID, a.Seq = binary.BigEndian.Uint16(rest[4:]), binary.BigEndian.Uint16(rest[6:])
		return rest[0] == request.Number()
	case protocolUDP:
		a.Kind = Datagram
	case protocolTCP:
		a.Kind = SYN
	default:
		return false
	}
	return true
}

// Reply is an answer for the user.
type Reply struct {
	Answer
	At  clock.Time    // time of arrival
	RTT time.Duration // round-trip time since the probe was sent
	// Duplicate marks a second reply to a request. Elsewhere marks a reply from an address other
	// than the destination. Late marks a request that had no reply when the next one was sent.
	Duplicate, Elsewhere, Late bool
	// WrongAt is the offset of the first wrong byte in an echo's data; negative: all bytes are
	// right. Want is the expected value of that byte.
	WrongAt int
	Want    byte
	// PathMTU is the new path MTU up to this hop, if a trace has just found one; 0: unchanged.
	PathMTU int
}

// maxReplies is the maximum number of replies that wait for Next. Further replies are only counted.
const maxReplies = 1024

// replies is the queue of replies for the owner.
type replies struct{ queue []Reply }

func (r *replies) addReply(reply Reply) {
	if len(r.queue) < maxReplies {
		r.queue = append(r.queue, reply)
	}
}

// Next returns the oldest queued reply.
func (r *replies) Next() (Reply, bool) {
	if len(r.queue) == 0 {
		return Reply{}, false
	}
	first := r.queue[0]
	r.queue = r.queue[1:]
	return first, true
}
