package drill

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Run plays the script against a new host. Its error is an *Error with the line that failed.
func (s *Script) Run() error {
	w, err := newWorld(s)
	if err != nil {
		return err
	}
	for i := range s.events {
		e := &s.events[i]
		w.line = e.line
		if err := e.act.run(w, e); err != nil {
			return err
		}
	}
	return w.finish()
}

// finish checks that no segment and no call is left.
func (w *world) finish() error {
	if err := w.pump(); err != nil {
		return err
	}
	if w.waiting != nil {
		if err := w.await(); err != nil {
			return err
		}
	}
	if len(w.out) > 0 {
		s := w.out[0]
		return w.fail("the host sent a segment that no line expects:\n\tgot  %s %s",
			stamp(s.at), s.describe())
	}
	return nil
}

// at returns the time range of an event.
func (w *world) at(when timing) (from, to clock.Time) {
	base := origin
	switch when.kind {
	case anyTime:
		return w.now, w.now.Add(maxWait)
	case relative:
		base = w.now
	case absolute:
	}
	return base.Add(when.from), base.Add(when.to)
}

// reach advances the clock to an event that the script causes.
func (w *world) reach(e *event) error {
	at, _ := w.at(e.when)
	if at < w.now {
		return w.fail("the time is already %s", stamp(w.now))
	}
	return w.runUntil(at, false)
}

// slack is the tolerance for an event that is expected after wait.
func (w *world) slack(wait time.Duration) time.Duration {
	return max(w.set.tolerance, time.Duration(float64(wait)*w.set.percent/100))
}

func (c commands) run(w *world, e *event) error {
	if err := w.reach(e); err != nil {
		return err
	}
	for _, one := range c {
		w.line = one.line
		if err := w.command(one.words); err != nil {
			return w.fail("%v", err)
		}
	}
	return w.pump()
}

func (a assertions) run(w *world, e *event) error {
	if err := w.reach(e); err != nil {
		return err
	}
	names, err := w.names()
	if err != nil {
		return w.fail("%v", err)
	}
	for _, one := range a {
		w.line = one.line
		v, err := one.cond.eval(names)
		if err != nil {
			return w.fail("%s: %v", one.text, err)
		}
		if v != 0 {
			continue
		}
		shown := ""
		if one.note != nil {
			n, err := one.note.eval(names)
			if err != nil {
				return w.fail("%s: %v", one.text, err)
			}
			shown = fmt.Sprintf(": %v", n)
		}
		return w.fail("%s failed at %s%s", one.text, stamp(w.now), shown)
	}
	return nil
}
