package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// rateSample is what the newest segment that an acknowledgment delivered
// remembers of the moment when it was sent: the basis of the delivery rate.
type rateSample struct {
	sentAt    clock.Time // never: nothing was delivered
	since     clock.Time // when the delivery that preceded its transmission was known
	delivered uint64     // bytes delivered by then
	sending   time.Duration
	pipe      int
	lost      uint32
	limited   bool // the application was the limit
}

// note takes a delivered record if none that was sent later has been seen.
func (s *rateSample) note(q *sentQueue, rec *record) {
	if s.sentAt != clock.Never && rec.sentAt < s.sentAt {
		return
	}
	*s = rateSample{
		sentAt: rec.sentAt, since: rec.deliveredAt, delivered: rec.delivered,
		sending: rec.sentAt.Sub(rec.firstSentAt), pipe: int(rec.pipe), lost: rec.lost,
		limited: rec.flags&recAppLimited != 0,
	}
	q.firstSentAt = rec.sentAt
}

// rate computes the delivery rate in bytes a second, zero when this is no
// sample: what was delivered since the segment was sent, over the longer of the
// time that sending it took and the time that acknowledging it took, because
// either may have been compressed. An interval shorter than the shortest round
// trip means that what was acknowledged is an earlier transmission.
func (q *sentQueue) rate(now clock.Time, s *rateSample, minRTT time.Duration) int64 {
	if s.sentAt == clock.Never {
		return 0
	}
	interval := max(now.Sub(s.since), s.sending)
	if interval <= 0 || interval < minRTT {
		return 0
	}
	return int64(float64(q.delivered-s.delivered) * 1e9 / float64(interval))
}

// limitedByApp notes that the application, not the path, bounds the sender: rates
// measured by what is sent until all that is in flight has been delivered say
// little of the path.
func (c *Conn) limitedByApp() {
	if c.rec.pipe() < c.cc.Cwnd() {
		c.rec.sent.appLimited = c.rec.sent.delivered + uint64(c.rec.pipe()) + 1
	}
}

// congestionEvents are what a host lends to congestion controllers.
type congestionEvents struct {
	ack     congestion.Ack
	loss    congestion.Loss
	exit    congestion.Exit
	restart congestion.Restart
}

// restart tells the congestion controller that data leaves after a silence.
func (c *Conn) restart(now clock.Time) {
	restarter, ok := c.cc.Controller.(congestion.Restarter)
	if !ok || c.stats.lastSent == clock.Never {
		return
	}
	e := &c.host.restart
	*e = congestion.Restart{
		Now: now, Idle: now.Sub(c.stats.lastSent), MSS: c.snd.mss,
		RTO: c.timeout(),
	}
	restarter.OnRestart(e)
}

// control tells the congestion controller what an acknowledgment delivered.
func (c *Conn) control(now clock.Time, r *round) {
	if r.delivered == 0 {
		return
	}
	q, s := &c.rec.sent, &r.rate
	a := &c.host.ack
	*a = congestion.Ack{
		Now: now, Delivered: r.credit(), Prior: r.prior, InFlight: c.rec.pipe(), MSS: c.snd.mss,
		Lost:   int(q.lost - c.trouble.told),
		MinRTT: c.rtt.lowest(), SRTT: c.rtt.srtt,
		TotalDelivered: q.delivered,
		Rate:           q.rate(now, s, c.rtt.lowest()),
		AppLimited:     s.limited,
		PriorDelivered: s.delivered,
		TxInFlight:     s.pipe,
		Recovering:     c.rec.holdsGrowth(r),
		Echo:           r.marked,
		Marked:         congestion.UnknownMarks,
		Transit:        r.echo.transit,
		Stamped:        r.echo.known,
		SentAt:         s.sentAt,
	}
	if c.has(flagDCTCP) {
		a.Marked = 0
		if r.marked {
			a.Marked = a.Delivered
		}
	}
	c.trouble.told = q.lost
	if s.sentAt != clock.Never {
		a.LostSince = int(uint32(q.lost) - s.lost)
	} else {
		a.PriorDelivered = q.delivered - uint64(r.delivered)
	}
	if r.rtt.last != clock.Never {
		a.RTT = now.Sub(r.rtt.last)
	}
	if a.Rate != 0 && (!a.AppLimited || a.Rate > c.limit.rate) {
		c.limit.rate, c.limit.rateLimited = a.Rate, a.AppLimited
	}
	a.Round = c.limit.newRound(c.snd.una, c.snd.nxt, r, &c.stats)
	if a.Round {
		c.measureUse(now)
	}
	a.CwndLimited = c.limit.byCwnd(c.cc.Controller)
	c.cc.OnAck(a)
	if c.snd.grow(c.cc.Cwnd()) {
		c.raise(Writable)
	}
}

