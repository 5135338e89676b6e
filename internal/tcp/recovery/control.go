package recovery

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Algorithm is a connection's congestion controller. Before the first data it is only a name.
type Algorithm struct {
	congestion.Controller
	Name  string
	Timed bool // the controller has a timer
	watch bool // the controller is a congestion.SendWatcher
}

func (a *Algorithm) take(cc congestion.Controller) {
	a.Controller = cc
	_, a.Timed = cc.(congestion.Timed)
	_, a.watch = cc.(congestion.SendWatcher)
}

// Deadline returns when the timer of a timed controller expires.
func (a *Algorithm) Deadline() clock.Time { return a.Controller.(congestion.Timed).Deadline() }

// Begin creates the controller when the first data is sent. cfg contains only what the connection
// knows; complete adds the rest.
func (v *Recovery) Begin(cfg congestion.Config) {
	create, err := congestion.Find(v.shared.Algorithms, v.CC.Name)
	if err != nil {
		panic("BUG: tcp: " + err.Error())
	}
	v.CC.take(create(v.complete(cfg)))
}

// Preview installs the controller that Begin would create, until the caller calls end. For the
// host's own algorithms it installs Reno, because the first call of a script may have side effects.
func (v *Recovery) Preview(cfg congestion.Config) (end func()) {
	is := v.CC
	name := is.Name
	if v.shared.Algorithms[name] != nil {
		name = "reno"
	}
	first, err := congestion.New(name, v.complete(cfg))
	if err != nil {
		panic("BUG: recovery: " + err.Error())
	}
	v.CC.take(first)
	return func() { v.CC = is }
}

// complete adds the properties of the path and the host's options to a controller's configuration.
func (v *Recovery) complete(cfg congestion.Config) congestion.Config {
	host := &v.shared.Options
	cfg.MSS, cfg.InitialWindow = v.snd.MSS, host.InitialWindow*v.snd.MSS
	if v.losses.ofSYNs {
		cfg.Cwnd = v.snd.MSS
	}
	cfg.MaxWindow, cfg.FixedWindow = max(host.MaxWindow, 2*v.snd.MSS), host.FixedWindow
	cfg.SRTT, cfg.MinRTT, cfg.SACK, cfg.Paced = v.RTT.SRTT, v.RTT.lowest(), v.strategy.sack, v.Paced
	return cfg
}

// SetAlgorithm changes the congestion control algorithm. The new controller starts with the old
// one's window. If the name is unchanged, SetAlgorithm does nothing, except for the host's own
// algorithms, which may have changed.
func (v *Recovery) SetAlgorithm(name string, cfg congestion.Config) error {
	create, err := congestion.Find(v.shared.Algorithms, name)
	if err != nil {
		return err
	}
	same := name == v.CC.Name && v.shared.Algorithms[name] == nil
	v.CC.Name = name
	cc := v.CC.Controller
	if cc == nil || same {
		return nil
	}
	cfg = v.complete(cfg)
	switch {
	case cc.Ssthresh() != 0:
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Ssthresh()
	case cc.PacingRate() != 0:
		// The old controller models the path without a threshold: use its window.
		cfg.Cwnd, cfg.Ssthresh = cc.Cwnd(), cc.Cwnd()
	case cc.Cwnd() < cfg.MaxWindow: // the window of a script or of "fixed", but not of "none"
		cfg.Cwnd = cc.Cwnd()
	}
	v.CC.take(create(cfg))
	return nil
}

// Restart reports to the congestion controller that data leaves after an idle period.
func (v *Recovery) Restart(now clock.Time) {
	restarter, ok := v.CC.Controller.(congestion.Restarter)
	if !ok || v.LastSent == clock.Never {
		return
	}
	e := &v.shared.restart
	*e = congestion.Restart{
		Now: now, Idle: now.Sub(v.LastSent), MSS: v.snd.MSS, RTO: v.timeout(),
	}
	restarter.OnRestart(e)
}

