package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// input processes a segment in LISTEN (RFC 9293 §3.10.7.2, SEGMENT ARRIVES). tw is the TIME-WAIT
// with the same tuple, or nil. A SYN that the listener answers ends the TIME-WAIT.
func (l *Listener) input(now clock.Time, s *Segment, tw *timeWait) {
	h := l.host
	switch {
	case s.Flags.Has(RST):
		h.drop(DropNoConnection) // first step: there is no connection to reset
		return
	case s.Flags.Has(ACK):
		if s.Flags.Has(SYN) || !l.acceptCookie(now, s) && !l.dropForRetry(now, s) {
			h.reject(DropNoConnection, s) // second step: nothing to acknowledge
		}
		return
	case !s.Flags.Has(SYN) || s.Flags.Has(FIN):
		h.drop(DropFlags) // fourth step; a SYN with a FIN is invalid
		return
	case l.backlogged(), h.full():
		h.drop(DropBacklog)
		return
	}
	path := h.cfg.Route(s.RemoteAddr)
	switch {
	case path.Outlet < 0:
		h.drop(DropNoConnection) // there is no route to the peer
		return
	case l.deferred:
		l.hold(now, s, tw, path)
		return
	case tw == nil && l.wantsCookie():
		l.sendCookie(now, s, path)
		return
	case l.full():
		h.drop(DropBacklog)
		return
	}
	c := l.answer(now, s, path)
	if tw != nil {
		h.timeWaits.remove(tw)
		c.snd.beginAfter(tw)
	}
	l.addHalfOpen(c)
	c.sendSYN(now)
	c.host.reschedule(c)
}

// answer creates the connection for a SYN. The caller adds it to the host.
func (l *Listener) answer(now clock.Time, s *Segment, path Path) *Conn {
	c := l.host.newConn(now, s.Tuple, path)
	l.begin(now, c)
	// Third step: the host ignores data on the SYN and does not acknowledge it, so the peer
	// retransmits it.
	c.storeSYN(s)
	c.setState(now, evSYN)
	return c
}

// begin puts a new connection into LISTEN with the listener's options.
func (l *Listener) begin(now clock.Time, c *Conn) {
	c.links.listener = l
	o := l.options // valid, because SetSockopts has checked them
	o.NoDelay = o.NoDelay || l.host.cfg.NoDelay
	o.apply(now, c)
	c.setState(now, evListen)
}

func (l *Listener) addHalfOpen(c *Conn) {
	c.flags |= connHalfOpen
	l.halfOpen++
	l.host.insert(c)
}

// storeSYN stores the peer's sequence number, window and options. The window of a SYN is never
// scaled (RFC 7323 §2.2).
func (c *Conn) storeSYN(s *Segment) {
	c.rcv.begin(s.Seq)
	c.snd.setWindow(int(s.Window))
	c.snd.wl1 = c.rcv.irs
	o := c.hs.negotiate(&c.host.cfg.Knobs, s)
	if o.HasTimestamps {
		c.stamps.recent, c.stamps.recentAt = o.TSVal, c.host.now
	}
	c.snd.adoptTimeout(c.host.now, o.UserTimeout)
	c.snd.finAlone = c.hs.has(hsPlain)
	c.snd.path.peerOffers(&s.Options, c.hs.has(hsPlain), o.HasTimestamps)
	c.snd.updateMSS()
	c.rcv.sack = o.SACKPermitted
	if o.HasWindowScale {
		c.snd.scale, c.rcv.scale = o.WindowScale, c.rcv.windowScale()
	}
}

// inputSynSent processes a segment in SYN-SENT (RFC 9293 §3.10.7.3, SEGMENT ARRIVES).
func (c *Conn) inputSynSent(now clock.Time, s *Segment) {
	ack := widen(c.snd.Una, s.Ack)
	if s.Flags.Has(ACK) && ack != c.snd.Nxt { // first step: ACK
		c.host.reject(DropAck, s)
		return
	}
	if s.Flags.Has(RST) { // second step: RST
		if !s.Flags.Has(ACK) {
			c.host.drop(DropReset)
		} else if c.hs.retryWithoutECN() {
			c.sendSYN(now)
		} else {
			c.fail(now, ErrRefused)
		}
		return
	}
	if !s.Flags.Has(SYN) { // fifth step: neither SYN nor RST
		c.host.drop(DropFlags)
		return
	}
	c.storeSYN(s) // fourth step: SYN
	if !s.Flags.Has(ACK) {
		// Simultaneous open (RFC 9293 §3.5, figure 8).
		c.setState(now, evSYN)
		c.sendSYN(now)
		return
	}
	c.setState(now, evSYNACK)
	c.rcv.ack.atOnce()
	c.handleContents(now, s, c.rcv.nxt)
}

