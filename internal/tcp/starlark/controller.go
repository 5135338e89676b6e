package starlark

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// controller runs a script as the congestion controller of one connection.
type controller struct {
	run    *Run
	thread *starlark.Thread
	meter  meter
	rand   *rand.Rand
	state  state
	before before
	args   [2]starlark.Value // arguments of each call: state and an event

	now, began clock.Time // times of the current event and of the first one

	conn    conn
	ack     event[arrival]
	loss    event[congestion.Loss]
	exit    event[ending]
	restart event[congestion.Restart]
	segment event[congestion.LostSegment]
	sent    event[congestion.Sent]
	expiry  event[congestion.Timer]

	timer     timer
	arrival   arrival
	lastSent  congestion.Sent
	lastTimer congestion.Timer
	ending    ending
	initial   int // the restart window, RFC 5681 §4.1
}

// local is the key of a thread's controller.
const local = "controller"

// noLimit is the maximum of a window without a limit.
const noLimit = 1 << 40

func newController(r *Run, cfg congestion.Config) *controller {
	cfg.MaxWindow = cmp.Or(cfg.MaxWindow, noLimit)
	c := &controller{
		run: r, rand: rand.New(rand.NewPCG(cfg.Seed, 0)),
		thread:  &starlark.Thread{Name: r.program.name},
		initial: min(cfg.InitialWindow, cfg.MaxWindow), now: cfg.Now,
		conn:    conn{name: "conn", fields: connFields, of: &cfg},
		ack:     event[arrival]{name: "ack", fields: ackFields},
		loss:    event[congestion.Loss]{name: "loss", fields: lossFields},
		exit:    event[ending]{name: "exit", fields: exitFields},
		restart: event[congestion.Restart]{name: "restart", fields: restartFields},
		segment: event[congestion.LostSegment]{name: "segment", fields: segmentFields},
		sent:    event[congestion.Sent]{name: "sent", fields: sentFields},
		expiry:  event[congestion.Timer]{name: "timer", fields: timerFields},
	}
	c.state = state{
		cwnd: bytesOf(cfg.FirstCwnd()), ssthresh: bytesOf(0), rate: bytesOf(0),
		acked: starlark.MakeInt(0), mss: cfg.MSS, max: cfg.MaxWindow,
	}
	c.thread.SetLocal(local, c)
	c.thread.Print = func(_ *starlark.Thread, text string) { r.print(c.now, note(text)) }
	c.meter.state = &c.state
	c.meter.attach(c.thread)
	c.args[0] = &c.state
	c.state.opening = true
	c.call(callInit, &c.conn)
	c.state.opening = false
	return c
}

// Cwnd returns the congestion window in bytes.
func (c *controller) Cwnd() int { return int(c.state.cwnd.n) }

// Ssthresh returns the slow start threshold in bytes; 0 if the script sets none.
func (c *controller) Ssthresh() int { return int(c.state.ssthresh.n) }

// PacingRate returns bytes per second; 0 if the script sets none.
func (c *controller) PacingRate() int64 { return c.state.rate.n }

func (c *controller) OnAck(a *congestion.Ack) {
	if c.begin(a.Now, a.MSS) {
		c.arrival.take(a)
		callWith(c, callAck, &c.ack, &c.arrival)
	}
}

func (c *controller) OnLoss(l *congestion.Loss) {
	if c.begin(l.Now, l.MSS) {
		c.before.save(l.Kind, &c.state)
		callWith(c, callLoss, &c.loss, l)
	}
}

// OnExit calls on_exit. If the script does not define it, OnExit acts as the built-in algorithms
// do.
func (c *controller) OnExit(e *congestion.Exit) {
	if !c.begin(e.Now, e.MSS) {
		return
	}
	if c.run.program.calls[callExit] == nil {
		c.defaultExit(e)
	} else {
		c.ending = ending{Exit: e, cwnd: starlark.MakeInt(0), ssthresh: starlark.MakeInt(0)}
		if c.before.valid {
			c.ending.cwnd, c.ending.ssthresh = c.before.cwnd.value, c.before.ssthresh.value
		}
		callWith(c, callExit, &c.exit, &c.ending)
	}
	c.before.end(e.Spurious)
}