// control reports to the congestion controller what an acknowledgment delivered.
func (r *Ack) control() {
	v := r.v
	if r.Delivered == 0 {
		return
	}
	q, s, a := &v.Record, &r.rate, &v.shared.ack
	*a = congestion.Ack{
		Now: r.now, Delivered: r.credit(v.snd.MSS), Prior: r.prior,
		InFlight: v.Pipe(), MSS: v.snd.MSS,
		Lost:   int(q.lost - v.Kept.reportedLost),
		MinRTT: v.RTT.lowest(), SRTT: v.RTT.SRTT,
		TotalDelivered: q.delivered,
		Rate:           q.rate(r.now, s, v.RTT.lowest()),
		AppLimited:     s.limited,
		PriorDelivered: s.delivered,
		TxInFlight:     s.pipe,
		Recovering:     r.holdsGrowth(),
		Echo:           r.Marked,
		Marked:         congestion.UnknownMarks,
		Transit:        r.Echo.Transit,
		Stamped:        r.Echo.Known,
		SentAt:         s.sentAt,
	}
	if r.Exact {
		a.Marked = 0
		if r.Marked {
			a.Marked = a.Delivered
		}
	}
	v.Kept.reportedLost = q.lost
	if s.sentAt != clock.Never {
		a.LostSince = int(uint32(q.lost) - s.lost)
	} else {
		a.PriorDelivered = q.delivered - uint64(r.Delivered)
	}
	if r.rtt.last != clock.Never {
		a.RTT = r.now.Sub(r.rtt.last)
	}
	if a.Rate != 0 && (!a.AppLimited || a.Rate > v.rate.bytes) {
		v.rate = rate{a.Rate, a.AppLimited}
	}
	a.Round = v.rounds.advance(r.now, v.snd, r.prior, q.transmissions)
	if a.Round && v.rounds.measure(r.now, q.delivered, v.RTT.SRTT, v.CC.Cwnd()) {
		if restarter, ok := v.CC.Controller.(congestion.Restarter); ok {
			e := &v.shared.restart
			*e = congestion.Restart{Now: r.now, MSS: v.snd.MSS, Unvalidated: true}
			restarter.OnRestart(e)
		}
	}
	a.CwndLimited = v.rounds.cwndLimited(v.CC.Controller)
	v.CC.OnAck(a)
}

// ExpireControl calls the congestion controller if its timer has expired.
func (v *Recovery) ExpireControl(now clock.Time) {
	t, ok := v.CC.Controller.(congestion.Timed)
	if !ok || !t.Deadline().Due(now) {
		return
	}
	t.OnTimer(congestion.Timer{
		Now: now, InFlight: v.Pipe(), MSS: v.snd.MSS,
		TotalDelivered: v.Record.delivered, TotalLost: v.Record.lost,
		MinRTT: v.RTT.lowest(), SRTT: v.RTT.SRTT,
	})
	v.notify(now)
}

// Transmitted records that segments with n bytes of data, or the FIN, were sent, and reports them
// to the congestion controller. behind is SND.NXT minus their first sequence number.
func (v *Recovery) Transmitted(now clock.Time, behind uint32, n, segments int) {
	v.LastSent = now
	v.Pacer.sent(now, n, v.snd.MSS)
	if !v.CC.watch || n == 0 || v.Record.Empty() {
		return
	}
	last, seq := v.Record.at(v.Record.next-1), v.snd.Nxt-uint64(behind)
	v.CC.Controller.(congestion.SendWatcher).OnSend(congestion.Sent{
		Now: now, Seq: seq, Size: n, Segments: segments, MSS: v.snd.MSS, InFlight: v.Pipe(),
		Again: seq+uint64(n) < last.seq+uint64(last.payload()) || last.flags&recRetransmitted != 0,
	})
}

// AppLimited records that the application limits the sender, unless the window is full. Rate
// samples are application-limited until all data now in flight has been delivered.
func (v *Recovery) AppLimited() {
	if v.CC.Controller == nil || v.Pipe() < v.CC.Cwnd() {
		v.Record.appLimited = v.Record.delivered + uint64(v.Pipe()) + 1
	}
}

// pacingRate returns the controller's pacing rate, or the window divided by the round trip if
// pacing is on. Zero means unlimited.
func (v *Recovery) pacingRate() int64 {
	if rate := v.CC.PacingRate(); rate > 0 {
		return rate
	}
	if !v.Paced || v.RTT.SRTT == 0 {
		return 0
	}
	factor, cwnd := paceAvoidance, v.CC.Cwnd()
	if cwnd < v.CC.Ssthresh()/2 {
		factor = paceSlowStart
	}
	return max(1, int64(factor*float64(max(cwnd, v.Pipe()))/v.RTT.SRTT.Seconds()))
}

// Pace sets the rate and returns how many of room segments may leave at once.
func (v *Recovery) Pace(room int) int {
	v.Pacer.set(v.pacingRate())
	if v.Pacer.rate == 0 {
		return room
	}
	return max(1, min(room, v.Pacer.quantum(v.snd.MSS)/v.snd.MSS))
}

// CwndLimited records that the congestion window limits the sender (RFC 7661 §4.3).
func (v *Recovery) CwndLimited() { v.rounds.used = true }
