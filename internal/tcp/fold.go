package tcp

import (
	"iter"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// fold makes a half-open connection small.
func (h *Host) fold(c *Conn) {
	o := &halfOpen{
		tuple: c.tuple, flags: c.flags &^ flagShown, listener: c.links.listener,
		iss: uint32(c.snd.iss), irs: uint32(c.rcv.irs),
		edge: uint16(c.rcv.window()), wnd: uint16(c.snd.wnd),
		syn: synAgreed{
			uint16(c.snd.peerMSS), c.snd.scale, c.rcv.scale, c.rcv.sack,
			c.rec.is.paced, c.rec.is.late,
		},
		nagle: c.snd.nagle,
		stamp: c.stamps.offset, recent: c.stamps.recent, recentAt: c.stamps.recentAt,
		since: c.wait.since, lastSent: c.rec.lastSent, rto: c.rec.at.rto,
		retries: uint32(c.rec.retries),
		segsIn:  uint32(c.stats.segsIn), segsOut: uint32(c.stats.segsOut),
	}
	odd := oddity{
		answers: c.answers, doubt: c.err, wait: c.wait,
		lastReceived: c.rcv.heardAt, dataSegsIn: c.stats.dataSegsIn,
	}
	if odd != (oddity{wait: userTimeout{since: o.since}}) {
		kept := odd
		o.odd = &kept
	}
	h.unhook(c)
	c.rec.end()
	c.rcv.rest()
	h.half.push(o)
	if !c.has(flagShown) {
		h.half.give(c)
	}
}

// unfold makes the connection of a half-open one that something happens to.
func (h *Host) unfold(now clock.Time, o *halfOpen) *Conn {
	h.half.remove(o)
	c := h.likeness(now, o)
	h.hook(c)
	h.wake(c)
	return c
}

// likeness returns the connection that a half-open one stands for, of which the host does not know.
func (h *Host) likeness(now clock.Time, o *halfOpen) *Conn {
	c := h.blank(now, o.tuple, h.cfg.Route(o.tuple.RemoteAddr))
	c.beginFor(now, o.listener)
	c.setState(now, evSYN)
	c.flags = o.flags
	c.snd.begin(o.iss)
	c.rcv.begin(o.irs)
	c.rcv.edge = c.rcv.nxt + uint64(o.edge)
	c.snd.wl1 = c.rcv.irs
	c.snd.wnd, c.snd.maxWnd, c.snd.peerMSS = int(o.wnd), int(o.wnd), int(o.syn.mss)
	c.snd.scale, c.rcv.scale, c.rcv.sack = o.syn.sendScale, o.syn.recvScale, o.syn.sack
	c.snd.nagle, c.rec.is.paced, c.rec.is.late = o.nagle, o.syn.paced, o.syn.late
	c.stamps = stamps{
		offset: o.stamp, recent: o.recent, recentAt: o.recentAt, lastAck: c.rcv.nxt,
	}
	c.rec.lastSent = o.lastSent
	c.rec.retries, c.rec.backoff = int32(o.retries), uint8(min(o.retries, maxBackoff))
	c.stats.segsIn, c.stats.segsOut = uint64(o.segsIn), uint64(o.segsOut)
	c.limit.since = o.since
	c.wait = userTimeout{since: o.since}
	if odd := o.odd; odd != nil {
		c.err, c.wait, c.answers = odd.doubt, odd.wait, odd.answers
		c.rcv.heardAt, c.stats.dataSegsIn = odd.lastReceived, odd.dataSegsIn
	}
	c.rec.at.rto = o.rto
	c.wait.watch(now, &c.timers[timerUser])
	c.refit()
	return c
}

// unfoldDue makes the connections of what is due at or before now, no more than there is spare
// memory for: what is left is due at once again, when these have said what they have to say.
func (h *Host) unfoldDue(now clock.Time) {
	for n := 0; n < maxSpareConns && h.half.deadline().Due(now); n++ {
		h.unfold(now, h.half.byDue[0])
	}
}

// lookup returns the connection of a tuple, whole; nil: there is none, but perhaps a TIME-WAIT.
func (h *Host) lookup(now clock.Time, t Tuple) *Conn {
	if c := h.conns[t]; c != nil {
		return c
	}
	if o := h.half.find(t); o != nil {
		return h.unfold(now, o)
	}
	return nil
}

// has reports whether there is a connection of that tuple, half-open perhaps.
func (h *Host) has(t Tuple) bool { return h.conns[t] != nil || h.half.find(t) != nil }

// known returns how many connections there are, half-open ones too.
func (h *Host) known() int { return len(h.conns) + len(h.half.byTuple) }

// full reports whether there are as many as may be.
func (h *Host) full() bool { return h.known() >= h.cfg.Limits.MaxConns }

// blank returns a connection in CLOSED without numbers: one that was folded, or a new one.
func (h *Host) blank(now clock.Time, t Tuple, p Path) *Conn {
	h.now = now
	c := h.half.take(&h.cfg)
	c.host, c.tuple, c.rec.cc.name = h, t, h.cfg.Recovery.Congestion
	c.rcv.shared, c.snd.txMax = &h.receivers, h.cfg.Buffers.SendMax
	c.rcv.tune.size, c.rcv.tune.max = h.cfg.Buffers.Recv, h.cfg.Buffers.RecvMax
	c.links.heap = -1
	c.rec.rtt.rto = h.cfg.Recovery.RTOInitial
	c.rec.shared, c.rec.snd, c.rec.is.paced = &h.recoveries, &c.snd.sendSpace, h.cfg.Recovery.Pacing
	c.rec.rested.mult = 1
	c.chooseStrategy()
	c.snd.nagle.off = h.cfg.NoDelay
	c.setPath(p)
	c.limitBy(now, LimitHandshake)
	return c
}

// HalfOpen yields the connections of listeners in SYN-RECEIVED. What stands for one that is small
// is there until the next is asked for: to be looked at only.
func (h *Host) HalfOpen() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for o := h.half.first; o != nil; o = o.next {
			c := h.likeness(h.now, o)
			more := yield(c)
			c.rec.end()
			c.rcv.rest()
			h.half.give(c)
			if !more {
				return
			}
		}
		for c := h.all.first; c != nil; c = c.links.in[inAll].next {
			if c.has(flagHalfOpen) && !yield(c) {
				return
			}
		}
	}
}

// Find returns the connection with these ends, nil if there is none or it is in TIME-WAIT. Of one
// that is half-open it is a likeness: to be looked at, and now.
func (h *Host) Find(t Tuple) *Conn {
	if c := h.recent; c != nil && c.tuple == t {
		return c
	}
	if o := h.half.find(t); o != nil {
		return h.likeness(h.now, o)
	}
	return h.conns[t]
}
