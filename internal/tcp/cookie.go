package tcp

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// CookieMode says when a listener answers SYNs without remembering them (RFC 4987 §3.6).
type CookieMode uint8

// The modes.
const (
	// CookiesAuto sends cookies while the listener's SYN queue is full.
	CookiesAuto CookieMode = iota
	// CookiesAlways keeps no half-open connection at all.
	CookiesAlways
	// CookiesOff leaves SYNs unanswered while the queue is full.
	CookiesOff
	numCookieModes
)

var cookieModeNames = [numCookieModes]string{"auto", "always", "off"}

// String returns the mode's name.
func (m CookieMode) String() string {
	if m < numCookieModes {
		return cookieModeNames[m]
	}
	return "?"
}

// ParseCookieMode returns the mode of that name.
func ParseCookieMode(name string) (CookieMode, bool) {
	m := slices.Index(cookieModeNames[:], name)
	return CookieMode(max(m, 0)), m >= 0
}

// A cookie is an initial sequence number that proves that its bearer has seen it: eight bits of the
// minute and 24 of a keyed hash to which an index into cookieMSS is added, on top of another hash
// that the peer's number is in. It is good for one minute and the rest of the one it was made in.
const (
	cookieMinute = time.Minute
	cookieAges   = 2
	cookieLow    = 1<<24 - 1
)

// cookieMSS are the segment sizes that a cookie can remember; the next lower one stands in for
// others. The first means that the SYN carried no option at all. What links are made of is there:
// 576 and 1280 bytes, the family's 1400, PPPoE, Ethernet, jumbo frames.
var cookieMSS = [...]uint16{0, 88, 536, 1024, 1220, 1360, 1440, 1460, 8960}

// The low bits of a cookie's timestamp, which the peer echoes: what cannot be
// derived from anything else.
const (
	cookieScale   = 0x0f // the peer's window scale, noCookieScale without the option
	cookieSACK    = 0x10
	cookieECN     = 0x20
	cookieBits    = 0x3f
	noCookieScale = 0x0f
)

// newCookie returns the cookie that answers a SYN numbered irs.
func newCookie(secret *[16]byte, now clock.Time, t Tuple, irs uint32, mss int) uint32 {
	minute := uint32(uint64(now) / uint64(cookieMinute))
	low := (uint32(keyedAt(secret, 'm', t, minute)) + uint32(mss)) & cookieLow
	return uint32(keyedAt(secret, 'k', t, irs)) + minute<<24 + low
}

// redeem returns the index into cookieMSS that a cookie holds, false when it is none, or too old.
func redeem(
	secret *[16]byte, now clock.Time, t Tuple, irs, cookie uint32,
) (mss int, ok bool) {
	cookie -= uint32(keyedAt(secret, 'k', t, irs))
	minute := uint32(uint64(now) / uint64(cookieMinute))
	age := (minute - cookie>>24) & 0xff
	if age >= cookieAges {
		return 0, false
	}
	low := uint32(keyedAt(secret, 'm', t, minute-age))
	mss = int((cookie - low) & cookieLow)
	return mss, mss < len(cookieMSS)
}

// wantsCookie reports whether the next SYN is to be answered by a cookie.
func (l *Listener) wantsCookie() bool {
	switch l.host.cfg.SynCookies {
	case CookiesAlways:
		return true
	case CookiesOff:
		return false
	default:
		return l.full()
	}
}

// sendCookie answers a SYN and forgets it. Nothing is sent again: the peer
// repeats its SYN. The answer is the one that the connection itself would give,
// so that it can be made once more when the cookie comes back.
func (l *Listener) sendCookie(now clock.Time, s *Segment, path Path) {
	h := l.host
	l.cookieAt = now
	h.counters.CookiesSent++
	mss := cookieIndex(&s.Options)
	syn := Segment{Tuple: s.Tuple, Header: Header{Seq: s.Seq, Flags: SYN, Window: s.Window}}
	bits := uint32(noCookieScale)
	if mss > 0 {
		syn.Options.MSS = cookieMSS[mss]
		if s.Options.HasTimestamps && !h.cfg.NoTimestamps {
			bits = cookieStamp(s)
			syn.recall(s.Options.TSVal, bits)
		}
	}
	c := l.answer(now, &syn, path)
	c.snd.begin(newCookie(&h.cfg.Secret, now, s.Tuple, s.Seq, mss))
	var t Train
	c.outputSYN(now, &t)
	if o := &t.Options; o.HasTimestamps {
		// Never later than the clock: the peer's PAWS must let in what follows.
		clocked := o.TSVal
		if o.TSVal = clocked&^cookieBits | bits; after(o.TSVal, clocked) {
			o.TSVal -= cookieBits + 1
		}
	}
	h.replies.push(reply{s.Tuple, t.Header})
}

// cookieIndex returns the index into cookieMSS of what a SYN offers.
func cookieIndex(o *Options) int {
	if *o == (Options{}) {
		return 0
	}
	size := o.MSS
	if size == 0 {
		size = defaultMSS
	}
	i := len(cookieMSS) - 1
	for i > 1 && cookieMSS[i] > size {
		i--
	}
	return i
}

// cookieStamp returns what the low bits of the stamp have to remember of a SYN.
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

// acceptCookie opens the connection of which a returning cookie tells, as if
// its SYN had been kept. It reports false when the ACK bears none.
func (l *Listener) acceptCookie(now clock.Time, s *Segment) bool {
	h := l.host
	if l.cookieAt == clock.Never || now.Sub(l.cookieAt) > cookieAges*cookieMinute {
		return false // RFC 4987 §3.6: nobody may guess at cookies that were never made
	}
	mss, ok := redeem(&h.cfg.Secret, now, s.Tuple, s.Seq-1, s.Ack-1)
	if !ok {
		h.counters.CookiesFailed++
		return false
	}
	path := h.cfg.Route(s.RemoteAddr)
	if l.backlogged() || h.full() || path.Outlet < 0 {
		h.drop(DropBacklog)
		l.passedOver = now
		return true // the peer sends it again
	}
	h.counters.CookiesAccepted++
	syn := Segment{Tuple: s.Tuple, Header: Header{Seq: s.Seq - 1, Flags: SYN, Window: s.Window}}
	if mss > 0 {
		syn.Options.MSS = cookieMSS[mss]
		if s.Options.HasTimestamps {
			syn.recall(s.Options.TSVal, s.Options.TSEcr)
		}
	}
	c := l.answer(now, &syn, path)
	c.snd.begin(s.Ack - 1)
	c.rcv.windowField(true) // what the SYN-ACK promised
	c.stamps.lastAck = c.rcv.nxt
	l.keep(c)
	c.input(now, s)
	return true
}

// mayReturn drops text behind a cookie that came back when there was no room:
// its sender begins again with the segment that bears the cookie, and must not
// be told until then that nobody is here.
func (l *Listener) mayReturn(now clock.Time, s *Segment) bool {
	if s.Len == 0 || l.passedOver == clock.Never || now.Sub(l.passedOver) > cookieMinute {
		return false
	}
	l.host.drop(DropBacklog)
	return true
}

// recall adds to a SYN what the stamp of its answer remembers of it.
func (s *Segment) recall(val, bits uint32) {
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
