package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// output fills t with the connection's next train of at most room segments and
// reports whether there was one. What was lost goes before what is new, and an
// acknowledgment rides on text when it can.
func (c *Conn) output(now clock.Time, room int, t *Train) bool {
	if c.work == nil {
		if !c.wants() {
			return false
		}
		c.busy()
	}
	switch {
	case c.has(flagSynDue):
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
	if c.asks() {
		c.outputKeepalive(now, t)
		return true
	}
	if c.cc.Controller == nil && !c.begins(now) {
		return c.outputLastACK(now, t)
	}
	room = c.pace(min(room, c.trainLimit()))
	if c.snd.probeDue && c.outputWindowProbe(now, t) ||
		c.trouble.tlp.due && c.outputTailProbe(now, t) {
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
		c.rec.sent.appLimited = c.rec.sent.delivered + 1
		return false
	}
	c.newController()
	return true
}

// outputText sends text: again what was lost, or else what is new, or else in
// recovery whatever may still be worth sending again.
func (c *Conn) outputText(now clock.Time, room int, t *Train) bool {
	switch {
	case c.rec.forward == forwardNew && c.outputForward(now, room, t):
		return true
	case c.rec.forward == forwardNew:
		return false
	case c.rec.sent.lists[lost].n > 0:
		return c.outputLost(now, room, t)
	}
	if sent, hold := c.outputMTUProbe(now, t); sent || hold {
		return sent
	}
	switch {
	case c.outputNew(now, room, t, c.allowance()):
		return true
	case c.rec.kind != recovering || c.how.spare == nil || c.allowance() < c.snd.mss ||
		c.pacer.holds(now):
		return false
	}
	id, ok := c.how.spare(&c.rec)
	if !ok {
		return false
	}
	c.rec.sent.move(id, c.rec.sent.at(id), lost)
	return c.outputLost(now, room, t)
}

// trainLimit returns the most segments of a train.
func (c *Conn) trainLimit() int {
	return max(1, min(c.host.cfg.TrainSegments, maxTrainBytes/(c.snd.mss+60)))
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
	if c.has(flagStamps) {
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
		c.stats.lastSent = now
		c.pacer.sent(now, t.Len, c.snd.mss)
		tellSent(c, now, t)
	}
	c.acknowledged(t.Len)
}

func (c *Conn) outputSYN(now clock.Time, t *Train) {
	c.flags &^= flagSynDue
	c.begin(t, c.snd.iss, SYN)
	if c.state == StateSynSent {
		t.Flags, t.Ack = SYN, 0
	}
	t.Flags |= c.synFlags()
	t.Options = c.synOptions()
	if c.stats.lastSent != clock.Never {
		c.flags |= flagSynAgain
	}
	c.stats.lastSent = now
	c.stats.segsOut++
	c.acknowledged(0)
}

func (c *Conn) outputACK(now clock.Time, t *Train) {
	c.begin(t, c.snd.nxt, 0)
	if c.wait.due {
		t.Options.UserTimeout, c.wait.due = c.offeredTimeout(), false
	}
	c.rcv.sackBlocks(&t.Options, fitting(c.path.MTU))
	c.leave(now, t)
}

// outputLost retransmits what is thought lost, neighbours of equal size as one
// train.
func (c *Conn) outputLost(now clock.Time, room int, t *Train) bool {
	q, left := &c.rec.sent, c.allowance()
	if q.uneven {
		c.rec.recut(c.snd.mss) // short pieces, cut while they were in flight, are joined
	}
	id := q.lists[lost].head
	rec := q.at(id)
	if left < rec.text() && !c.rec.force && c.rec.pipe() > 0 ||
		c.rec.forward == forwardFirst && !c.rec.force {
		c.limitBy(now, c.rec.limit())
		return false
	}
	if c.held(now) {
		return false
	}
	seq, mss := rec.seq, min(rec.text(), c.snd.mss)
	room = max(room, ceilDiv(rec.text(), max(mss, 1))) // one record is never cut
	c.begin(t, seq, 0)
	c.rec.noteResent(now)
	n, again := 0, uint64(0)
	for {
		n += rec.text()
		left -= int(rec.size)
		again++
		if rec.flags&recFIN != 0 {
			t.Flags |= FIN
		}
		full := rec.text() == mss
		end := rec.end()
		q.resent(now, id, rec)
		c.rec.undo.sent(rec.seq, end)
		c.rec.spend(int(rec.size))
		id = q.lists[lost].head
		if q.lists[lost].n == 0 || !full || c.rec.forward != forwardOff || (n+mss-1)/mss >= room {
			break
		}
		if rec = q.at(id); rec.seq != end || rec.text() > mss || rec.text() > left {
			break
		}
	}
	c.snd.lend(t, seq, n, mss)
	c.countAgain(again, n)
	if seq == c.snd.una || c.timers[timerRTO] == clock.Never {
		c.armRTO(now)
	}
	c.armProbe(now)
	c.leave(now, t)
	return true
}

func (c *Conn) countAgain(segments uint64, n int) {
	c.trouble.counts.Retransmits += segments
	c.trouble.bytesRetrans += uint64(n)
	c.limit.use.resent += n
	c.host.counters.Retransmits += segments
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
	most := min(room*c.snd.mss, max(maxTrainBytes, c.snd.mss))
	n, why := c.admitted(waiting, most, allowed)
	finish = finish && n == waiting && c.snd.usable() > n
	if n == 0 && !finish {
		if why == LimitNone && waiting == 0 {
			why = LimitReceiver // a FIN that the window does not admit
		}
		switch {
		case why == LimitReceiver && c.rec.sent.empty():
			c.startProbing(now)
			why = LimitPersist
		case why != LimitReceiver && waiting < c.snd.mss:
			c.limitedByApp() // it has not written a segment's worth
		}
		c.limitBy(now, why)
		return false
	}
	if n > 0 && (c.heldByEcho(now) || c.held(now)) {
		return false
	}
	if n > 0 && c.rec.sent.empty() {
		// RFC 5681 §4.1: before the window is used, not after.
		c.restart(now)
		n, why = c.admitted(waiting, most, min(allowed, c.allowance()))
		finish = finish && n == waiting
	}
	seq := c.snd.nxt
	var flags Flags
	if finish {
		flags = FIN
		c.snd.fin = seq + uint64(n)
	}
	c.begin(t, seq, flags)
	c.snd.lend(t, seq, n, c.snd.mss)
	c.markNew(t)
	c.record(now, seq, n, finish)
	c.limitBy(now, why)
	c.limit.sent(why)
	c.leave(now, t)
	return true
}

// runDry notes that all that was written is sent.
func (c *Conn) runDry(now clock.Time) {
	switch {
	case c.rec.sent.empty():
		c.limitBy(now, LimitIdle)
	case c.snd.tx.Free() < c.snd.mss:
		c.limitBy(now, LimitBuffer)
	default:
		c.limitBy(now, LimitApp)
	}
	c.limitedByApp()
}

// admitted returns how many of the waiting bytes may leave now, and what the limit was.
func (c *Conn) admitted(waiting, most, allowed int) (int, Limit) {
	if allowed < min(c.snd.mss, waiting) && c.rec.pipe() == 0 && c.rec.kind != recovering {
		allowed = c.snd.mss // a window below a segment must still move
	}
	n, why := c.snd.admitted(waiting, most, allowed, c.probesPause())
	if why == LimitCork && c.timers[timerCork] == clock.Never {
		c.timers[timerCork] = in(c.host.now, corkTime)
	}
	return n, why
}

// record enters what is sent for the first time into the sent queue.
func (c *Conn) record(now clock.Time, seq uint64, n int, finish bool) {
	mss := c.snd.mss
	if n%mss != 0 {
		c.snd.smallEnd = seq + uint64(n)
		c.snd.nagle.corkOut = false // the next short one is held anew
		c.timers[timerCork] = clock.Never
	}
	c.snd.nxt = seq + uint64(n)
	if finish {
		c.snd.nxt++
	}
	for {
		k, flags := min(n, mss), recFlags(0)
		size := k
		if n -= k; n == 0 && finish {
			flags = recFIN
			size++
		}
		c.rec.push(now, seq, size, flags)
		if n == 0 {
			break
		}
		seq += uint64(size)
	}
	c.armSent(now)
}

// armSent starts the time-outs of what was just sent for the first time.
func (c *Conn) armSent(now clock.Time) {
	if c.timers[timerRTO] == clock.Never {
		c.wait.since = now
		c.wait.watch(now, &c.timers[timerUser])
		c.armRTO(now) // RFC 6298 §5.1
	}
	c.armProbe(now)
}

// outputWindowProbe sends one byte into a shut window: the first that waits, or
// the one that the last probe carried.
func (c *Conn) outputWindowProbe(now clock.Time, t *Train) bool {
	c.snd.probeDue = false
	if c.rec.sent.empty() {
		return c.firstWindowProbe(now, t)
	}
	rec := c.rec.sent.at(c.rec.sent.first)
	c.rec.sent.resent(now, c.rec.sent.first, rec)
	n := min(rec.text(), 1)
	c.begin(t, rec.seq, 0)
	if rec.flags&recFIN != 0 && n == rec.text() {
		t.Flags |= FIN
	}
	c.snd.lend(t, rec.seq, n, c.snd.mss)
	c.countAgain(1, n)
	c.leave(now, t)
	return true
}

func (c *Conn) firstWindowProbe(now clock.Time, t *Train) bool {
	n := min(c.snd.unsent(), max(1, c.snd.usable()), c.snd.mss)
	finish := n == c.snd.unsent() && c.finishes(now, n)
	if n == 0 && !finish {
		return false
	}
	seq := c.snd.nxt
	var flags Flags
	if finish {
		flags, c.snd.fin = FIN, seq+uint64(n)
	}
	open := c.snd.usable() > 0
	c.begin(t, seq, flags)
	c.snd.lend(t, seq, n, c.snd.mss)
	c.restart(now)
	c.record(now, seq, n, finish)
	c.snd.smallEnd = c.snd.una // a probe is short by nature, and holds nothing up
	c.timers[timerProbe] = clock.Never
	if open {
		c.timers[timerPersist] = clock.Never // ordinary data, if less than we like to send
	} else {
		c.timers[timerRTO] = clock.Never // the persist timer is in charge
	}
	c.leave(now, t)
	return true
}

// outputTailProbe sends the loss probe: new data if the peer's window takes
// any, else the last segment again (RFC 8985 §7.3).
func (c *Conn) outputTailProbe(now clock.Time, t *Train) bool {
	defer func() { c.trouble.tlp.due = false }()
	if c.rec.sent.empty() {
		return false
	}
	c.pacer.next = min(c.pacer.next, now) // a probe does not wait
	if c.rec.kind != steady {
		c.trouble.tlp.inside = c.repeat(now, t, c.rec.sent.first)
		return c.trouble.tlp.inside
	}
	c.trouble.tlp.again = false
	if !c.outputNew(now, probeSegments, t, probeSegments*c.snd.mss) {
		id := c.rec.sent.next - 1
		start := c.rec.sent.at(id).seq
		if !c.repeat(now, t, id) {
			return false
		}
		c.trouble.tlp.again, c.trouble.tlp.start = true, start
	}
	c.trouble.tlp.end = c.snd.nxt
	c.timers[timerProbe] = clock.Never
	c.armRTO(now)
	return true
}

// repeat sends a segment again that is not known to be lost.
func (c *Conn) repeat(now clock.Time, t *Train, id uint32) bool {
	rec := c.rec.sent.at(id)
	if rec.place == sacked {
		return false
	}
	n := rec.text()
	c.begin(t, rec.seq, 0)
	if rec.flags&recFIN != 0 {
		t.Flags |= FIN
	}
	c.snd.lend(t, rec.seq, n, min(max(n, 1), c.snd.mss))
	if c.rec.kind != steady {
		c.rec.noteResent(now)
		c.rec.undo.sent(rec.seq, rec.end())
		c.rec.spend(int(rec.size))
	}
	c.rec.sent.resent(now, id, rec)
	c.countAgain(1, n)
	c.leave(now, t)
	return true
}
