package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// output fills t with the connection's next train of at most room segments and
// reports whether there was one. What was lost goes before what is new, and an
// acknowledgment rides on text when it can.
func (c *Conn) output(now clock.Time, room int, t *Train) bool {
	if c.rec.Resting() {
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
	if c.wait.due || c.rcv.ackBare() {
		c.outputACK(now, t)
		return true
	}
	if c.keep.asks() {
		c.outputKeepalive(now, t)
		return true
	}
	if c.rec.CC.Controller == nil && !c.begins(now) {
		return c.outputLastACK(now, t)
	}
	room = c.rec.Pace(min(room, c.trainLimit()))
	if c.snd.probeDue && c.outputWindowProbe(now, t) ||
		c.rec.Kept.TLP.Due && c.outputTailProbe(now, t) {
		c.sample(now)
		return true
	}
	if c.outputText(now, room, t) {
		c.sample(now)
		return true
	}
	return c.outputLastACK(now, t)
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
		c.limitBy(now, LimitIdle)
		c.rec.AppLimited()
		return false
	}
	c.rec.Begin(c.congestionConfig())
	return true
}

// congestionConfig is what only the connection knows of a congestion controller's configuration.
func (c *Conn) congestionConfig() congestion.Config {
	return congestion.Config{
		Now: c.host.now, Burst: c.trainLimit(),
		Seed: c.snd.iss ^ uint64(c.tuple.LocalPort)<<48,
	}
}

// outputText sends text: again what was lost, or else what is new, or else in
// recovery whatever may still be worth sending again.
func (c *Conn) outputText(now clock.Time, room int, t *Train) bool {
	if n, only := c.rec.Episode.Fresh(); only {
		if c.outputNew(now, room, t, min(c.rec.Allowance(), n)) {
			return true
		}
		if !c.rec.Episode.EndForward(c.snd.MSS) {
			return false
		}
	}
	if c.rec.Record.Lost() {
		return c.outputLost(now, room, t)
	}
	if sent, hold := c.outputMTUProbe(now, t); sent || hold {
		return sent
	}
	return c.outputNew(now, room, t, c.rec.Allowance()) ||
		c.rec.Spare(now) && c.outputLost(now, room, t)
}

// outputMTUProbe sends a probe of the path's MTU, if it is time for one and losing it would be
// noticed: enough must follow it for the peer to report the gap. Hold asks that
// nothing else be sent, until acknowledgments have made room for it.
func (c *Conn) outputMTUProbe(now clock.Time, t *Train) (sent, hold bool) {
	p := &c.path
	if !p.due(now) {
		return false, false
	}
	if !c.probesMTU() {
		// RFC 1191 §6.3: after a while the first link's MTU is tried again, and a router objects.
		p.search, p.MTU = nil, p.link
		c.refit()
		return false, false
	}
	n := p.probe(now)
	need := n + (recovery.DupThresh+1)*c.snd.MSS
	if n == 0 || c.snd.unsent() < need || c.snd.usable() < need {
		return false, false
	}
	if room, hold := c.rec.RoomForMTUProbe(n, need); !room {
		return false, hold
	}
	seq := c.snd.Nxt
	p.search.seq = seq
	c.begin(t, seq, 0)
	c.snd.lend(t, seq, n, n)
	c.rec.Push(now, seq, n, recovery.MTUProbe)
	c.snd.Nxt += uint64(n)
	c.armSent(now)
	c.leave(now, t)
	return true, false
}

// probesMTU reports whether probes may be sent: their loss has to be told from
// that of others, and noticed soon.
func (c *Conn) probesMTU() bool {
	return c.host.cfg.MTUProbing != MTUProbingOff && c.rcv.sack && c.rec.ProbesTail()
}

// trainLimit returns the most segments of a train.
func (c *Conn) trainLimit() int {
	return max(1, min(c.host.cfg.TrainSegments, maxTrainBytes/(c.snd.MSS+60)))
}

