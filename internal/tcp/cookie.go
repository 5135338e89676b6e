package tcp

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// CookieMode says when a listener answers SYNs without storing them (RFC 4987 §3.6).
type CookieMode uint8

// The modes.
const (
	// CookiesAuto sends cookies while the listener's SYN queue is full.
	CookiesAuto CookieMode = iota
	// CookiesAlways stores no half-open connection at all.
	CookiesAlways
	// CookiesOff leaves SYNs unanswered while the queue is full.
	CookiesOff
	numCookieModes
)

var cookieModeNames = [numCookieModes]string{"auto", "always", "off"}

// String returns the mode's name.
func (m CookieMode) String() string { return nameOf(cookieModeNames[:], m) }

// ParseCookieMode returns the mode of that name.
func ParseCookieMode(name string) (CookieMode, bool) {
	m := slices.Index(cookieModeNames[:], name)
	return CookieMode(max(m, 0)), m >= 0
}

// A SYN cookie is an initial sequence number. It consists of eight bits of the current minute, and
// of a 24-bit keyed hash plus an index into cookieMSS. Another hash, which covers the peer's
// sequence number, is added to these. A cookie is valid until the end of the next minute.
const (
	cookieMinute = time.Minute
	cookieAges   = 2
	cookieLow    = 1<<24 - 1
)

// cookieMSS returns the segment sizes that a cookie can encode; others are rounded down. The first
// entry means a SYN without options. Most others fit MTUs of 576 and 1280 bytes, the course's 1400,
// PPPoE, Ethernet and jumbo frames.
func cookieMSS(t *Tuple) [9]uint16 {
	if t.RemoteAddr.Is6() {
		return [...]uint16{0, 88, 536, 1024, 1220, 1340, 1420, 1440, 8940}
	}
	return [...]uint16{0, 88, 536, 1024, 1220, 1360, 1440, 1460, 8960}
}

// The low bits of the SYN-ACK's timestamp, which the peer echoes, encode the other options of the
// SYN.
const (
	cookieScale   = 0x0f // the peer's window scale, noCookieScale without the option
	cookieSACK    = 0x10
	cookieECN     = 0x20
	cookieBits    = 0x3f
	noCookieScale = 0x0f
)

// newCookie returns the cookie for a SYN with sequence number irs.
func newCookie(secret *[16]byte, now clock.Time, t Tuple, irs uint32, mss int) uint32 {
	minute := uint32(uint64(now) / uint64(cookieMinute))
	low := (uint32(keyedAt(secret, 'm', &t, minute)) + uint32(mss)) & cookieLow
	return uint32(keyedAt(secret, 'k', &t, irs)) + minute<<24 + low
}

// checkCookie returns the index into cookieMSS that a cookie encodes. It reports false if the
// cookie is invalid or too old.
func checkCookie(
	secret *[16]byte, now clock.Time, t Tuple, irs, cookie uint32,
) (mss int, ok bool) {
	cookie -= uint32(keyedAt(secret, 'k', &t, irs))
	minute := uint32(uint64(now) / uint64(cookieMinute))
	age := (minute - cookie>>24) & 0xff
	if age >= cookieAges {
		return 0, false
	}
	low := uint32(keyedAt(secret, 'm', &t, minute-age))
	mss = int((cookie - low) & cookieLow)
	return mss, mss < len(cookieMSS(&t))
}

// wantsCookie reports whether to answer the next SYN with a cookie.
func (l *Listener) wantsCookie() bool {
	switch l.host.cfg.SynCookies {
	case CookiesAlways:
		return true
	case CookiesOff:
		return false
	default:
		return l.full() || l.deferred && l.host.catch.unanswered() >= maxEager
	}
}

