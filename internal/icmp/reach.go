package icmp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Kind is what a probe is made of.
type Kind uint8

// The kinds of probe.
const (
	Echo     Kind = iota // an ICMP echo request (RFC 792)
	Datagram             // a UDP datagram to a port that hopefully nobody has
	SYN                  // a TCP segment that opens nothing
)

// Packet is a probe to be sent. An echo has an identifier and a sequence number,
// the others a source and a destination port.
type Packet struct {
	Kind    Kind
	Dst     netip.Addr
	Src     netip.Addr // invalid: that of the way out
	Iface   int        // negative: the one that the routing table says
	TTL     uint8      // 0: the host's own
	TOS     uint8
	DF      bool // not to be fragmented by anybody
	ID, Seq uint16
	Data    []byte // lent until the next call of Output
}

// Verdict is what an answer says of its probe.
type Verdict uint8

// The verdicts.
const (
	Replied     Verdict = iota // it reached its destination, which answered
	Expired                    // its TTL ran out on the way
	Unreachable                // it can go no further
	Noted                      // a router remarks something, and the probe lives on
	Failed                     // it never left this host
)

// Answer is a packet, or a failure of our own, that is about a probe.
type Answer struct {
	Kind       Kind
	ID, Seq    uint16     // the probe's
	Dst        netip.Addr // the probe's destination, as far as the answer tells
	From       netip.Addr // who answers
	TTL        int        // of the answer, as it arrived
	Bytes      int        // of the answer behind its IP header
	Verdict    Verdict
	Type, Code uint8      // of the ICMP message, if it is one
	MTU        int        // of the next link, where a probe was too large for it; 0: not told
	Gateway    netip.Addr // of a redirect: where the next packets should go
	Pointer    uint8      // where a parameter problem lies
	Data       []byte     // of an echo reply; lent for the call
	Damaged    bool       // its checksum is wrong
	Err        error      // of a probe that Failed
}

// Reply is an answer as a user wants to see it.
type Reply struct {
	Answer
	At  clock.Time    // when it arrived
	RTT time.Duration // since its probe was sent
	// Duplicate is a reply to what was answered already, Elsewhere one that came from
	// another address than was asked, and Late no reply at all, but the remark that a
	// probe has none yet while the next is sent.
	Duplicate, Elsewhere, Late bool
	// WrongAt is the first byte of an echo's data that is not what was sent, and Want
	// what it should be; negative: all came back.
	WrongAt int
	Want    byte
	// PathMTU is what a trace has just found out to be the MTU up to here; 0: nothing new.
	PathMTU int
}

// maxUntold bounds the replies that wait for Next. What comes when they are that many
// is counted and not shown.
const maxUntold = 1024

// replies wait for the engine's owner.
type replies struct{ queue []Reply }

func (r *replies) tell(reply Reply) {
	if len(r.queue) < maxUntold {
		r.queue = append(r.queue, reply)
	}
}

// Next returns the oldest reply that was not returned yet.
func (r *replies) Next() (Reply, bool) {
	if len(r.queue) == 0 {
		return Reply{}, false
	}
	first := r.queue[0]
	r.queue = r.queue[1:]
	return first, true
}
