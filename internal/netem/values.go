package netem

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// next returns the value behind a keyword, which there must be.
func (r *reader) next(usage string) (word, bool) {
	if r.err != nil {
		return word{}, false
	}
	if r.at == len(r.words) {
		r.fail(word{at: len(r.text)}, "something is missing at the end", usage)
		return word{}, false
	}
	r.at++
	return r.words[r.at-1], true
}

// more reports whether another value follows: all begin with a digit.
func (r *reader) more() bool {
	if r.err != nil || r.at == len(r.words) {
		return false
	}
	first := r.words[r.at].text[0]
	return first >= '0' && first <= '9' || first == '.' || first == '-'
}

// skip passes over a word if it is the next.
func (r *reader) skip(text string) bool {
	if r.at < len(r.words) && r.words[r.at].text == text {
		r.at++
		return true
	}
	return false
}

// share reads a percentage. The sign is required: 0.02 could be meant either way.
func (r *reader) share(usage string) float64 {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	digits, signed := strings.CutSuffix(w.text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil || strings.Trim(digits, "0123456789.e-+") != "":
		r.fail(w, "no percentage", usage+", such as 2%")
	case !signed && p >= 0 && p <= 100:
		r.fail(w, "without its percent sign", w.text+"%")
	case !(p >= 0 && p <= 100):
		r.fail(w, "no percentage", "0% to 100%")
	}
	return p / 100
}

// shares reads a share and perhaps a correlation.
func (r *reader) shares(usage string) (share, correlation float64) {
	share = r.share(usage)
	if r.more() {
		correlation = r.share(usage + " CORRELATION%")
	}
	return share, correlation
}

func (r *reader) loss() {
	switch {
	case r.skip("gemodel"):
		r.gilbert()
		return
	case r.skip("every"):
		r.cfg.Loss = PeriodicLoss{Every: uint64(r.count("loss every N", math.MaxInt32))}
		return
	}
	if r.at < len(r.words) && r.words[r.at].text == "state" {
		r.fail(r.words[r.at], "a model that is not known here", "gemodel P% R% 1-H% 1-K%")
	}
	r.skip("random")
	share, correlation := r.shares("loss SHARE%")
	switch {
	case correlation > 0:
		r.cfg.Loss = CorrelatedLoss{share, correlation}
	case share > 0:
		r.cfg.Loss = UniformLoss(share)
	}
}

// gilbert reads the parameters of a Gilbert-Elliott model; what is left out is as
// tc-netem(8) has it.
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

// maxListed bounds a list of packets.
const maxListed = 4096

