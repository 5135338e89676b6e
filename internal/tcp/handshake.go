package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// input is SEGMENT ARRIVES in LISTEN, RFC 9293 §3.10.7.2. Last is the TIME-WAIT of the same tuple
// that the SYN ends if it is taken, nil when there is none.
func (l *Listener) input(now clock.Time, s *Segment, last *timeWait) {
	h := l.host
	switch {
	case s.Flags.Has(RST):
		h.drop(DropNoConnection) // first: nothing here to reset
		return
	case s.Flags.Has(ACK):
		if s.Flags.Has(SYN) || !l.acceptCookie(now, s) && !l.mayReturn(now, s) {
			h.drop(DropNoConnection) // second: nothing here to acknowledge
			h.replies.refuse(s)
		}
		return
	case !s.Flags.Has(SYN) || s.Flags.Has(FIN):
		h.drop(DropFlags) // fourth; and a SYN with a FIN is nobody's connection
		return
	case l.backlogged(), h.full():
		h.drop(DropBacklog)
		return
	}
	path := h.cfg.Route(s.RemoteAddr)
	switch {
	case path.Outlet < 0:
		h.drop(DropNoConnection) // no way to answer
		return
	case l.deferred:
		l.hold(now, s, last, path)
		return
	case last == nil && l.wantsCookie():
		l.sendCookie(now, s, path)
		return
	case l.full():
		h.drop(DropBacklog)
		return
	}
	c := l.answer(now, s, path)
	if last != nil {
		h.waits.remove(last)
		c.succeed(last)
	}
	l.keep(c)
	c.sendSYN(now)
	c.touch()
}

// answer makes the connection that a SYN asks for. The host does not know it yet.
func (l *Listener) answer(now clock.Time, s *Segment, path Path) *Conn {
	c := l.host.newConn(now, s.Tuple, path)
	c.beginFor(now, l)
	// Third: text on the SYN is not taken, so not acknowledged; its sender repeats it when the
	// connection is ESTABLISHED.
	c.takeSYN(s)
	c.negotiate(&s.Options)
	c.negotiateECN(s)
	c.setState(now, evSYN)
	return c
}

// beginFor has a new connection LISTEN as its listener does.
func (c *Conn) beginFor(now clock.Time, l *Listener) {
	c.links.listener = l
	if err := c.SetSockopts(now, l.options); err != nil {
		panic("BUG: tcp: " + err.Error()) // the listener has taken them
	}
	c.setState(now, evListen)
}

// keep makes a half-open connection the listener's and the host's.
func (l *Listener) keep(c *Conn) {
	c.flags |= flagHalfOpen
	l.halfOpen++
	l.host.insert(c)
}

// takeSYN learns the peer's sequence number and window. The window of a SYN is
// never scaled (RFC 7323 §2.2).
func (c *Conn) takeSYN(s *Segment) {
	c.rcv.begin(s.Seq)
	c.snd.wnd = int(s.Window)
	c.snd.maxWnd = max(c.snd.maxWnd, c.snd.wnd)
	c.snd.wl1 = c.rcv.irs
}

// negotiate settles what the connection uses from the peer's SYN: what both
// offered, and never an option to a peer that sent none. The nodes of the
// family that cannot parse options drop every segment that has one.
func (c *Conn) negotiate(o *Options) {
	if c.host.cfg.OptionsOff || *o == (Options{}) {
		c.flags |= flagPlain
		c.flags &^= flagScale | flagStamps | flagFileDigest
		c.rcv.sack, c.rcv.scale, c.snd.scale = false, 0, 0
		if c.path.DefaultMSS {
			c.snd.peerMSS = o.sendMSS()
		}
		c.refit()
		return
	}
	if !o.FileDigest {
		c.flags &^= flagFileDigest
	}
	k := &c.host.cfg.Knobs
	if o.HasTimestamps && !k.NoTimestamps {
		c.flags |= flagStamps // RFC 7323 §3.2
		c.stamps.recent, c.stamps.recentAt = o.TSVal, c.host.now
	}
	if o.UserTimeout != 0 {
		c.takeTimeout(c.host.now, o.UserTimeout)
	}
	if c.snd.peerMSS = int(o.MSS); c.path.DefaultMSS {
		c.snd.peerMSS = o.sendMSS()
	}
	c.refit()
	if o.SACKPermitted && !k.NoSACK {
		c.rcv.sack = true
	}
	if o.HasWindowScale && !k.NoWindowScale {
		c.flags |= flagScale
		c.snd.scale = o.WindowScale
		c.rcv.scale = c.rcv.windowScale()
	}
}

