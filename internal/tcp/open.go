package tcp

import (
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
		c.snd.succeed(last)
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
	c.setState(now, evSYN)
	return c
}

// beginFor has a new connection LISTEN as its listener does.
func (c *Conn) beginFor(now clock.Time, l *Listener) {
	c.links.listener = l
	o := l.options // they are valid: the listener has taken them
	o.NoDelay = o.NoDelay || c.host.cfg.NoDelay
	c.apply(now, &o)
	c.setState(now, evListen)
}

// keep makes a half-open connection the listener's and the host's.
func (l *Listener) keep(c *Conn) {
	c.flags |= flagHalfOpen
	l.halfOpen++
	l.host.insert(c)
}

// takeSYN learns the peer's sequence number, its window, and what it agrees to. The window of a SYN
// is never scaled (RFC 7323 §2.2).
func (c *Conn) takeSYN(s *Segment) {
	c.rcv.begin(s.Seq)
	c.snd.wnd = int(s.Window)
	c.snd.maxWnd = max(c.snd.maxWnd, c.snd.wnd)
	c.snd.wl1 = c.rcv.irs
	o := c.hs.agree(&c.host.cfg.Knobs, s)
	if o.HasTimestamps {
		c.stamps.recent, c.stamps.recentAt = o.TSVal, c.host.now
	}
	c.snd.takeTimeout(c.host.now, o.UserTimeout)
	c.snd.finAlone = c.hs.has(flagPlain)
	c.snd.path.peerOffers(&s.Options, c.hs.has(flagPlain), o.HasTimestamps)
	c.snd.refit()
	c.rcv.sack = o.SACKPermitted
	if o.HasWindowScale {
		c.snd.scale, c.rcv.scale = o.WindowScale, c.rcv.windowScale()
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
		} else if c.hs.retryWithoutECN() {
			c.sendSYN(now)
		} else {
			c.fail(now, ErrRefused)
		}
		return
	}
	if !s.Flags.Has(SYN) { // fifth
		c.host.drop(DropFlags)
		return
	}
	c.takeSYN(s) // fourth
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

// bothOpened takes the SYN-ACK of a peer that opened at the same time for the acknowledgment of our
// SYN that it is (RFC 9293 §3.5, figure 8). The peer owes no other: it is ESTABLISHED by ours.
func (c *Conn) bothOpened(now clock.Time, s *Segment, seq uint64) {
	if c.hs.has(flagActive) && widen(c.snd.Una, s.Ack) == c.snd.Nxt {
		c.acceptSYNACK(now, s)
		c.takeStamp(now, s, seq)
		c.takeContents(now, s, seq+1)
	}
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
	if !c.hs.has(flagSynAgain) && c.snd.rec.LastSent != clock.Never {
		c.snd.rec.RTT.Sample(now, now.Sub(c.snd.rec.LastSent), 1, &c.host.recoveries.Options)
	}
	c.stats.lastAck = now
}

// sendSYN asks for the SYN or SYN-ACK to be sent, and again until answered.
func (c *Conn) sendSYN(now clock.Time) {
	c.hs.flags |= flagSynDue
	d := c.host.cfg.Retries.SynTimeout
	if d == 0 {
		d = c.snd.rec.RTO(c.snd.rec.Backoff)
	}
	c.snd.rec.At.RTO = now.Later(d)
	c.snd.wait.watch(now, &c.snd.userTimer)
}

// synOptions returns what our SYN or SYN-ACK carries.
func (c *Conn) synOptions() Options {
	first := c.state == StateSynSent
	knobs := &c.host.cfg.Knobs
	switch {
	case knobs.OptionsOff, c.hs.has(flagPlain) && !c.snd.path.DefaultMSS:
		return Options{}
	case c.hs.has(flagPlain):
		return Options{MSS: c.snd.path.offer()} // RFC 9293 §3.7.1 (SHLD-5): on every SYN
	// A SYN that stays unanswered may be one that the peer cannot parse: a late retransmission
	// goes without options. A SYN-ACK that carries some still negotiates them, for the peer may
	// have taken the first SYN.
	case first && (int(c.snd.rec.Retries) >= min(plainSYN, c.host.cfg.Retries.Syn) ||
		c.host.peers.knowsPlain(c.host.now, c.tuple.RemoteAddr)):
		return Options{}
	}
	offer := synOffer{
		first: first, mss: c.snd.path.offer(), timeout: c.snd.wait.offer(),
		sack: first || c.rcv.sack, scale: c.rcv.scale,
	}
	if first {
		offer.scale = c.rcv.windowScale()
	}
	o := c.hs.options(knobs, offer)
	if o.HasTimestamps {
		c.stamps.put(c.host.now, &o)
		if first {
			o.TSEcr = 0 // RFC 7323 §3.2: there is nothing to echo yet
		}
	}
	return o
}

// onSYNTimeout sends the SYN or SYN-ACK again, or gives up.
func (c *Conn) onSYNTimeout(now clock.Time) {
	c.snd.rec.Retries++
	most := c.host.cfg.Retries.Syn
	if c.state == StateSynReceived && !c.hs.has(flagActive) {
		most = c.host.cfg.Retries.SynAck
	}
	if c.snd.wait.exhausted(int(c.snd.rec.Retries), most) {
		c.giveUp(now, ErrTimeout)
		return
	}
	c.snd.rec.Backoff = min(c.snd.rec.Backoff+1, recovery.MaxBackoff)
	c.host.counters.Timeouts++
	c.sendSYN(now)
}

// folds reports whether all that the connection does is to wait for the acknowledgment of its
// SYN-ACK, for a listener. One that somebody watches stays as it is.
func (c *Conn) folds() bool {
	return c.flags.has(flagHalfOpen) && c.state == StateSynReceived && !c.hs.has(flagSynDue) &&
		c.rcv.ack.owed == 0 && c.snd.rec.At.RTO != clock.Never && c.snd.path.Outlet >= 0 &&
		c.probe == nil && c.Owner == nil && !c.rcv.closed && !c.snd.closed
}

func (c *Conn) outputSYN(now clock.Time, t *Train) {
	c.hs.flags &^= flagSynDue
	c.begin(t, c.snd.iss, SYN)
	if c.state == StateSynSent {
		t.Flags, t.Ack = SYN, 0
	}
	t.Flags |= c.hs.synFlags(&c.host.cfg.Knobs, c.state == StateSynSent, c.snd.rec.Retries > 0)
	t.Options = c.synOptions()
	if c.snd.rec.LastSent != clock.Never {
		c.hs.flags |= flagSynAgain
	}
	c.snd.rec.LastSent = now
	c.stats.segsOut++
	c.acknowledged(0)
}
