package netem

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const usageLoss = "loss [random] SHARE% [CORRELATION%], loss gemodel P% [R% [1-H% [1-K%]]], " +
	"loss state P13% [P31% [P32% [P23% [P14%]]]], loss every N [first N], " +
	"loss bytes N,N,N, loss onoff TIME TIME [poisson] or loss during TIME-TIME,… [SHARE%]"

func (r *reader) loss() {
	switch {
	case r.skip("gemodel"):
		r.gilbert()
	case r.skip("state"):
		r.fourStates()
	case r.skip("every"):
		p := PeriodicLoss{Every: uint64(r.count("loss every N", math.MaxInt32))}
		if r.skip("first") {
			p.First = uint64(r.count("loss every N first N", math.MaxInt32))
		}
		r.cfg.Loss = p
	case r.skip("bytes"):
		r.cfg.Loss = ByteLoss(r.list("loss bytes N,N,N", 0))
	case r.skip("onoff"):
		r.onOff()
	case r.skip("during"):
		r.during()
	default:
		r.skip("random")
		share, correlation := r.shares("loss SHARE%")
		switch {
		case correlation > 0:
			r.cfg.Loss = CorrelatedLoss{share, correlation}
		case share > 0:
			r.cfg.Loss = UniformLoss(share)
		}
	}
}

// gilbert parses the parameters of a Gilbert-Elliott model, with the defaults of tc-netem(8).
func (r *reader) gilbert() {
	const usage = "gemodel P% [R% [1-H% [1-K%]]]"
	g := GilbertElliott{P: r.share(usage), Bad: 1}
	g.R = 1 - g.P
	for _, to := range []*float64{&g.R, &g.Bad, &g.Good} {
		if r.more() {
			*to = r.share(usage)
		}
	}
	r.cfg.Loss = g
}

// fourStates parses the parameters of the model with four states. With tc's defaults, P13 alone is
// the share of lost packets.
func (r *reader) fourStates() {
	const usage = "state P13% [P31% [P32% [P23% [P14%]]]]"
	at := r.at
	f := FourStates{P13: r.share(usage), P23: 1}
	f.P31 = 1 - f.P13
	for _, to := range []*float64{&f.P31, &f.P32, &f.P23, &f.P14} {
		if r.more() {
			*to = r.share(usage)
		}
	}
	if r.err == nil && f.P13+f.P14 > 1 {
		r.fail(r.words[at], "too large: P13 and P14 together are above 100%", usage)
	}
	if r.err == nil && f.P31+f.P32 > 1 {
		r.fail(r.words[at+1], "too large: P31 and P32 together are above 100%", usage)
	}
	r.cfg.Loss = f
}

func (r *reader) onOff() {
	const usage = "loss onoff TIME TIME [poisson]"
	at := r.at
	o := OnOff{On: r.time(usage), Off: r.time(usage)}
	o.Poisson = r.skip("poisson")
	if r.err == nil && o.On+o.Off == 0 {
		r.fail(r.words[at], "zero", "a time on or off that is more than 0")
	}
	r.cfg.Loss = o
}

func (r *reader) during() {
	const usage = "loss during TIME-TIME,TIME-TIME [SHARE%]"
	w, ok := r.next(usage)
	if !ok {
		return
	}
	share, before := 1.0, time.Duration(0)
	if r.more() {
		share = r.share(usage)
	}
	var b ByTime
	for item := range strings.SplitSeq(w.text, ",") {
		first, last, _ := strings.Cut(item, "-")
		from, err := duration(first)
		to, err2 := duration(last)
		if err != nil || err2 != nil || to > maxDelay {
			r.fail(w, "not a list of times", "such as 10s-12s,1m-90s")
			return
		}
		if from < before || to <= from || len(b.Windows) == maxSteps {
			r.fail(w, "not a list of times", "at most 1000 times in ascending order")
			return
		}
		b.Windows = append(b.Windows, Window{from, to, share})
		before = to
	}
	r.cfg.Loss = b
}

// maxListed limits a list of packets.
const maxListed = 4096

// drop parses a list of packets, such as 3,7,20-25.
func (r *reader) drop() {
	at := r.at
	list := r.list("drop N,N,N-N", 1)
	if r.err != nil {
		return
	}
	if before, again := r.seen["loss"]; again {
		r.fail(before, "in conflict with drop", "only one of them")
		return
	}
	r.seen["loss"] = r.words[at]
	r.cfg.Loss = ListedLoss(list)
}

// list parses numbers and ranges of numbers; each must be at least least.
func (r *reader) list(usage string, least uint64) (list []uint64) {
	w, ok := r.next(usage)
	if !ok {
		return nil
	}
	for item := range strings.SplitSeq(w.text, ",") {
		from, to, isRange := strings.Cut(item, "-")
		first, err := strconv.ParseUint(from, 10, 32)
		last := first
		if isRange && err == nil {
			last, err = strconv.ParseUint(to, 10, 32)
		}
		if err != nil || first < least || last < first {
			r.fail(w, "not a list of numbers", "numbers from "+strconv.FormatUint(least, 10)+
				", such as 3,7,20-25")
			return nil
		}
		if last-first >= maxListed-uint64(len(list)) {
			r.fail(w, "too long", strconv.Itoa(maxListed)+" numbers at most")
			return nil
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
