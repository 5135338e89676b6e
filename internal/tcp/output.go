package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// Output fills t with the next train to send at now, and reports whether there was one. room holds,
// by outlet, how many segments the outlet's link accepts now. Connections take turns, with one
// train each.
func (h *Host) Output(now clock.Time, room []int, t *Train) bool {
	h.now = now
	if h.replies.output(room, t) {
		h.counters.SegmentsOut++
		return true
	}
	for range h.ready.by {
		if h.ready.turn++; h.ready.turn >= len(h.ready.by) {
			h.ready.turn = 0
		}
		turn := h.ready.turn
		if turn < len(room) && room[turn] > 0 && h.outputBy(now, room[turn], t) {
			h.counters.SegmentsOut += uint64(t.Segments())
			return true
		}
	}
	return false
}

// outputBy lets the connections of one outlet send, in turn, until one has sent.
func (h *Host) outputBy(now clock.Time, room int, t *Train) bool {
	l := &h.ready.by[h.ready.turn]
	for c := l.first; c != nil; c = l.first {
		h.ready.remove(c)
		if c.output(now, room, t) {
			h.ready.push(c)
			return true
		}
		if h.shrinks(c) {
			h.shrink(c)
			continue
		}
		c.idleIfQuiet(now)
		h.schedule(c) // the connection may wait for a timer
	}
	return false
}

// output fills t with the connection's next train of at most room segments and reports whether
// there was one. Retransmissions go before new data, and data carries the acknowledgment if
// possible.
func (c *Conn) output(now clock.Time, room int, t *Train) bool {
	if c.snd.rec.Idle() {
		if !c.wants() {
			return false
		}
		c.leaveIdle()
	}
	switch {
	case c.hs.has(hsSynDue):
		c.outputSYN(now, t)
		return true
	case c.state == StateSynReceived && c.rcv.ack.owed > 0:
		c.outputACK(now, t)
		return true
	case !c.state.synchronized():
		return false
	case c.snd.wait.due || c.rcv.ackBare():
		c.outputACK(now, t)
		return true
	case c.keep.probeDue():
		// A keepalive probe begins before the window of the peer, so the peer must acknowledge it.
		c.keep.due = false
		c.begin(t, c.snd.Nxt-1, 0)
		c.transmitted(now, t)
		return true
	}
	var s sending
	if c.snd.next(now, room, &s) {
		c.begin(t, s.Seq, 0)
		if s.FIN {
			t.Flags |= FIN
		}
		c.snd.addPayload(t, s.Seq, s.N, s.MSS)
		if s.fresh {
			if t.Len > 0 && c.hs.has(hsECN) {
				c.snd.mark(t, !c.hs.has(hsNoECT))
			}
			c.snd.limitBy(now, s.why)
		}
		c.transmitted(now, t)
		c.sample(now)
		return true
	}
	if c.rcv.ack.owed > 0 { // no data carries the acknowledgment
		c.outputACK(now, t)
		return true
	}
	return false
}

// begin initializes a train with the connection's current acknowledgment.
func (c *Conn) begin(t *Train, seq uint64, flags Flags) {
	payload := t.Payload[:0]
	*t = Train{}
	t.Tuple, t.Outlet, t.Payload = c.tuple, int(c.snd.path.Outlet), payload
	t.TOS, t.TTL = c.tos, c.ttl
	t.Seq, t.Flags = uint32(seq), flags|ACK
	t.Ack, t.Window = uint32(c.rcv.nxt), c.rcv.windowField(!c.state.synchronized())
	if c.rcv.echo {
		t.Flags |= ECE
	}
	if c.hs.has(hsStamps) {
		c.stamps.put(c.host.now, &t.Options)
	}
}

// transmitted counts the segments of a train that is sent.
func (c *Conn) transmitted(now clock.Time, t *Train) {
	n := uint64(t.Segments())
	c.stats.segsOut += n
	if t.Len > 0 || t.Flags.Has(FIN) {
		c.stats.dataSegsOut += n
		c.stats.bytesSent += uint64(t.Len)
		c.snd.rec.Transmitted(now, uint32(c.snd.Nxt)-t.Seq, t.Len, int(n))
	}
	c.rcv.ack.sent(t.Len)
	c.stamps.lastAck = c.rcv.nxt
}

func (c *Conn) outputACK(now clock.Time, t *Train) {
	c.begin(t, c.snd.Nxt, 0)
	if c.snd.wait.due {
		c.snd.wait.due = false
		if !c.hs.has(hsPlain) {
			t.Options.UserTimeout = c.snd.wait.offer()
		}
	}
	c.rcv.sackBlocks(&t.Options, c.snd.path.fitting(c.snd.path.MTU))
	c.transmitted(now, t)
}

// Train is a group of consecutive segments of one flow to send. Each has MSS bytes of payload, but
// the last may have fewer. PSH and FIN belong to the last segment only, and CWR to the first only.
// The caller of Output must follow this when it writes the headers.
type Train struct {
	Tuple
	// Header is the header of the first segment. Each later segment adds MSS to Seq.
	Header
	// Outlet is the index of the interface that sends the train.
	Outlet int
	// ECN is the ECN codepoint of every segment.
	ECN ECN
	// TOS is the traffic class of each packet, TTL its time to live; zero: the stack's default.
	TOS, TTL uint8
	// MSS is the payload size of every segment but the last, Len the payload of the whole train.
	MSS, Len int
	// Payload points into the send ring. It is valid until the next call of the engine other than
	// Output.
	Payload [][]byte
}

// Segments returns the number of segments of the train; one if it carries no payload.
func (t *Train) Segments() int {
	if t.Len <= t.MSS || t.MSS <= 0 {
		return 1
	}
	return (t.Len + t.MSS - 1) / t.MSS
}
