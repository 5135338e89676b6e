package netem

import (
	"math"
	"time"
)

// finish combines the values of several keywords and validates the result.
func (r *reader) finish() {
	c := &r.cfg
	_, reorder := r.seen["reorder"]
	_, gap := r.seen["gap"]
	if gap && !reorder {
		c.Reorder.Share = 1 // the kernel does the same
	}
	if c.Delay == 0 && c.Reorder.Share > 0 && c.Reorder.Late == 0 {
		c.Reorder.Late = Lateness
	}
	if r.jitter.Size > 0 {
		c.Jitter = r.jitter
	}
	r.needs("distribution", r.jitter.Size > 0, "a jitter: delay TIME JITTER")
	r.needs("overtake", r.jitter.Size > 0, "a jitter: delay TIME JITTER")
	r.needs("late", c.Reorder.Share > 0, "reorder SHARE%")
	r.needs("bits", c.Corrupt.Share > 0, "corrupt SHARE%")
	r.needs("where", c.Corrupt.Share > 0, "corrupt SHARE%")
	r.makeRate()
	r.makeQueue()
	if whole := c.withDefaults(); r.err == nil {
		r.err = whole.validate()
	}
}

// needs rejects a keyword that requires another.
func (r *reader) needs(name string, ok bool, want string) {
	if w, given := r.seen[name]; given && !ok {
		r.fail(w, "not usable alone", want)
	}
}

// seenLast returns the one of these keywords that comes last in the text.
func (r *reader) seenLast(names ...string) (last word) {
	for _, name := range names {
		if w, given := r.seen[name]; given && w.at >= last.at {
			last = w
		}
	}
	return last
}

// makeRate creates the rate, if one was given.
func (r *reader) makeRate() {
	w, rate := r.seen["rate"]
	r.needs("repeat", len(r.steps) > 1, "a rate in steps, such as 1mbit,2mbit@10s")
	switch {
	case r.err != nil:
	case r.slots != nil && rate:
		r.fail(w, "in conflict with slot", "only one of them")
	case r.traced != nil && (rate || r.slots != nil):
		r.fail(r.seen["trace"], "in conflict with a rate or slots", "only one of them")
	case r.traced != nil:
		r.cfg.Rate = *r.traced
	case r.slots != nil:
		r.cfg.Rate = *r.slots
	case len(r.steps) > 1:
		last := r.steps[len(r.steps)-1]
		if r.repeat != 0 && r.repeat <= last.At {
			r.fail(r.seen["repeat"], "too early", "a time after the last step's "+last.At.String())
			return
		}
		r.cfg.Rate = Schedule{Steps: r.steps, Every: r.repeat}
	case r.cells.Size > 0:
		r.cfg.Rate = r.cells
	case len(r.steps) == 1:
		r.cfg.Rate = r.steps[0].Rate
	}
}

// Lateness is the default maximum delay of reordered packets on a link without delay: there,
// reordered packets cannot arrive earlier than others.
const Lateness = time.Millisecond

// UsualQueue is the default queue for a rate. It holds what the link sends in 200 ms, but at least
// 32 KiB and at most 64 MiB.
func UsualQueue(rate BitsPerSecond) DropTail {
	const perSecond, least = int64(time.Second / (200 * time.Millisecond)), 32 << 10
	bytes := max(int64(rate)/8/perSecond, least)
	return DropTail{Bytes: int(min(bytes, defaultMaxBytes, math.MaxInt))}
}