// algorithm is a connection's congestion controller; before the connection is
// established it is only a name.
type algorithm struct {
	congestion.Controller
	name string
}

// congestionConfig is what a controller of the connection is made from.
func (c *Conn) congestionConfig() congestion.Config {
	cfg := &c.host.cfg
	return congestion.Config{
		Now:           c.host.now,
		MSS:           c.snd.mss,
		InitialWindow: cfg.InitialWindow * c.snd.mss,
		MaxWindow:     max(cfg.SendBufferMax, 2*c.snd.mss),
		FixedWindow:   cfg.FixedWindow,
		SRTT:          c.rtt.srtt,
		MinRTT:        c.rtt.lowest(),
		SACK:          c.how.sack,
		Paced:         c.has(flagPaced),
		Burst:         c.trainLimit(),
		Seed:          c.snd.iss ^ uint64(c.tuple.LocalPort)<<48,
	}
}

// newController gives the connection a fresh congestion controller: as it begins to send.
func (c *Conn) newController() {
	create, err := congestion.Find(c.host.cfg.Algorithms, c.cc.name)
	if err != nil {
		panic("BUG: tcp: " + err.Error())
	}
	takeController(c, create(c.congestionConfig()))
}

// takeController has a controller govern the connection from now on.
func takeController(c *Conn, cc congestion.Controller) {
	c.cc.Controller = cc
	c.flags &^= flagTimed
	if _, ok := cc.(congestion.Timed); ok {
		c.flags |= flagTimed
	}
}

// controlDeadline returns when the congestion controller's timer is due.
func controlDeadline(c *Conn) clock.Time {
	if t, ok := c.cc.Controller.(congestion.Timed); ok && c.state.synchronized() {
		return t.Deadline()
	}
	return clock.Never
}

// expireControl tells the congestion controller that its timer has expired.
func expireControl(c *Conn, now clock.Time) {
	t, ok := c.cc.Controller.(congestion.Timed)
	if !ok || !c.state.synchronized() || !t.Deadline().Due(now) {
		return
	}
	t.OnTimer(congestion.Timer{
		Now: now, InFlight: c.rec.pipe(), MSS: c.snd.mss,
		TotalDelivered: c.rec.sent.delivered, TotalLost: c.rec.sent.lost,
		MinRTT: c.rtt.lowest(), SRTT: c.rtt.srtt,
	})
	c.sample(now)
}

// tellSent tells the congestion controller of a train that leaves.
func tellSent(c *Conn, now clock.Time, t *Train) {
	w, ok := c.cc.Controller.(congestion.SendWatcher)
	if !ok || t.Len == 0 || c.rec.sent.empty() {
		return
	}
	behind := uint32(c.snd.nxt) - t.Seq
	last := c.rec.sent.at(c.rec.sent.next - 1)
	seq := c.snd.nxt - uint64(behind)
	w.OnSend(congestion.Sent{
		Now: now, Seq: seq, Size: t.Len, Segments: t.Segments(), MSS: c.snd.mss,
		InFlight: c.rec.pipe(),
		Again:    seq+uint64(t.Len) < last.seq+uint64(last.text()) || last.flags&recAgain != 0,
	})
}

// SetCongestion changes the congestion control algorithm. The new one starts
// from the window that the old one had reached.
func (c *Conn) SetCongestion(name string) error {
	create, err := congestion.Find(c.host.cfg.Algorithms, name)
	if err != nil {
		return err
	}
	c.cc.name = name
	cc := c.cc.Controller
	if cc == nil {
		return nil
	}
	cfg := c.congestionConfig()
	switch {
	case cc.Ssthresh() != 0:
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Ssthresh()
	case cc.PacingRate() != 0:
		// It knows its path without a threshold: the window is one.
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Cwnd()
	}
	takeController(c, create(cfg))
	c.touch()
	return nil
}
