package tcp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// handshake holds the options that our SYN offers and the result of both SYNs. It does not refer to
// the connection.
type handshake struct{ flags handshakeFlags }

// handshakeFlags are the states and results of the handshake.
type handshakeFlags uint16

const (
	hsActive       handshakeFlags = 1 << iota // we opened the connection
	hsSynDue                                  // our SYN or SYN-ACK must be sent or retransmitted
	hsSynResent                               // our SYN or SYN-ACK was sent more than once
	hsPlain                                   // no options were negotiated
	hsScale                                   // both ends scale windows
	hsStamps                                  // both ends send timestamps
	hsECN                                     // both ends use ECN (RFC 3168)
	hsNoECT                                   // our packets must not be ECN-capable
	hsRequestedECN                            // our SYN requested ECN
	hsNoECN                                   // our next SYN must not request ECN
	hsDCTCP                                   // marks are reported as in RFC 8257
	hsFileDigest                              // we offer a file digest; established: both do
)

// echoed reports whether a segment echoes a CE mark (RFC 3168 §6.1.3).
func (k *handshake) echoed(s *Segment) bool { return s.Flags.Has(ECE) && k.has(hsECN) }

func (k *handshake) has(f handshakeFlags) bool { return k.flags&f != 0 }

// synOffer is the part of our SYN or SYN-ACK that the sender and receiver decide.
type synOffer struct {
	first   bool   // for a SYN: nothing is negotiated yet
	mss     uint16 // zero: only options that every peer understands
	timeout uint16
	scale   uint8
	sack    bool
}

// options returns the options of our SYN or SYN-ACK, without the values of the timestamps.
func (k *handshake) options(knobs *Knobs, is synOffer) Options {
	o := Options{MSS: is.mss, UserTimeout: is.timeout, FileDigest: k.has(hsFileDigest)}
	o.SACKPermitted = is.sack && knobs.acceptsSACK()
	o.HasWindowScale, o.HasTimestamps = k.has(hsScale), k.has(hsStamps)
	if is.first {
		o.HasWindowScale, o.HasTimestamps = !knobs.NoWindowScale, !knobs.NoTimestamps
	}
	if o.HasWindowScale {
		o.WindowScale = is.scale
	}
	return o
}

// negotiate negotiates the options that both SYNs offer, and returns them. It negotiates none with
// a peer that sent none: the course nodes that cannot parse options drop every segment with one.
func (k *handshake) negotiate(knobs *Knobs, s *Segment) Options {
	k.negotiateECN(knobs, s)
	o := s.Options
	if knobs.OptionsOff || o == (Options{}) {
		k.flags |= hsPlain
		k.flags &^= hsScale | hsStamps | hsFileDigest
		return Options{}
	}
	if !o.FileDigest {
		k.flags &^= hsFileDigest
	}
	if o.HasTimestamps = o.HasTimestamps && !knobs.NoTimestamps; o.HasTimestamps {
		k.flags |= hsStamps // RFC 7323 §3.2
	}
	if o.HasWindowScale = o.HasWindowScale && !knobs.NoWindowScale; o.HasWindowScale {
		k.flags |= hsScale
	}
	o.SACKPermitted = o.SACKPermitted && !knobs.NoSACK
	return o
}

// synFlags returns the ECN flags of our SYN or SYN-ACK (RFC 3168 §6.1.1). After a timeout or a
// reset the SYN no longer requests ECN (RFC 3168 §6.1.1.1), because some middleboxes treat the
// request as an attack.
func (k *handshake) synFlags(knobs *Knobs, first, again bool) Flags {
	requests := knobs.ECN == ECNOn || knobs.ECN == ECNDCTCP
	switch {
	case !first && k.has(hsECN):
		return ECE
	case !first:
		return 0
	case requests && !knobs.OptionsOff && !k.has(hsNoECN) && !again:
		k.flags |= hsRequestedECN
		return ECE | CWR
	}
	// After a SYN without ECN the sender must not send ECN-capable packets, even if the peer
	// answers an earlier SYN.
	k.flags |= hsNoECT
	return 0
}

// negotiateECN negotiates ECN from the peer's SYN or SYN-ACK (RFC 3168 §6.1.1). A peer that sets
// both flags on a SYN-ACK does not support ECN and only reflects the flags.
func (k *handshake) negotiateECN(knobs *Knobs, s *Segment) {
	want, agreed := ECE|CWR, knobs.ECN != ECNOff && !knobs.OptionsOff
	if s.Flags.Has(ACK) {
		want, agreed = ECE, agreed && k.has(hsRequestedECN)
	}
	if agreed && s.Flags&(ECE|CWR) == want {
		k.flags |= hsECN
		if knobs.ECN == ECNDCTCP {
			k.flags |= hsDCTCP
		}
	}
}

// repeated records that the peer has retransmitted its SYN. If that SYN has no ECN flags, ECN is
// off, because the SYN-ACK with ECN may have been lost.
func (k *handshake) repeated(s *Segment) {
	if s.Flags&(ECE|CWR) != ECE|CWR {
		k.flags &^= hsECN
	}
}

// retryWithoutECN makes the next SYN leave without ECN after a reset (RFC 3168 §6.1.1.1). It
// reports false if the last SYN did not request ECN.
func (k *handshake) retryWithoutECN() bool {
	if !k.has(hsRequestedECN) || k.has(hsNoECN) {
		return false
	}
	k.flags |= hsNoECN
	return true
}

// plainSYN is the number of a SYN's first retransmission without options: the third, or the last if
// there are fewer. On a path that loses one packet in ten each way, one connection in 28 gets no
// answer to two SYNs, and one in 146 none to three. The latter may have no SACK.
const plainSYN = 3

// plainAge is how long the host sends SYNs without options to a peer that answered without them.
const plainAge = 10 * time.Minute

// knowsPlain reports whether the host remembers a peer as one without options.
func (p *peers) knowsPlain(now clock.Time, peer netip.Addr) bool {
	_, until := p.plain.find(now, peer)
	return until != clock.Never
}

// rememberPlain records at the end of a handshake whether the peer sends options. If a peer drops
// SYNs with options, only its first connection has to wait for plainSYN timeouts. But the path may
// also have lost three SYNs. So a connection whose first SYN had no options does not extend the
// entry, and one option from the peer deletes it.
func (p *peers) rememberPlain(now clock.Time, peer netip.Addr, k *handshake) {
	switch {
	case !k.has(hsPlain):
		p.plain.forget(peer)
	case k.has(hsActive) && !p.knowsPlain(now, peer):
		p.plain.learn(now, peer, struct{}{}, plainAge)
	}
}