// sendCookie answers a SYN without storing it. The host does not retransmit the answer, because the
// peer retransmits its SYN. The answer is the SYN-ACK of a temporary connection. acceptCookie
// creates the connection again when the peer returns the cookie.
func (l *Listener) sendCookie(now clock.Time, s *Segment, path Path) {
	h := l.host
	l.cookieAt = now
	h.counters.CookiesSent++
	mss := cookieIndex(s)
	syn := Segment{Tuple: s.Tuple, Header: Header{Seq: s.Seq, Flags: SYN, Window: s.Window}}
	bits := uint32(noCookieScale)
	if mss > 0 {
		syn.Options.MSS = cookieMSS(&s.Tuple)[mss]
		if s.Options.HasTimestamps && !h.cfg.NoTimestamps {
			bits = cookieStamp(s)
			syn.restoreOptions(s.Options.TSVal, bits)
		}
	}
	c := l.answer(now, &syn, path)
	c.snd.begin(newCookie(&h.cfg.Secret, now, s.Tuple, s.Seq, mss))
	var t Train
	c.outputSYN(now, &t)
	if o := &t.Options; o.HasTimestamps {
		// The timestamp must not be later than the clock, or the peer's PAWS would reject the next
		// segments.
		clocked := o.TSVal
		if o.TSVal = clocked&^cookieBits | bits; after(o.TSVal, clocked) {
			o.TSVal -= cookieBits + 1
		}
	}
	h.replies.push(reply{s.Tuple, t.Header})
}

func cookieIndex(s *Segment) int {
	if s.Options == (Options{}) {
		return 0
	}
	size, list := cmp.Or(s.Options.MSS, defaultMSS(s.RemoteAddr.Is6())), cookieMSS(&s.Tuple)
	i := len(list) - 1
	for i > 1 && list[i] > size {
		i--
	}
	return i
}

// cookieStamp returns the low bits of the timestamp in the answer to a SYN.
func cookieStamp(s *Segment) uint32 {
	bits := uint32(noCookieScale)
	if s.Options.HasWindowScale {
		bits = uint32(s.Options.WindowScale)
	}
	if s.Options.SACKPermitted {
		bits |= cookieSACK
	}
	if s.Flags&(ECE|CWR) == ECE|CWR {
		bits |= cookieECN
	}
	return bits
}

// acceptCookie opens the connection for a returned cookie, as if its SYN had been stored. It
// reports false if the ACK carries no valid cookie.
func (l *Listener) acceptCookie(now clock.Time, s *Segment) bool {
	h := l.host
	if l.cookieAt == clock.Never || now.Sub(l.cookieAt) > cookieAges*cookieMinute {
		return false // RFC 4987 §3.6: the listener sent no cookie, so the ACK has none
	}
	mss, ok := checkCookie(&h.cfg.Secret, now, s.Tuple, s.Seq-1, s.Ack-1)
	if !ok {
		h.counters.CookiesFailed++
		return false
	}
	path := h.cfg.Route(s.RemoteAddr)
	if l.backlogged() || h.full() || path.Outlet < 0 {
		h.drop(DropBacklog)
		l.noRoomAt = now
		return true // later segments of the peer carry the cookie too
	}
	h.counters.CookiesAccepted++
	syn := Segment{Tuple: s.Tuple, Header: Header{Seq: s.Seq - 1, Flags: SYN, Window: s.Window}}
	if mss > 0 {
		syn.Options.MSS = cookieMSS(&s.Tuple)[mss]
		if s.Options.HasTimestamps {
			syn.restoreOptions(s.Options.TSVal, s.Options.TSEcr)
		}
	}
	c := l.answer(now, &syn, path)
	c.snd.begin(s.Ack - 1)
	c.rcv.windowField(true) // the window that the SYN-ACK advertised
	c.stamps.lastAck = c.rcv.nxt
	l.addHalfOpen(c)
	c.input(now, s)
	return true
}

// dropForRetry drops a data segment that arrives shortly after the listener had no room for a
// returned cookie. The peer will retransmit the segment, which carries the cookie, so the host must
// not reset it. dropForRetry reports whether it has dropped the segment.
func (l *Listener) dropForRetry(now clock.Time, s *Segment) bool {
	if s.Len == 0 || l.noRoomAt == clock.Never || now.Sub(l.noRoomAt) > cookieMinute {
		return false
	}
	l.host.drop(DropBacklog)
	return true
}

// restoreOptions restores the SYN's options from the low bits of a timestamp.
func (s *Segment) restoreOptions(val, bits uint32) {
	o := &s.Options
	o.HasTimestamps, o.TSVal = true, val
	o.SACKPermitted = bits&cookieSACK != 0
	if scale := bits & cookieScale; scale != noCookieScale {
		o.HasWindowScale, o.WindowScale = true, min(uint8(scale), maxWindowScale)
	}
	if bits&cookieECN != 0 {
		s.Flags |= ECE | CWR
	}
}
