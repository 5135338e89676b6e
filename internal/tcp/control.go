package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// algorithm is a connection's congestion controller; before the connection sends data it is only a
// name.
type algorithm struct {
	congestion.Controller
	name  string
	timed bool // it has a timer
}

// take has a controller govern the connection from now on.
func (a *algorithm) take(cc congestion.Controller) {
	a.Controller = cc
	_, a.timed = cc.(congestion.Timed)
}

// congestionEvents are what a host lends to congestion controllers.
type congestionEvents struct {
	ack     congestion.Ack
	loss    congestion.Loss
	exit    congestion.Exit
	restart congestion.Restart
}

// begin gives the connection a fresh congestion controller: as it begins to send. Of the
// configuration recovery knows the path, and the connection the rest.
func (v *recovery) begin(cfg congestion.Config) {
	create, err := congestion.Find(v.shared.Algorithms, v.cc.name)
	if err != nil {
		panic("BUG: tcp: " + err.Error())
	}
	v.cc.take(create(v.complete(cfg)))
}

// complete adds to a controller's configuration what is known of the path.
func (v *recovery) complete(cfg congestion.Config) congestion.Config {
	host := &v.shared.lossOptions
	cfg.MSS, cfg.InitialWindow = v.snd.MSS, host.InitialWindow*v.snd.MSS
	cfg.MaxWindow, cfg.FixedWindow = max(host.MaxWindow, 2*v.snd.MSS), host.FixedWindow
	cfg.SRTT, cfg.MinRTT, cfg.SACK, cfg.Paced = v.rtt.srtt, v.rtt.lowest(), v.how.sack, v.is.paced
	return cfg
}

// setAlgorithm changes the congestion control algorithm. The new one starts from the window that
// the old one had reached.
func (v *recovery) setAlgorithm(name string, cfg congestion.Config) error {
	create, err := congestion.Find(v.shared.Algorithms, name)
	if err != nil {
		return err
	}
	v.cc.name = name
	cc := v.cc.Controller
	if cc == nil {
		return nil
	}
	cfg = v.complete(cfg)
	switch {
	case cc.Ssthresh() != 0:
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Ssthresh()
	case cc.PacingRate() != 0:
		// It knows its path without a threshold: the window is one.
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Cwnd()
	}
	v.cc.take(create(cfg))
	return nil
}

// restart tells the congestion controller that data leaves after a silence.
func (v *recovery) restart(now clock.Time) {
	restarter, ok := v.cc.Controller.(congestion.Restarter)
	if !ok || v.lastSent == clock.Never {
		return
	}
	e := &v.shared.restart
	*e = congestion.Restart{
		Now: now, Idle: now.Sub(v.lastSent), MSS: v.snd.MSS, RTO: v.timeout(),
	}
	restarter.OnRestart(e)
}

