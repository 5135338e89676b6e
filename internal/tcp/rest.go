package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
)

// work is what only a busy connection needs: the books of what is in flight, of what
// arrived out of order, and of round trips. A connection that rests has none. Whatever
// is called from outside begins with busy, and the host settles whom it has served.
type work struct {
	rec     recovery
	trouble trouble
	rounds  rounds
	inbound reassembly
}

// trouble is what few connections ever have, and keep then: what was lost, doubted or marked, and
// what was done about it.
type trouble struct {
	counts       Counts
	bytesRetrans uint64
	told         uint64 // of sentQueue.lost, to the controller
	spells       spells
	ecn          ecn
	claim        claim
	tlp          tlp
	answers
}

// answers are to segments that deserve few: that are off the window, or may be forged.
type answers struct {
	oowAt clock.Time // when an empty segment off the window was last answered
	// challenges is how many more ACKs segments that may be forged draw (RFC 5961 §7).
	challenges budget
}

// memory is what a connection keeps of its work while it rests. What it forgets is over by
// then: an episode of losses, its duplicates' reports, and the round trip in progress.
type memory struct {
	delivered, lost uint64 // of its sentQueue
	patience
	appLimited bool       // the next rate sample is the application's
	measured   bool       // RFC 7661's pipeACK is known: nothing, by now
	unused     clock.Time // since when the window is not used; never: it is
}

// spare are works that nobody has, with the memory of a small flight.
type spare struct{ list []*work }

const (
	maxSpare        = 64 // works
	maxSpareRecords = 64 // of each: four kilobytes
)

func (s *spare) take() *work {
	n := len(s.list)
	if n == 0 {
		return &work{}
	}
	w := s.list[n-1]
	s.list[n-1] = nil
	s.list = s.list[:n-1]
	return w
}

func (s *spare) put(w *work) {
	if len(s.list) == maxSpare {
		return
	}
	recs := w.rec.sent.recs
	if len(recs) > maxSpareRecords {
		recs = nil
	}
	*w = work{}
	w.rec.sent.recs = recs
	s.list = append(s.list, w)
}

// busy makes sure that the connection has its work.
func (c *Conn) busy() {
	if c.work == nil {
		c.wake()
	}
}

func (c *Conn) wake() {
	w, m := c.host.spare.take(), &c.rested
	c.work, c.rcv.reassembly, c.limit.rounds = w, &w.inbound, &w.rounds
	w.inbound.head = c.rcv.rx.Head()
	w.rec.sent.delivered, w.rec.sent.lost = m.delivered, m.lost
	if m.appLimited {
		w.rec.sent.appLimited = m.delivered + 1
	}
	w.rec.rack.patience = m.patience
	w.inbound.ooo.Max = c.host.cfg.MaxReceiveRanges
	if c.past != nil {
		w.trouble = *c.past
	}
	w.rounds.use.since = m.unused
	if m.measured {
		w.rounds.use.binAt = c.host.now
	}
}

// rest gives the work back, all but what is worth remembering.
func (c *Conn) rest() {
	w := c.work
	c.rested = memory{
		delivered: w.rec.sent.delivered, lost: w.rec.sent.lost,
		patience:   w.rec.rack.patience,
		appLimited: w.rec.sent.appLimited > w.rec.sent.delivered,
		measured:   w.rounds.use.binAt != clock.Never, unused: w.rounds.use.since,
	}
	c.timers[timerIdle] = clock.Never
	c.letGo()
}

// troubles are what a connection has had of them, if it rests too.
func (c *Conn) troubles() trouble {
	switch {
	case c.work != nil:
		return c.trouble
	case c.past != nil:
		return *c.past
	}
	return trouble{}
}

func (c *Conn) letGo() {
	if c.work == nil {
		return
	}
	if c.trouble != (trouble{}) || c.past != nil {
		if c.past == nil {
			c.past = new(trouble)
		}
		*c.past = c.trouble
	}
	c.dismiss()
}

// dismiss gives back the work of a connection that is no more.
func (c *Conn) dismiss() {
	if c.work == nil {
		return
	}
	c.host.spare.put(c.work)
	c.work, c.rcv.reassembly, c.limit.rounds = nil, nil, nil
}

// settle has a connection rest that has nothing to do and will not have soon: one that
// carried no text yet, and one that carries none any more.
func (c *Conn) settle(now clock.Time) {
	switch {
	case c.work == nil || !c.quiet():
	case c.stats.bytesSent == 0 && c.rcv.bytes == 0:
		c.rest()
	case c.silent(now):
		c.trim()
		c.rest()
	default:
		c.idle(now)
	}
}

// quiet reports whether nothing is in flight, held, owed or being mended.
func (c *Conn) quiet() bool {
	return c.rec.sent.empty() && !c.wants() && !c.probing() &&
		c.rec.kind == steady && c.timers[timerPace] == clock.Never && c.rcv.quiet()
}

// wants reports whether the connection has something to send, now or once it may.
func (c *Conn) wants() bool {
	return c.has(flagSynDue) || c.rcv.ack.owed > 0 || c.asks() || c.wait.due || c.snd.probeDue ||
		c.work != nil && c.trouble.tlp.due || c.state.synchronized() && c.snd.waits()
}

// over reports whether the connection is none any more, but perhaps a TIME-WAIT.
func (c *Conn) over() bool { return c.state == StateClosed || c.state == StateTimeWait }
