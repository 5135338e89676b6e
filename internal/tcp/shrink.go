package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// shrinks reports whether to reduce a connection to a halfOpen: it waits for the acknowledgment of
// its SYN-ACK and for nothing else. A connection with a probe or an Owner stays as it is.
func (h *Host) shrinks(c *Conn) bool {
	return c.flags.has(connHalfOpen) && c.state == StateSynReceived && !c.hs.has(hsSynDue) &&
		c.rcv.ack.owed == 0 && c.snd.rec.At.RTO != clock.Never && c.snd.path.Outlet >= 0 &&
		c.snd.rec.Changed == nil && c.Owner == nil && !c.rcv.closed && !c.snd.closed
}

// shrink reduces a half-open connection to a halfOpen.
func (h *Host) shrink(c *Conn) {
	o := &halfOpen{
		tuple: c.tuple, flags: c.flags &^ connShown, hs: c.hs, listener: c.links.listener,
		iss: uint32(c.snd.iss), irs: uint32(c.rcv.irs),
		edge: uint16(c.rcv.window()), wnd: uint16(c.snd.wnd),
		syn: synAgreed{
			c.snd.path.peerMSS, c.snd.scale, c.rcv.scale, c.rcv.sack,
			c.snd.rec.Paced, c.snd.rec.Late,
		},
		nagle: c.snd.nagle,
		stamp: c.stamps.offset, recent: c.stamps.recent, recentAt: c.stamps.recentAt,
		since: c.snd.wait.since, lastSent: c.snd.rec.LastSent, rto: c.snd.rec.At.RTO,
		retries: uint32(c.snd.rec.Retries),
		segsIn:  uint32(c.stats.segsIn), segsOut: uint32(c.stats.segsOut),
	}
	rare := rareState{
		ackLimits: c.rcv.ackLimits, err: c.err, wait: c.snd.wait,
		lastDataAt: c.rcv.lastDataAt, dataSegsIn: c.stats.dataSegsIn,
	}
	if rare != (rareState{wait: userTimeout{since: o.since}}) {
		kept := rare
		o.rare = &kept
	}
	h.unregister(c)
	c.freeState()
	h.half.push(o)
	if !c.flags.has(connShown) {
		h.half.give(c)
	}
}

// restore rebuilds the connection of a halfOpen and adds it to the host.
func (h *Host) restore(now clock.Time, o *halfOpen) *Conn {
	h.half.remove(o)
	c := h.rebuild(now, o)
	h.register(c)
	h.reschedule(c)
	return c
}

// rebuild returns the connection of a halfOpen without adding it to the host.
func (h *Host) rebuild(now clock.Time, o *halfOpen) *Conn {
	c := h.blank(now, o.tuple, h.cfg.Route(o.tuple.RemoteAddr))
	o.listener.begin(now, c)
	c.setState(now, evSYN)
	c.flags, c.hs = o.flags, o.hs
	c.snd.begin(o.iss)
	c.rcv.begin(o.irs)
	c.rcv.edge = c.rcv.nxt + uint64(o.edge)
	c.snd.wl1 = c.rcv.irs
	c.snd.wnd, c.snd.maxWnd = int(o.wnd), int(o.wnd)
	c.snd.path.peerMSS, c.snd.path.stamped = o.syn.mss, o.hs.has(hsStamps)
	c.snd.finAlone = o.hs.has(hsPlain)
	c.snd.scale, c.rcv.scale, c.rcv.sack = o.syn.sendScale, o.syn.recvScale, o.syn.sack
	c.snd.nagle, c.snd.rec.Paced, c.snd.rec.Late = o.nagle, o.syn.paced, o.syn.late
	c.stamps = stamps{
		offset: o.stamp, recent: o.recent, recentAt: o.recentAt, lastAck: c.rcv.nxt,
	}
	c.snd.rec.LastSent = o.lastSent
	c.snd.rec.Retries = int32(o.retries)
	c.snd.rec.Backoff = uint8(min(o.retries, recovery.MaxBackoff))
	c.stats.segsIn, c.stats.segsOut = uint64(o.segsIn), uint64(o.segsOut)
	c.snd.limit.since = o.since
	c.snd.wait = userTimeout{since: o.since}
	if rare := o.rare; rare != nil {
		c.err, c.snd.wait, c.rcv.ackLimits = rare.err, rare.wait, rare.ackLimits
		c.rcv.lastDataAt, c.stats.dataSegsIn = rare.lastDataAt, rare.dataSegsIn
	}
	c.snd.rec.At.RTO, c.snd.wait.at = o.rto, clock.Never
	c.snd.wait.watch(now)
	c.snd.updateMSS()
	return c
}

// restoreDue restores the connections whose timers are due at now, at most maxSpareConns in a call.
func (h *Host) restoreDue(now clock.Time) {
	for n := 0; n < maxSpareConns && h.half.deadline().Due(now); n++ {
		h.restore(now, h.half.byDue[0])
	}
}
