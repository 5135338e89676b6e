package congestion

import "github.com/tidepool-net/tidepool/internal/clock"

// The constants of RFC 9438 §4.1.1.
const (
	cubicBeta = 0.7
	cubicC    = 0.4 // segments per second cubed
	// cubicAlpha makes the Reno-friendly region as fast as Reno on average, §4.3.
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// Cubic creates CUBIC controllers without some parts of the algorithm, for experiments that show
// the effect of these parts.
type Cubic struct {
	// NoFastConvergence disables fast convergence, RFC 9438 §4.7. The tables of that RFC's §5 were
	// computed without it.
	NoFastConvergence bool
	// NoRenoFriendly disables growth at Reno's rate where Reno is faster (RFC 9438 §4.3).
	NoRenoFriendly bool
	// NoHyStart disables HyStart++ (RFC 9406), so that only a loss ends slow start.
	NoHyStart bool
}

// cubic implements RFC 9438, with HyStart++ (RFC 9406) in its first slow start. Windows are
// fractional bytes, so that rounding loses no growth, however small the acknowledgments are.
type cubic struct {
	cwnd     float64
	ssthresh int
	initial  int
	max      int
	start    hystart
	curve    curve
	before   *cubicUndo // nil: no loss yet
	without  Cubic
	// seen is when avoid or pause last handled an acknowledgment.
	seen clock.Time
}

// curve is the state of one congestion avoidance stage.
type curve struct {
	epoch clock.Time // the start of the stage; clock.Never: not started
	prior float64    // the window when ssthresh was last set
	wMax  float64    // the plateau of the curve; zero: unknown
	k     float64    // seconds from epoch to the plateau
	wEst  float64    // the window that Reno would have
}

// cubicUndo is the state before a loss episode, RFC 9438 §4.9.2.
type cubicUndo struct {
	undo
	window float64
	curve  curve
	start  hystart
}

func newCubic(cfg Config) Controller { return Cubic{}.New(cfg) }

// New creates a controller.
func (o Cubic) New(cfg Config) Controller {
	c := &cubic{
		cwnd: float64(cfg.FirstCwnd()), ssthresh: cfg.FirstSsthresh(),
		initial: min(cfg.InitialWindow, cfg.MaxWindow), max: cfg.MaxWindow,
		start: newHystart(&cfg), without: o,
	}
	c.start.done = c.start.done || o.NoHyStart
	return c
}

func (c *cubic) Cwnd() int         { return int(c.cwnd) }
func (c *cubic) Ssthresh() int     { return c.ssthresh }
func (c *cubic) PacingRate() int64 { return 0 }

// OnAck grows the window.
func (c *cubic) OnAck(a *Ack) {
	n := a.Delivered
	slow := c.Cwnd() < c.ssthresh
	if slow && !c.start.done && !a.Recovering && c.start.observe(a) {
		// RFC 9438 §4.10: slow start ended without a loss, so the path's capacity is unknown.
		c.start.done = true
		c.ssthresh = c.Cwnd()
		c.curve = curve{prior: c.cwnd}
		slow = false
	}
	if a.Recovering || !a.CwndLimited {
		c.pause(a.Now)
		return
	}
	if slow {
		n = c.slowStart(n, a.MSS)
	}
	if n > 0 && c.Cwnd() >= c.ssthresh {
		c.avoid(a, n)
	}
	c.cwnd = min(c.cwnd, float64(c.max))
}

// slowStart grows the window up to the threshold, and returns the bytes of growth that are left.
func (c *cubic) slowStart(n, mss int) int {
	grow := n
	if !c.start.done {
		grow = c.start.grow(n, mss)
	}
	room := max(0, c.ssthresh-c.Cwnd())
	c.cwnd += float64(min(grow, room))
	return max(0, grow-room)
}

// pause excludes the time in which the window was not used from the curve's time (RFC 9438 §4.2,
// §5.8).
func (c *cubic) pause(now clock.Time) {
	if c.curve.epoch != clock.Never && c.seen != clock.Never {
		c.curve.epoch = c.curve.epoch.Add(now.Sub(c.seen))
	}
	c.seen = now
}

// avoid grows the window in congestion avoidance (RFC 9438 §4.2 to §4.5).
func (c *cubic) avoid(a *Ack, n int) {
	v, mss := &c.curve, float64(a.MSS)
	if v.epoch == clock.Never {
		c.begin(a.Now, mss)
	}
	c.seen = a.Now
	// §4.3: the window that Reno would have.
	alpha := cubicAlpha
	if v.wEst >= v.prior {
		alpha = 1
	}
	share := float64(n) / c.cwnd
	v.wEst += float64(alpha * mss * share)
	t := a.Now.Sub(v.epoch).Seconds()
	if !c.without.NoRenoFriendly && v.at(t, mss) < v.wEst {
		c.cwnd = max(c.cwnd, v.wEst)
		return
	}
	// §4.2: the window never shrinks, and never grows by more than half per round trip. §4.4 and
	// §4.5 are the same step, below and above wMax.
	target := min(max(v.at(t+a.SRTT.Seconds(), mss), c.cwnd), 1.5*c.cwnd)
	c.cwnd += float64((target - c.cwnd) * min(share, 1))
}

// at returns the window at time t in bytes: W_cubic(t), RFC 9438 §4.2 figure 1.
func (v *curve) at(t, mss float64) float64 {
	d := t - v.k
	return float64(cubicC*d*d*d*mss) + v.wMax
}

func (c *cubic) begin(now clock.Time, mss float64) {
	v := &c.curve
	v.epoch, v.wEst = now, c.cwnd
	if v.wMax <= c.cwnd {
		// §4.8, §4.10: after a timeout, and after a slow start without loss, the curve starts at
		// its plateau.
		v.wMax, v.k = c.cwnd, 0
		return
	}
	v.k = cubeRoot((v.wMax - c.cwnd) / mss / cubicC) // §4.2 figure 2
}

// OnLoss reduces the window, RFC 9438 §4.6.
func (c *cubic) OnLoss(l *Loss) {
	c.save(l.Kind)
	c.start.done = true
	mss := float64(l.MSS)
	if l.Kind != TimeoutAgain {
		c.remember()
		// The flight is the part of the window that was used.
		ssthresh := min(float64(l.FlightSize), c.cwnd) * cubicBeta
		c.ssthresh = int(max(ssthresh, 2*mss))
		least := 2 * mss
		if l.Kind == Echo {
			least = mss
		}
		c.cwnd = min(c.cwnd, max(ssthresh, least))
	}
	if l.Kind == Timeout || l.Kind == TimeoutAgain {
		c.cwnd = mss
		c.curve.wMax = 0 // §4.8: the next curve starts at its plateau
	}
}

// remember ends the stage and stores the window as wMax. A flow whose window is smaller than at the
// last loss has new competitors, so it reduces wMax further (fast convergence, RFC 9438 §4.7).
func (c *cubic) remember() {
	v := &c.curve
	wMax := c.cwnd
	if c.cwnd < v.wMax && !c.without.NoFastConvergence {
		wMax = c.cwnd * (1 + cubicBeta) / 2
	}
	*v = curve{prior: c.cwnd, wMax: wMax}
}

func (c *cubic) save(k Kind) {
	if c.before == nil {
		c.before = &cubicUndo{} // allocated late, because few connections lose a segment
	}
	switch {
	case k == Echo:
		*c.before = cubicUndo{}
	case !c.before.open:
		*c.before = cubicUndo{
			undo:   undo{open: true, valid: true, ssthresh: c.ssthresh},
			window: c.cwnd, curve: c.curve, start: c.start,
		}
	}
}

// OnExit ends an episode. It undoes the reduction of a spurious episode, unless the window has
// grown beyond its previous size (RFC 9438 §4.9.2).
func (c *cubic) OnExit(e *Exit) {
	b := c.before
	if b == nil {
		b = &cubicUndo{}
	}
	if e.Spurious && b.valid {
		if c.cwnd < b.window {
			c.cwnd, c.ssthresh, c.curve, c.start = b.window, b.ssthresh, b.curve, b.start
		}
		b.valid = false
	}
	if e.Ceiling > 0 && !e.Spurious && float64(e.Ceiling) < c.cwnd {
		c.cwnd = float64(e.Ceiling)
		c.curve.epoch = clock.Never
	}
	b.open = false
}

// OnRestart reduces the window after an idle time (RFC 5681 §4.1), as the other algorithms do. The
// idle time does not count for the curve (RFC 9438 §5.8).
func (c *cubic) OnRestart(r *Restart) {
	if c.Cwnd() <= c.initial || !r.Unvalidated && r.Idle <= r.RTO {
		c.pause(r.Now)
		return
	}
	c.ssthresh = max(c.ssthresh, int(c.cwnd*3/4))
	window := float64(c.initial)
	if r.Unvalidated {
		window = max(c.cwnd/2, window)
	}
	c.cwnd, c.curve.epoch = window, clock.Never
}