// control tells the congestion controller what an acknowledgment delivered.
func (v *recovery) control(r *round) {
	if r.delivered == 0 {
		return
	}
	q, s, a := &v.sent, &r.rate, &v.shared.ack
	*a = congestion.Ack{
		Now: r.now, Delivered: r.credit(v.snd.MSS), Prior: r.prior,
		InFlight: v.pipe(), MSS: v.snd.MSS,
		Lost:   int(q.lost - v.lasting.told),
		MinRTT: v.rtt.lowest(), SRTT: v.rtt.srtt,
		TotalDelivered: q.delivered,
		Rate:           q.rate(r.now, s, v.rtt.lowest()),
		AppLimited:     s.limited,
		PriorDelivered: s.delivered,
		TxInFlight:     s.pipe,
		Recovering:     v.holdsGrowth(r),
		Echo:           r.marked,
		Marked:         congestion.UnknownMarks,
		Transit:        r.echo.transit,
		Stamped:        r.echo.known,
		SentAt:         s.sentAt,
	}
	if r.exact {
		a.Marked = 0
		if r.marked {
			a.Marked = a.Delivered
		}
	}
	v.lasting.told = q.lost
	if s.sentAt != clock.Never {
		a.LostSince = int(uint32(q.lost) - s.lost)
	} else {
		a.PriorDelivered = q.delivered - uint64(r.delivered)
	}
	if r.rtt.last != clock.Never {
		a.RTT = r.now.Sub(r.rtt.last)
	}
	if a.Rate != 0 && (!a.AppLimited || a.Rate > v.rate) {
		v.rate, v.is.rateLimited = a.Rate, a.AppLimited
	}
	a.Round = v.rounds.turn(r.now, v.snd, r.prior, q.transmissions)
	if a.Round && v.rounds.measure(r.now, q.delivered, v.rtt.srtt, v.cc.Cwnd()) {
		if restarter, ok := v.cc.Controller.(congestion.Restarter); ok {
			e := &v.shared.restart
			*e = congestion.Restart{Now: r.now, MSS: v.snd.MSS, Unvalidated: true}
			restarter.OnRestart(e)
		}
	}
	a.CwndLimited = v.rounds.cwndLimited(v.cc.Controller)
	v.cc.OnAck(a)
}

// expireControl tells the congestion controller that its timer has expired.
func (v *recovery) expireControl(now clock.Time) {
	t, ok := v.cc.Controller.(congestion.Timed)
	if !ok || !t.Deadline().Due(now) {
		return
	}
	t.OnTimer(congestion.Timer{
		Now: now, InFlight: v.pipe(), MSS: v.snd.MSS,
		TotalDelivered: v.sent.delivered, TotalLost: v.sent.lost,
		MinRTT: v.rtt.lowest(), SRTT: v.rtt.srtt,
	})
	v.notify(now)
}

// left notes that so many segments with data or the FIN left, and tells the congestion controller.
// Behind is how far SND.NXT is beyond the first of n bytes.
func (v *recovery) left(now clock.Time, behind uint32, n, segments int) {
	v.lastSent = now
	v.pacer.sent(now, n, v.snd.MSS)
	w, ok := v.cc.Controller.(congestion.SendWatcher)
	if !ok || n == 0 || v.sent.empty() {
		return
	}
	last, seq := v.sent.at(v.sent.next-1), v.snd.Nxt-uint64(behind)
	w.OnSend(congestion.Sent{
		Now: now, Seq: seq, Size: n, Segments: segments, MSS: v.snd.MSS, InFlight: v.pipe(),
		Again: seq+uint64(n) < last.seq+uint64(last.text()) || last.flags&recAgain != 0,
	})
}

// limitedByApp notes that the application, not the path, bounds the sender: rates
// measured by what is sent until all that is in flight has been delivered say
// little of the path.
func (v *recovery) limitedByApp() {
	if v.pipe() < v.cc.Cwnd() {
		v.sent.appLimited = v.sent.delivered + uint64(v.pipe()) + 1
	}
}

// pacingRate returns the rate at which the connection may send, zero for no
// bound: the algorithm's own, or its window spread over the round trip.
func (v *recovery) pacingRate() int64 {
	if rate := v.cc.PacingRate(); rate > 0 {
		return rate
	}
	if !v.is.paced || v.rtt.srtt == 0 {
		return 0
	}
	factor, cwnd := paceAvoidance, v.cc.Cwnd()
	if cwnd < v.cc.Ssthresh()/2 {
		factor = paceSlowStart
	}
	return max(1, int64(factor*float64(max(cwnd, v.pipe()))/v.rtt.srtt.Seconds()))
}

// pace sets the rate and returns how many of room segments may leave at once.
func (v *recovery) pace(room int) int {
	v.pacer.set(v.pacingRate())
	if v.pacer.rate == 0 {
		return room
	}
	return max(1, min(room, v.pacer.quantum(v.snd.MSS)/v.snd.MSS))
}
