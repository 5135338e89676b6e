package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// input is SEGMENT ARRIVES in LISTEN, RFC 9293 §3.10.7.2.
// Last is the TIME-WAIT of the same tuple that the SYN ends if it is taken, nil
// when there is none.
func (l *Listener) input(now clock.Time, s *Segment, last *timeWait) {
	h := l.host
	switch {
	case s.Flags.Has(RST):
		h.drop(DropNoConnection) // first: nothing here to reset
		return
	case s.Flags.Has(ACK):
		if s.Flags.Has(SYN) || !l.acceptCookie(now, s) && !l.mayReturn(now, s) {
			h.drop(DropNoConnection) // second: nothing here to acknowledge
			h.refuse(s)
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

// answer makes the connection that a SYN asks for. The host does not know it
// yet.
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
	ack := widen(c.snd.una, s.Ack)
	if s.Flags.Has(ACK) && ack != c.snd.nxt { // first
		c.host.drop(DropAck)
		c.host.refuse(s)
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
	c.snd.una = c.snd.nxt
	c.settled()
	if !c.has(flagSynAgain) && c.rec.lastSent != clock.Never {
		c.rec.rtt.sample(now, now.Sub(c.rec.lastSent), 1, &c.host.cfg)
	}
	c.stats.lastAck = now
}

// sendSYN asks for the SYN or SYN-ACK to be sent, and again until answered.
func (c *Conn) sendSYN(now clock.Time) {
	c.flags |= flagSynDue
	c.rec.at.rto = in(now, c.synTimeout())
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
	if c.state == StateSynSent && (int(c.rec.retries) >= min(plainSYN, c.host.cfg.SynRetries) ||
		c.host.knowsPlain(c.host.now, c.tuple.RemoteAddr)) {
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