// begin starts a train with the connection's current acknowledgment.
func (c *Conn) begin(t *Train, seq uint64, flags Flags) {
	*t = Train{
		Tuple: c.tuple, Outlet: c.path.Outlet, Payload: t.Payload[:0], TOS: c.tos, TTL: c.ttl,
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
		c.rec.Left(now, uint32(c.snd.Nxt)-t.Seq, t.Len, int(n))
	}
	c.acknowledged(t.Len)
}

func (c *Conn) outputACK(now clock.Time, t *Train) {
	c.begin(t, c.snd.Nxt, 0)
	if c.wait.due {
		t.Options.UserTimeout, c.wait.due = c.offeredTimeout(), false
	}
	c.rcv.sackBlocks(&t.Options, fitting(c.path.MTU))
	c.leave(now, t)
}

// outputLost retransmits what is thought lost, neighbours of equal size as one train.
func (c *Conn) outputLost(now clock.Time, room int, t *Train) bool {
	if !c.rec.MayResend() {
		why := LimitRecovery
		if c.rec.Episode.Open() {
			why = LimitCwnd
		}
		c.limitBy(now, why)
		return false
	}
	if c.holds(now, c.rec.Pacer.Holds(now), LimitPacing) {
		return false
	}
	c.again(now, t, c.rec.Resend(now, room))
	return true
}

// again fills t with data that was sent before.
func (c *Conn) again(now clock.Time, t *Train, s recovery.Span) {
	c.begin(t, s.Seq, 0)
	if s.FIN {
		t.Flags |= FIN
	}
	c.snd.lend(t, s.Seq, s.N, s.MSS)
	c.leave(now, t)
}

// holds reports whether something keeps data back until an instant, and sees to it that the data
// leaves in time.
func (c *Conn) holds(now, until clock.Time, why Limit) bool {
	if until == clock.Never {
		return false
	}
	c.limitBy(now, why)
	c.timers[timerPace] = until
	return true
}

// outputNew sends what was never sent, as far as the peer's window, the
// allowance of congestion control, silly window avoidance and Nagle let it.
func (c *Conn) outputNew(now clock.Time, room int, t *Train, allowed int) bool {
	waiting := c.snd.unsent()
	finish := c.finishes(now, waiting)
	if waiting == 0 && !finish {
		c.runDry(now)
		return false
	}
	// A segment may be longer than a train of several: there is always room for one.
	most := min(room*c.snd.MSS, max(maxTrainBytes, c.snd.MSS))
	n, why := c.admitted(waiting, most, allowed)
	finish = finish && n == waiting && c.snd.usable() > n
	if n == 0 && !finish {
		if why == LimitNone && waiting == 0 {
			why = LimitReceiver // a FIN that the window does not admit
		}
		switch {
		case why == LimitReceiver && c.rec.Record.Empty():
			c.startProbing(now)
			why = LimitPersist
		case why != LimitReceiver && waiting < c.snd.MSS:
			c.rec.AppLimited() // it has not written a segment's worth
		}
		c.limitBy(now, why)
		return false
	}
	if n > 0 && (c.holds(now, c.rec.Kept.ECN.Holds(now), LimitCwnd) ||
		c.holds(now, c.rec.Pacer.Holds(now), LimitPacing)) {
		return false
	}
	if n > 0 && c.rec.Record.Empty() {
		// RFC 5681 §4.1: before the window is used, not after.
		c.rec.Restart(now)
		n, why = c.admitted(waiting, most, min(allowed, c.rec.Allowance()))
		finish = finish && n == waiting
	}
	seq := c.snd.Nxt
	var flags Flags
	if finish {
		flags = FIN
		c.snd.fin = seq + uint64(n)
	}
	c.begin(t, seq, flags)
	c.snd.lend(t, seq, n, c.snd.MSS)
	c.markNew(t)
	c.record(now, seq, n, finish)
	c.limitBy(now, why)
	c.leave(now, t)
	return true
}