// inputSynSent is SEGMENT ARRIVES in SYN-SENT, §3.10.7.3.
func (c *Conn) inputSynSent(now clock.Time, s *Segment) {
	ack := widen(c.snd.Una, s.Ack)
	if s.Flags.Has(ACK) && ack != c.snd.Nxt { // first
		c.host.drop(DropAck)
		c.host.replies.refuse(s)
		return
	}
	if s.Flags.Has(RST) { // second
		if !s.Flags.Has(ACK) {
			c.host.drop(DropReset)
		} else if !c.retryWithoutECN(now) {
			c.fail(now, ErrRefused)
		}
		return
	}
	if !s.Flags.Has(SYN) { // fifth
		c.host.drop(DropFlags)
		return
	}
	c.takeSYN(s) // fourth
	c.negotiate(&s.Options)
	c.negotiateECN(s)
	if !s.Flags.Has(ACK) {
		// Simultaneous open, figure 8.
		c.setState(now, evSYN)
		c.sendSYN(now)
		return
	}
	c.synAcknowledged(now)
	c.setState(now, evSYNACK)
	c.rcv.ack.owed = 1
	c.takeContents(now, s, c.rcv.nxt)
}

// acceptSYNACK completes the handshake in SYN-RECEIVED.
func (c *Conn) acceptSYNACK(now clock.Time, s *Segment) {
	c.synAcknowledged(now)
	c.setState(now, evACKOfSYN)
	c.snd.wnd = c.snd.offered(s)
	c.snd.maxWnd = max(c.snd.maxWnd, c.snd.wnd)
}

// synAcknowledged takes our SYN off the sequence space and its round trip as
// the first sample, unless it was sent twice (RFC 6298 §3, Karn's algorithm).
func (c *Conn) synAcknowledged(now clock.Time) {
	c.snd.Una = c.snd.Nxt
	c.settled()
	if !c.has(flagSynAgain) && c.rec.LastSent != clock.Never {
		c.rec.RTT.Sample(now, now.Sub(c.rec.LastSent), 1, &c.host.recoveries.Options)
	}
	c.stats.lastAck = now
}

// sendSYN asks for the SYN or SYN-ACK to be sent, and again until answered.
func (c *Conn) sendSYN(now clock.Time) {
	c.flags |= flagSynDue
	d := c.host.cfg.Retries.SynTimeout
	if d == 0 {
		d = c.rec.RTT.Timeout(c.rec.Backoff, &c.host.recoveries.Options)
	}
	c.rec.At.RTO = now.Later(d)
	c.wait.watch(now, &c.timers[timerUser])
}