// completeHandshake processes the acknowledgment of our SYN in SYN-RECEIVED.
func (c *Conn) completeHandshake(now clock.Time, s *Segment) {
	c.setState(now, evACKOfSYN)
	c.snd.setWindow(c.snd.offered(s))
}

// sendSYN queues the SYN or SYN-ACK and starts its retransmission timer.
func (c *Conn) sendSYN(now clock.Time) {
	c.hs.flags |= hsSynDue
	d := c.host.cfg.Retries.SynTimeout
	if d == 0 {
		d = c.snd.rec.RTO(c.snd.rec.Backoff)
	}
	c.snd.rec.At.RTO = now.Later(d)
	c.snd.wait.watch(now)
}

func (c *Conn) outputSYN(now clock.Time, t *Train) {
	first, knobs := c.state == StateSynSent, &c.host.cfg.Knobs
	c.hs.flags &^= hsSynDue
	c.begin(t, c.snd.iss, SYN)
	if first {
		t.Flags, t.Ack = SYN, 0
	}
	t.Flags |= c.hs.synFlags(knobs, first, c.snd.rec.Retries > 0)
	t.Options = Options{}
	plain := c.hs.has(hsPlain)
	switch {
	case knobs.OptionsOff, plain && !c.snd.path.DefaultMSS:
	case plain:
		t.Options.MSS = c.snd.path.offer() // RFC 9293 §3.7.1 (SHLD-5): on every SYN
	// The peer may be unable to parse options, so a late retransmission of the SYN has none. If the
	// SYN-ACK carries options, the host still negotiates them, because the peer may have received
	// the first SYN.
	case first && (int(c.snd.rec.Retries) >= min(plainSYN, c.host.cfg.Retries.Syn) ||
		c.host.peers.knowsPlain(now, c.tuple.RemoteAddr)):
	default:
		offer := synOffer{
			first: first, mss: c.snd.path.offer(), timeout: c.snd.wait.offer(),
			sack: first || c.rcv.sack, scale: c.rcv.scale,
		}
		if first {
			offer.scale = c.rcv.windowScale()
		}
		t.Options = c.hs.options(knobs, offer)
		if t.Options.HasTimestamps {
			c.stamps.put(now, &t.Options)
		}
		if first {
			t.Options.TSEcr = 0 // RFC 7323 §3.2: there is nothing to echo yet
		}
	}
	if c.snd.rec.LastSent != clock.Never {
		c.hs.flags |= hsSynResent
	}
	c.snd.rec.LastSent = now
	c.transmitted(now, t)
}

// handleRepeatedSYN handles the SYN that the peer retransmits in SYN-RECEIVED.
func (c *Conn) handleRepeatedSYN(now clock.Time, s *Segment, seq uint64) {
	if s.Flags.Has(RST) {
		c.host.drop(DropSequence)
		return
	}
	c.host.drop(DropDuplicate)
	if !s.Flags.Has(ACK) {
		c.stamps.remember(now, s, seq)
		c.hs.repeated(s)
		if c.rcv.allowACK(now) {
			c.hs.flags |= hsSynDue // our SYN-ACK was lost
		}
		return
	}
	if c.hs.has(hsActive) && widen(c.snd.Una, s.Ack) == c.snd.Nxt {
		// Simultaneous open, RFC 9293 §3.5, figure 8: the peer's SYN-ACK acknowledges our SYN.
		c.completeHandshake(now, s)
		c.stamps.remember(now, s, seq)
		c.handleContents(now, s, seq+1)
	}
	c.rcv.limitedACK(now)
}
