package netem

import (
	"math"
	"time"
)

// finish puts together what several keywords said, and checks that it can be.
func (r *reader) finish() {
	c := &r.cfg
	_, reorder := r.seen["reorder"]
	_, gap := r.seen["gap"]
	if gap && !reorder {
		c.Reorder.Share = 1 // as the kernel has it
	}
	if c.Delay == 0 && c.Reorder.Share > 0 && c.Reorder.Late == 0 {
		c.Reorder.Late = Lateness
	}
	if r.jitter > 0 {
		c.Jitter = r.shape.jitter(r.jitter)
	}
	r.needs("distribution", r.jitter > 0, "a jitter: delay TIME JITTER")
	r.needs("overtake", r.jitter > 0, "a jitter: delay TIME JITTER")
	r.needs("late", c.Reorder.Share > 0, "reorder SHARE%")
	r.needs("bits", c.Corrupt.Share > 0, "corrupt SHARE%")
	r.needs("where", c.Corrupt.Share > 0, "corrupt SHARE%")
	r.makeRate()
	r.makeQueue()
	if whole := c.withDefaults(); r.err == nil {
		r.err = whole.validate()
	}
}

// needs refuses a keyword that means nothing without another.
func (r *reader) needs(name string, ok bool, want string) {
	if w, said := r.seen[name]; said && !ok {
		r.fail(w, "not usable alone", want)
	}
}

// seenLast is the last of the keywords that were said.
func (r *reader) seenLast(names ...string) (last word) {
	for _, name := range names {
		if w, said := r.seen[name]; said && w.at >= last.at {
			last = w
		}
	}
	return last
}

// makeRate makes the rate, if one was said.
func (r *reader) makeRate() {
	w, rate := r.seen["rate"]
	r.needs("repeat", len(r.steps) > 1, "a rate in steps, such as 1mbit,2mbit@10s")
	switch {
	case r.err != nil:
	case r.slots != nil && rate:
		r.fail(w, "in conflict with slot", "one of them")
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

// Lateness is up to how much later than their turn reordered packets arrive on a link
// without delay, where there is nobody to overtake.
const Lateness = time.Millisecond

// UsualQueue is the queue of a link of whose rate alone is spoken: it holds what passes in
// 200 ms, and 32 KiB however slow the link is, and 64 MiB however fast.
func UsualQueue(rate BitsPerSecond) DropTail {
	const perSecond, least = int64(time.Second / (200 * time.Millisecond)), 32 << 10
	bytes := max(int64(rate)/8/perSecond, least)
	return DropTail{Bytes: int(min(bytes, defaultMaxBytes, math.MaxInt))}
}