// OnRestart calls on_restart. If the script does not define it, OnRestart acts as the built-in
// algorithms do.
func (c *controller) OnRestart(r *congestion.Restart) {
	if !c.begin(r.Now, r.MSS) {
		return
	}
	if c.run.program.calls[callRestart] == nil {
		c.defaultRestart(r)
		return
	}
	callWith(c, callRestart, &c.restart, r)
}

func (c *controller) OnSegmentLost(l *congestion.LostSegment) {
	if c.run.program.calls[callSegment] != nil && c.begin(l.Now, c.state.mss) {
		callWith(c, callSegment, &c.segment, l)
	}
}

func (c *controller) OnSend(s congestion.Sent) {
	if c.run.program.calls[callSend] != nil && c.begin(s.Now, s.MSS) {
		c.lastSent = s
		callWith(c, callSend, &c.sent, &c.lastSent)
	}
}

// Deadline returns the time at which the script's timer expires.
func (c *controller) Deadline() clock.Time { return c.timer.at }

func (c *controller) OnTimer(t congestion.Timer) {
	c.timer.at = clock.Never
	if !c.begin(t.Now, t.MSS) {
		return
	}
	if c.timer.expired++; c.timer.expired > maxTimers {
		c.failed(callTimer, at(c.run.program.calls[callTimer].Position(), fmt.Sprintf(
			"the timer expired more than %d times in a connection: use longer times", maxTimers)))
		return
	}
	c.lastTimer = t
	callWith(c, callTimer, &c.expiry, &c.lastTimer)
}

// begin starts an event, and reports false if the run has failed.
func (c *controller) begin(now clock.Time, mss int) bool {
	if c.run.err != nil {
		return false
	}
	if c.began == clock.Never {
		c.began = now
	}
	c.now, c.state.mss = now, mss
	return true
}

// call calls a function of the script, if it exists, and applies its result.
func (c *controller) call(which call, event starlark.Value) {
	f := c.run.program.calls[which]
	if f == nil || c.run.err != nil {
		return
	}
	c.args[1] = event
	c.meter.begin(c.thread)
	result, err := c.invoke(f)
	if err != nil {
		c.failed(which, raised(f.Position().Filename(), err))
		return
	}
	if err = c.take(result); err != nil {
		e := at(f.Position(), signatures[which].name+" returned an invalid value: "+err.Error())
		c.failed(which, e)
		return
	}
	if what := c.state.overfull(); what != "" {
		c.failed(which, at(f.Position(), what+", after "+signatures[which].name))
	}
}

// callWith calls a function of the script with an event, which is valid only during the call.
func callWith[T any](c *controller, which call, e *event[T], of *T) {
	e.of, e.began = of, c.began
	c.call(which, e)
	e.of = nil
}

func (c *controller) invoke(f *starlark.Function) (v starlark.Value, err error) {
	defer contain(&err)
	return starlark.Call(c.thread, f, c.args[:], nil)
}

// take applies a function's result: None, a window, or a window and a pacing rate.
func (c *controller) take(result starlark.Value) error {
	switch v := result.(type) {
	case starlark.NoneType:
		return nil
	case starlark.Int, starlark.Float:
		return c.state.setCwnd(v)
	case starlark.Tuple:
		if len(v) != 2 {
			break
		}
		if err := c.state.setCwnd(v[0]); err != nil {
			return err
		}
		return set(&c.state.rate, "state.pacing_rate", v[1])
	}
	return fmt.Errorf("%s, which is of type %s: must be nothing, a window in bytes, or a pair of "+
		"window and pacing rate", brief(result), result.Type())
}

// failed ends the run with an error.
func (c *controller) failed(which call, e *Error) {
	e.Call = signatures[which].name
	if c.began != clock.Never {
		e.After = c.now.Sub(c.began)
	}
	c.run.fail(e)
}