// runDry notes that all that was written is sent.
func (c *Conn) runDry(now clock.Time) {
	switch {
	case c.rec.Record.Empty():
		c.limitBy(now, LimitIdle)
	case c.snd.tx.Free() < c.snd.MSS:
		c.limitBy(now, LimitBuffer)
	default:
		c.limitBy(now, LimitApp)
	}
	c.rec.AppLimited()
}

// admitted returns how many of the waiting bytes may leave now, and what the limit was.
func (c *Conn) admitted(waiting, most, allowed int) (int, Limit) {
	allowed, remainder := c.rec.Allow(allowed, waiting)
	n, why := c.snd.admitted(waiting, most, allowed, remainder)
	if why == LimitCork && c.timers[timerCork] == clock.Never {
		c.timers[timerCork] = c.host.now.Later(corkTime)
	}
	return n, why
}

// record enters what is sent for the first time into the sent queue.
func (c *Conn) record(now clock.Time, seq uint64, n int, finish bool) {
	mss := c.snd.MSS
	if n%mss != 0 {
		c.snd.smallEnd = seq + uint64(n)
		c.snd.nagle.corkOut = false // the next short one is held anew
		c.timers[timerCork] = clock.Never
	}
	c.snd.Nxt = seq + uint64(n)
	if finish {
		c.snd.Nxt++
	}
	for {
		size, flags := min(n, mss), recovery.Flags(0)
		if n -= size; n == 0 && finish {
			size, flags = size+1, recovery.FIN
		}
		c.rec.Push(now, seq, size, flags)
		if n == 0 {
			break
		}
		seq += uint64(size)
	}
	c.armSent(now)
}

// armSent starts the time-outs of what was just sent for the first time.
func (c *Conn) armSent(now clock.Time) {
	if c.rec.Arm(now) {
		c.wait.since = now
		c.wait.watch(now, &c.timers[timerUser])
	}
}

// outputTailProbe sends the loss probe: new data if the peer's window takes
// any, else the last segment again (RFC 8985 §7.3).
func (c *Conn) outputTailProbe(now clock.Time, t *Train) bool {
	segments, ok := c.rec.BeginProbe(now)
	if !ok {
		return false
	}
	if segments > 0 && c.outputNew(now, segments, t, segments*c.snd.MSS) {
		c.rec.Probed(now)
		return true
	}
	s, ok := c.rec.RepeatProbe(now)
	if ok {
		c.again(now, t, s)
	}
	return ok
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
	if c.rec.Kept.ECN.TakeCWR() {
		t.Flags |= CWR
	}
}

// finPatience is how long a FIN waits for a peer without TCP options to read what it has
// acknowledged.
const finPatience = 10 * time.Millisecond

// finishes reports whether our FIN may go behind the next n bytes, all that wait to be sent.
//
// RFC 9293 §3.10.4 lets it ride on the last data, and so it does unless the peer sent no TCP
// options. The course's nodes send none. Some of them ignore a segment with data and a FIN
// forever, some take the FIN and drop the data, some acknowledge the data alone, and some discard
// at the FIN what their program has not read. So to them the FIN goes alone, once all data is
// acknowledged and, as far as their window shows it, read.
func (c *Conn) finishes(now clock.Time, n int) bool {
	switch {
	case !c.snd.closed || c.snd.fin != 0:
		return false
	case !c.hs.has(flagPlain):
		return true
	case n > 0 || !c.rec.Record.Empty():
		return false
	case c.snd.wnd >= c.snd.maxWnd || c.stats.bytesSent == 0:
		return true
	}
	// Most of these nodes do not report that their window has opened again, so this ends soon.
	until := c.wait.since.Add(finPatience) // since its last acknowledgment
	if until.Due(now) {
		return true
	}
	c.timers[timerPace] = until
	return false
}
