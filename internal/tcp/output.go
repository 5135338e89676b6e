package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// output fills t with the connection's next train of at most room segments and
// reports whether there was one. What was lost goes before what is new, and an
// acknowledgment rides on text when it can.
func (c *Conn) output(now clock.Time, room int, t *Train) bool {
	if c.snd.rec.Resting() {
		if !c.wants() {
			return false
		}
		c.busy()
	}
	switch {
	case c.hs.has(flagSynDue):
		c.outputSYN(now, t)
		return true
	case c.state == StateSynReceived && c.rcv.ack.owed > 0:
		c.outputACK(now, t)
		return true
	case !c.state.synchronized():
		return false
	}
	if c.snd.wait.due || c.rcv.ackBare() {
		c.outputACK(now, t)
		return true
	}
	if c.keep.asks() {
		c.outputKeepalive(now, t)
		return true
	}
	if c.snd.rec.CC.Controller == nil && !c.begins(now) {
		return c.outputLastACK(now, t)
	}
	var s sending
	if !c.snd.next(now, room, &s) {
		return c.outputLastACK(now, t)
	}
	c.begin(t, s.Seq, 0)
	if s.FIN {
		t.Flags |= FIN
	}
	c.snd.lend(t, s.Seq, s.N, s.MSS)
	if s.fresh {
		c.markNew(t)
		c.snd.limitBy(now, s.why)
	}
	c.leave(now, t)
	c.sample(now)
	return true
}

// outputLastACK sends the acknowledgment that found no text to ride on.
func (c *Conn) outputLastACK(now clock.Time, t *Train) bool {
	if c.rcv.ack.owed == 0 {
		return false
	}
	c.outputACK(now, t)
	return true
}

// begins gives a connection that has its first text, or its FIN, to send a congestion
// controller. Until then it has none, and it reports false.
func (c *Conn) begins(now clock.Time) bool {
	if !c.snd.waits() {
		c.snd.limitBy(now, LimitIdle)
		c.snd.rec.AppLimited()
		return false
	}
	c.snd.rec.Begin(c.congestionConfig())
	return true
}

// congestionConfig is what only the connection knows of a congestion controller's configuration.
func (c *Conn) congestionConfig() congestion.Config {
	return congestion.Config{
		Now: c.host.now, Burst: c.snd.trainLimit(),
		Seed: c.snd.iss ^ uint64(c.tuple.LocalPort)<<48,
	}
}

// begin starts a train with the connection's current acknowledgment.
func (c *Conn) begin(t *Train, seq uint64, flags Flags) {
	*t = Train{
		Tuple: c.tuple, Outlet: c.snd.path.Outlet, Payload: t.Payload[:0], TOS: c.tos, TTL: c.ttl,
	}
	t.Seq, t.Flags = uint32(seq), flags|ACK
	t.Ack, t.Window = uint32(c.rcv.nxt), c.rcv.windowField(!c.state.synchronized())
	if c.rcv.echo {
		t.Flags |= ECE
	}
	if c.hs.has(flagStamps) {
		c.stamps.put(c.host.now, &t.Options)
	}
}

// acknowledged notes that a segment with the current acknowledgment leaves, with so many bytes of
// data.
func (c *Conn) acknowledged(data int) {
	c.rcv.ack.sent(data)
	c.stamps.lastAck = c.rcv.nxt
}

// leave counts a train that is complete.
func (c *Conn) leave(now clock.Time, t *Train) {
	n := uint64(t.Segments())
	c.stats.segsOut += n
	if t.Len > 0 || t.Flags.Has(FIN) {
		c.stats.dataSegsOut += n
		c.stats.bytesSent += uint64(t.Len)
		c.snd.rec.Left(now, uint32(c.snd.Nxt)-t.Seq, t.Len, int(n))
	}
	c.acknowledged(t.Len)
}

func (c *Conn) outputACK(now clock.Time, t *Train) {
	c.begin(t, c.snd.Nxt, 0)
	if c.snd.wait.due {
		c.snd.wait.due = false
		if !c.hs.has(flagPlain) {
			t.Options.UserTimeout = c.snd.wait.offer()
		}
	}
	c.rcv.sackBlocks(&t.Options, fitting(c.snd.path.MTU))
	c.leave(now, t)
}

// markNew gives a train of new data its codepoint, and CWR when the window was reduced since the
// last one (RFC 3168 §6.1.2). Nothing else is ECN-capable: not bare ACKs (RFC 3168 §6.1.4),
// retransmissions (RFC 3168 §6.1.5) or window probes (RFC 3168 §6.1.6).
func (c *Conn) markNew(t *Train) {
	if t.Len == 0 || !c.hs.has(flagECN) {
		return
	}
	if !c.hs.has(flagNoECT) {
		t.ECN = ECT0
	}
	if c.snd.rec.Kept.ECN.TakeCWR() {
		t.Flags |= CWR
	}
}