// drop reads a list of packets, such as 3,7,20-25.
func (r *reader) drop() {
	w, ok := r.next("drop N,N,N-N")
	if !ok {
		return
	}
	if before, again := r.seen["loss"]; again {
		r.fail(before, "another loss than drop", "one of them")
		return
	}
	r.seen["loss"] = w
	var list ListedLoss
	for item := range strings.SplitSeq(w.text, ",") {
		from, to, isRange := strings.Cut(item, "-")
		first, err := strconv.ParseUint(from, 10, 32)
		last := first
		if isRange && err == nil {
			last, err = strconv.ParseUint(to, 10, 32)
		}
		if err != nil || first == 0 || last < first {
			r.fail(w, "no list of packets", "numbers from 1, such as 3,7,20-25")
			return
		}
		if last-first >= maxListed-uint64(len(list)) {
			r.fail(w, "too long a list", strconv.Itoa(maxListed)+" packets at most")
			return
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	r.cfg.Loss = slices.Compact(list)
}

func (r *reader) delay() {
	const usage = "delay TIME [JITTER [CORRELATION%]]"
	r.cfg.Delay = r.time(usage)
	if r.more() {
		r.jitter = r.time(usage)
	}
	if r.more() {
		r.cfg.Correlation.Jitter = r.share(usage)
	}
}

func (r *reader) distribution() {
	w, ok := r.next("distribution uniform or normal")
	if ok && w.text != "uniform" && w.text != "normal" {
		r.fail(w, "a distribution that is not known here", "uniform or normal")
	}
	r.normal = w.text == "normal"
}

// timeUnits are the kernel's words for what Go calls ms, us and s, longest first.
var timeUnits = [...][2]string{
	{"msecs", "ms"}, {"msec", "ms"}, {"usecs", "us"}, {"usec", "us"}, {"secs", "s"}, {"sec", "s"},
}

// time reads a time with its unit.
func (r *reader) time(usage string) time.Duration {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	text := w.text
	for _, unit := range timeUnits {
		if number, found := strings.CutSuffix(text, unit[0]); found {
			text = number + unit[1]
			break
		}
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && strings.Trim(text, "0123456789.") == "":
		r.fail(w, "a time without its unit", w.text+"ms or "+w.text+"us")
	case err != nil:
		r.fail(w, "no time", usage+", such as 20ms or 250us")
	case d < 0 || d > maxDelay:
		r.fail(w, "out of range", "0s to "+maxDelay.String())
	}
	return d
}

// count reads a number from 1.
func (r *reader) count(usage string, most int) int {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 1 || n > most {
		r.fail(w, "no such number", usage+" from 1 to "+strconv.Itoa(most))
	}
	return n
}

// unit is the name of a unit and how many of the smallest are in one.
type unit struct {
	name string
	of   float64
}

// rateUnits are those of tc(8); "bps" are bytes a second there.
var rateUnits = []unit{
	{"kibit", 1 << 10},
	{"mibit", 1 << 20},
	{"gibit", 1 << 30},
	{"tbit", 1e12},
	{"gbit", 1e9},
	{"mbit", 1e6},
	{"kbit", 1e3},
	{"bit", 1},
	{"gbps", 8e9},
	{"mbps", 8e6},
	{"kbps", 8e3},
	{"bps", 8},
}

// sizeUnits are those of tc(8) for bytes.
var sizeUnits = []unit{{"kb", 1 << 10}, {"mb", 1 << 20}, {"k", 1 << 10}, {"m", 1 << 20}, {"b", 1}}

// measure reads a number with one of the units; false: it is none.
func measure(text string, units []unit, most float64) (int64, bool) {
	text = strings.ToLower(text)
	for _, u := range units {
		number, found := strings.CutSuffix(text, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		n = math.Round(n * u.of)
		return int64(n), err == nil && strings.Trim(number, "0123456789.") == "" &&
			n >= 1 && n <= most
	}
	return 0, false
}

// maxRate is a thousand times what anything here moves.
const maxRate = 1e12

func (r *reader) rate() {
	w, ok := r.next("rate RATE [OVERHEAD]")
	if !ok {
		return
	}
	bits, ok := measure(w.text, rateUnits, maxRate)
	if !ok {
		r.fail(w, "no rate", "a number with bit, kbit, mbit or gbit, such as 10mbit")
		return
	}
	r.speed = BitsPerSecond(bits)
	if r.more() {
		r.cfg.Overhead = r.count("rate RATE OVERHEAD", math.MaxUint16)
	}
}

// limit reads the bound of the queue, in packets or in bytes.
func (r *reader) limit() {
	const usage = "limit PACKETS, such as 100, or bytes, such as 64kb"
	w, ok := r.next(usage)
	if !ok {
		return
	}
	if bytes, ok := measure(w.text, sizeUnits, defaultMaxBytes); ok {
		r.queue.Bytes = int(bytes)
		return
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 1 || n > maxLimit {
		r.fail(w, "no limit", usage+", 65536 packets or 64mb at most")
		return
	}
	r.queue.Packets = n
}

func (r *reader) seed() {
	w, ok := r.next("seed N")
	if !ok {
		return
	}
	n, err := strconv.ParseUint(w.text, 10, 64)
	if err != nil || n == 0 {
		r.fail(w, "no seed", "a number from 1")
	}
	r.cfg.Seed = n
}
