package tcp

import "time"

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
		State: c.State(), Recovery: recoveryNames[steady], Congestion: c.cc.name,
		MSS: c.snd.mss, RTT: c.rtt.srtt,
	}
	if c.work != nil {
		g.Recovery, g.Pipe = recoveryNames[c.rec.kind], c.pipe()
	}
	if c.cc.Controller != nil {
		g.Cwnd, g.Ssthresh = c.cc.Cwnd(), c.cc.Ssthresh()
	}
	return g
}

// Find returns the connection with these ends, nil if there is none or it is in TIME-WAIT.
func (h *Host) Find(t Tuple) *Conn {
	if c := h.recent; c != nil && c.tuple == t {
		return c
	}
	return h.conns[t]
}