// synOptions returns what our SYN or SYN-ACK carries.
func (c *Conn) synOptions() Options {
	switch {
	case c.host.cfg.OptionsOff, c.has(flagPlain) && !c.path.DefaultMSS:
		return Options{}
	case c.has(flagPlain):
		return Options{MSS: uint16(c.offeredMSS())} // RFC 9293 §3.7.1 (SHLD-5): on every SYN
	}
	// A SYN that stays unanswered may be one that the peer cannot parse: a late retransmission
	// goes without options. A SYN-ACK that carries some still negotiates them, for the peer may
	// have taken the first SYN.
	if c.state == StateSynSent && (int(c.rec.Retries) >= min(plainSYN, c.host.cfg.Retries.Syn) ||
		c.host.peers.knowsPlain(c.host.now, c.tuple.RemoteAddr)) {
		return Options{}
	}
	o := Options{
		MSS: uint16(c.offeredMSS()), UserTimeout: c.offeredTimeout(),
		FileDigest: c.has(flagFileDigest),
	}
	if c.state == StateSynSent {
		k := &c.host.cfg.Knobs
		o.SACKPermitted, o.HasWindowScale = c.hearsSACK(), !k.NoWindowScale
		if o.HasWindowScale {
			o.WindowScale = c.rcv.windowScale()
		}
		if !k.NoTimestamps {
			c.stamps.put(c.host.now, &o)
			o.TSEcr = 0 // RFC 7323 §3.2: there is nothing to echo yet
		}
		return o
	}
	o.SACKPermitted = c.rcv.sack && c.hearsSACK()
	o.HasWindowScale = c.has(flagScale)
	if o.HasWindowScale {
		o.WindowScale = c.rcv.scale
	}
	if c.has(flagStamps) {
		c.stamps.put(c.host.now, &o)
	}
	return o
}

// asksECN reports whether our SYN asks for ECN: RFC 3168 §6.1.1.1, no more once
// one has found no answer or a reset, for some middleboxes take it for an attack.
func (c *Conn) asksECN() bool {
	k := &c.host.cfg.Knobs
	asks := k.ECN == ECNOn || k.ECN == ECNDCTCP
	return asks && !k.OptionsOff && !c.has(flagNoECN) && c.rec.Retries == 0
}

// synFlags returns the ECN flags of our SYN or SYN-ACK (RFC 3168 §6.1.1).
func (c *Conn) synFlags() Flags {
	switch {
	case c.state != StateSynSent && c.has(flagECN):
		return ECE
	case c.state != StateSynSent:
		return 0
	case c.asksECN():
		c.flags |= flagAskedECN
		return ECE | CWR
	}
	// Whoever has sent a SYN without them must mark nothing as capable, though the first SYN be
	// the one that is answered.
	c.flags |= flagNoECT
	return 0
}

// negotiateECN settles it from the peer's SYN or SYN-ACK (RFC 3168 §6.1.1).
// Both flags on a SYN-ACK are a reflection by somebody who knows neither.
func (c *Conn) negotiateECN(s *Segment) {
	k, want := &c.host.cfg.Knobs, ECE|CWR
	agreed := k.ECN != ECNOff && !k.OptionsOff
	if s.Flags.Has(ACK) {
		want, agreed = ECE, agreed && c.has(flagAskedECN)
	}
	if agreed && s.Flags&(ECE|CWR) == want {
		c.flags |= flagECN
		if k.ECN == ECNDCTCP {
			c.flags |= flagDCTCP
		}
	}
}

// repeatedSYN notes that the peer has sent its SYN again without asking for ECN:
// then the first one's answer may have been what was lost.
func (c *Conn) repeatedSYN(s *Segment) {
	if s.Flags&(ECE|CWR) != ECE|CWR {
		c.flags &^= flagECN
	}
}

// retryWithoutECN sends the SYN again when what asked for ECN was reset (RFC
// 3168 §6.1.1.1). It reports false when ECN cannot have been the reason.
func (c *Conn) retryWithoutECN(now clock.Time) bool {
	if !c.has(flagAskedECN) || c.has(flagNoECN) {
		return false
	}
	c.flags |= flagNoECN
	c.sendSYN(now)
	return true
}

// plainSYN is the retransmission of a SYN from which on it goes without options. The third, or the
// last if that comes sooner: a path that loses a packet in ten each way takes two in a row from
// one connection in 28, which would have to do without SACK ever after, and three from one in 146.
const plainSYN = 3

// plainAge is how long a peer that answered without options gets SYNs without them.
const plainAge = 10 * time.Minute

