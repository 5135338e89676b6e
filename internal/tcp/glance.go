package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Glance is what little of a connection is shown beside each of its segments.
type Glance struct {
	State                State
	Recovery, Congestion string
	Cwnd, Ssthresh       int // bytes; a zero Ssthresh means none
	Pipe                 int // bytes in flight
	MSS                  int // of what is sent
	RTT                  time.Duration
}

// Glance returns the connection's state, at the price of a few fields.
func (c *Conn) Glance() Glance {
	g := Glance{
		State: c.State(), Recovery: recoveryNames[steady], Congestion: c.rec.cc.name,
		MSS: c.snd.mss, RTT: c.rec.rtt.srtt,
	}
	if !c.rests() {
		g.Recovery, g.Pipe = recoveryNames[c.rec.ep.kind], c.rec.pipe()
	}
	if c.rec.cc.Controller != nil {
		g.Cwnd, g.Ssthresh = c.rec.cc.Cwnd(), c.rec.cc.Ssthresh()
	}
	return g
}

// Pending is the time-out that a connection waits for.
type Pending struct {
	// Name is what ss calls it: "on" until something is sent again, "persist" until a window is
	// probed, "keepalive" until a silent peer is asked, or let go.
	Name    string
	At      clock.Time
	Retries int // that were not answered
}

// Pending returns the time-out that matters most; false: none runs.
func (c *Conn) Pending() (Pending, bool) {
	t := &c.timers
	again := clock.Earliest(c.rec.at.rto, c.rec.at.probe, c.rec.at.reorder)
	silent := clock.Earliest(t[timerKeepalive], t[timerFinWait2])
	switch {
	case again != clock.Never:
		return Pending{"on", again, int(c.rec.retries)}, true
	case t[timerPersist] != clock.Never:
		return Pending{"persist", t[timerPersist], int(c.snd.probes)}, true
	case silent != clock.Never:
		p := Pending{Name: "keepalive", At: silent}
		if c.keep != nil {
			p.Retries = c.keep.asked
		}
		return p, true
	}
	return Pending{}, false
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

// Bearings are where a connection stands in the sequence numbers of both ends.
type Bearings struct {
	ISS, IRS       uint32 // what the SYNs had
	Sent, Received uint64 // what comes next, counted from them
	// SendScale is the shift of the windows that we receive, RecvScale of those that we send;
	// -1: not negotiated (RFC 7323 §2.2).
	SendScale, RecvScale int
}

// Bearings returns them; false: the peer's SYN has not come yet.
func (c *Conn) Bearings() (b Bearings, ok bool) {
	if s := c.State(); s == StateClosed || s == StateListen || s == StateSynSent {
		return b, false
	}
	b = Bearings{
		ISS: uint32(c.snd.iss), IRS: uint32(c.rcv.irs), SendScale: -1, RecvScale: -1,
		Sent: c.snd.nxt - c.snd.iss, Received: c.rcv.nxt - c.rcv.irs,
	}
	if c.has(flagScale) {
		b.SendScale, b.RecvScale = int(c.snd.scale), int(c.rcv.scale)
	}
	return b, true
}
