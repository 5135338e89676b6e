package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// handshake is what our SYN or SYN-ACK offers, and what both SYNs have agreed on. It knows neither
// the connection nor its other parts.
type handshake struct{ flags handshakeFlags }

// handshakeFlags are its yes-or-no facts.
type handshakeFlags uint16

const (
	flagActive     handshakeFlags = 1 << iota // we opened the connection
	flagSynDue                                // our SYN or SYN-ACK is to be sent (again)
	flagSynAgain                              // it was sent more than once
	flagPlain                                 // nothing was negotiated: no option ever
	flagScale                                 // both ends scale windows
	flagStamps                                // both ends send timestamps
	flagECN                                   // both ends know RFC 3168
	flagNoECT                                 // but what we send must not be marked
	flagAskedECN                              // our SYN asked for it
	flagNoECN                                 // and must not again
	flagDCTCP                                 // marks are reported as RFC 8257 has it
	flagFileDigest                            // we offer a digest of a file; once open: both do
)

func (k *handshake) has(f handshakeFlags) bool { return k.flags&f != 0 }

// synOffer is what the other parts have our SYN or SYN-ACK say.
type synOffer struct {
	first   bool   // it is a SYN: nothing is agreed on yet
	mss     uint16 // zero: nothing but options that every peer understands
	timeout uint16
	scale   uint8
	sack    bool
}

// options returns what our SYN or SYN-ACK carries, but for the values of the timestamps.
func (k *handshake) options(knobs *Knobs, is synOffer) Options {
	o := Options{MSS: is.mss, UserTimeout: is.timeout, FileDigest: k.has(flagFileDigest)}
	o.SACKPermitted = is.sack && knobs.hearsSACK()
	o.HasWindowScale, o.HasTimestamps = k.has(flagScale), k.has(flagStamps)
	if is.first {
		o.HasWindowScale, o.HasTimestamps = !knobs.NoWindowScale, !knobs.NoTimestamps
	}
	if o.HasWindowScale {
		o.WindowScale = is.scale
	}
	return o
}

// agree settles what the connection uses from the peer's SYN or SYN-ACK: what both offered, and
// never an option to a peer that sent none. The nodes of the family that cannot parse options drop
// every segment that has one. It returns the options that both use.
func (k *handshake) agree(knobs *Knobs, s *Segment) Options {
	k.agreeECN(knobs, s)
	o := s.Options
	if knobs.OptionsOff || o == (Options{}) {
		k.flags |= flagPlain
		k.flags &^= flagScale | flagStamps | flagFileDigest
		return Options{}
	}
	if !o.FileDigest {
		k.flags &^= flagFileDigest
	}
	if o.HasTimestamps = o.HasTimestamps && !knobs.NoTimestamps; o.HasTimestamps {
		k.flags |= flagStamps // RFC 7323 §3.2
	}
	if o.HasWindowScale = o.HasWindowScale && !knobs.NoWindowScale; o.HasWindowScale {
		k.flags |= flagScale
	}
	o.SACKPermitted = o.SACKPermitted && !knobs.NoSACK
	return o
}

// synFlags returns the ECN flags of our SYN or SYN-ACK (RFC 3168 §6.1.1). A SYN asks for ECN no
// more once one has found no answer or a reset (RFC 3168 §6.1.1.1), because some middleboxes take
// it for an attack.
func (k *handshake) synFlags(knobs *Knobs, first, again bool) Flags {
	asks := knobs.ECN == ECNOn || knobs.ECN == ECNDCTCP
	switch {
	case !first && k.has(flagECN):
		return ECE
	case !first:
		return 0
	case asks && !knobs.OptionsOff && !k.has(flagNoECN) && !again:
		k.flags |= flagAskedECN
		return ECE | CWR
	}
	// Whoever has sent a SYN without them must mark nothing as capable, though the first SYN be
	// the one that is answered.
	k.flags |= flagNoECT
	return 0
}

// agreeECN settles ECN from the peer's SYN or SYN-ACK (RFC 3168 §6.1.1).
// Both flags on a SYN-ACK are a reflection by somebody who knows neither.
func (k *handshake) agreeECN(knobs *Knobs, s *Segment) {
	want, agreed := ECE|CWR, knobs.ECN != ECNOff && !knobs.OptionsOff
	if s.Flags.Has(ACK) {
		want, agreed = ECE, agreed && k.has(flagAskedECN)
	}
	if agreed && s.Flags&(ECE|CWR) == want {
		k.flags |= flagECN
		if knobs.ECN == ECNDCTCP {
			k.flags |= flagDCTCP
		}
	}
}

// repeated notes that the peer has sent its SYN again. If that does not ask for ECN, the answer to
// the first may have been what was lost.
func (k *handshake) repeated(s *Segment) {
	if s.Flags&(ECE|CWR) != ECE|CWR {
		k.flags &^= flagECN
	}
}

// retryWithoutECN has the SYN sent again if what asked for ECN was reset (RFC 3168 §6.1.1.1). It
// reports false when ECN cannot have been the reason.
func (k *handshake) retryWithoutECN() bool {
	if !k.has(flagAskedECN) || k.has(flagNoECN) {
		return false
	}
	k.flags |= flagNoECN
	return true
}

// plainSYN is the retransmission of a SYN from which on it goes without options. The third, or the
// last if that comes sooner: a path that loses a packet in ten each way takes two in a row from
// one connection in 28, which would have to do without SACK ever after, and three from one in 146.
const plainSYN = 3

// plainAge is how long a peer that answered without options gets SYNs without them.
const plainAge = 10 * time.Minute

// knowsPlain reports whether a peer is remembered as one without options.
func (p *peers) knowsPlain(now clock.Time, peer [4]byte) bool {
	_, until := p.plain.find(now, peer)
	return until != clock.Never
}

// rememberPlain notes at the end of a handshake whether the peer knows options. One that drops SYNs
// with options costs its first connection all timeouts up to plainSYN, and only that one. But the
// path may also have lost three SYNs. So a connection whose first SYN had no options prolongs
// nothing, and one option from the peer ends it.
func (p *peers) rememberPlain(now clock.Time, peer [4]byte, k *handshake) {
	switch {
	case !k.has(flagPlain):
		p.plain.forget(peer)
	case k.has(flagActive) && !p.knowsPlain(now, peer):
		p.plain.learn(now, peer, struct{}{}, plainAge)
	}
}