// rememberPlain notes at the end of a handshake whether the peer knows options. One that drops SYNs
// with options costs its first connection all timeouts up to plainSYN, and only that one. But the
// path may also have lost three SYNs. So a connection whose first SYN had no options prolongs
// nothing, and one option from the peer ends it.
func (c *Conn) rememberPlain(now clock.Time) {
	h, peer := c.host, c.tuple.RemoteAddr
	switch {
	case h.cfg.OptionsOff:
	case !c.has(flagPlain):
		h.peers.plain.forget(peer)
	case c.has(flagActive) && !h.peers.knowsPlain(now, peer):
		h.peers.plain.learn(now, peer, struct{}{}, plainAge)
	}
}

// hearsSACK reports whether the peer may send selective acknowledgments: RFC 2018
// §2, the option says that its sender can make use of them. A peer that may not
// sends a duplicate for each segment, which is what strategies without SACK count.
func (c *Conn) hearsSACK() bool {
	sack, err := recovery.UsesSACK(c.host.cfg.Recovery.Strategy)
	return err == nil && sack && !c.host.cfg.NoSACK
}

// onSYNTimeout sends the SYN or SYN-ACK again, or gives up.
func (c *Conn) onSYNTimeout(now clock.Time) {
	c.rec.Retries++
	most := c.host.cfg.Retries.Syn
	if c.state == StateSynReceived && !c.has(flagActive) {
		most = c.host.cfg.Retries.SynAck
	}
	if c.wait.exhausted(int(c.rec.Retries), most) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.rec.Backoff = min(c.rec.Backoff+1, recovery.MaxBackoff)
	c.host.counters.Timeouts++
	c.sendSYN(now)
}

// succeed begins beyond all that the last incarnation used, which at our speeds
// the clock of RFC 9293 §3.4.1 need not (RFC 1122 §4.2.2.13 (a)).
func (c *Conn) succeed(last *timeWait) { c.snd.begin(last.sndNxt + 1<<16) }

// folds reports whether all that the connection does is to wait for the acknowledgment of its
// SYN-ACK, for a listener. One that somebody watches stays as it is.
func (c *Conn) folds() bool {
	return c.has(flagHalfOpen) && c.state == StateSynReceived && !c.has(flagSynDue) &&
		c.rcv.ack.owed == 0 && c.rec.At.RTO != clock.Never && c.path.Outlet >= 0 &&
		c.probe == nil && c.Owner == nil && !c.rcv.closed && !c.snd.closed
}

func (c *Conn) outputSYN(now clock.Time, t *Train) {
	c.flags &^= flagSynDue
	c.begin(t, c.snd.iss, SYN)
	if c.state == StateSynSent {
		t.Flags, t.Ack = SYN, 0
	}
	t.Flags |= c.synFlags()
	t.Options = c.synOptions()
	if c.rec.LastSent != clock.Never {
		c.flags |= flagSynAgain
	}
	c.rec.LastSent = now
	c.stats.segsOut++
	c.acknowledged(0)
}

// offeredTimeout is the option to send now, zero for none.
func (c *Conn) offeredTimeout() uint16 {
	if !c.wait.tell || c.wait.limit == 0 || c.has(flagPlain) || c.host.cfg.OptionsOff {
		return 0
	}
	return encodeTimeout(c.wait.limit)
}

// takeTimeout adapts to what the peer says of its own patience: RFC 5482 §3.1, USER_TIMEOUT =
// min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)), unless the user has set one.
func (c *Conn) takeTimeout(now clock.Time, v uint16) {
	if v&timeoutNumber == 0 || c.wait.chosen {
		return // §3.2: a value of zero must be ignored
	}
	c.wait.limit = min(max(decodeTimeout(v), leastPeerTimeout), mostPeerTimeout)
	if c.waits() {
		c.wait.watch(now, &c.timers[timerUser])
	}
}
