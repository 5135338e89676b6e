package netem

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// next returns the value after a keyword, or an error if it is missing.
func (r *reader) next(usage string) (word, bool) {
	if r.err != nil {
		return word{}, false
	}
	if r.at == len(r.words) {
		r.fail(word{at: len(r.text)}, "the arguments are incomplete", usage)
		return word{}, false
	}
	r.at++
	return r.words[r.at-1], true
}

// more reports whether another value follows. Values begin with a digit, a point or a minus sign.
func (r *reader) more() bool {
	if r.err != nil || r.at == len(r.words) {
		return false
	}
	first := r.words[r.at].text[0]
	return first >= '0' && first <= '9' || first == '.' || first == '-'
}

func (r *reader) skip(text string) bool {
	if r.at < len(r.words) && r.words[r.at].text == text {
		r.at++
		return true
	}
	return false
}

// share parses a percentage. The percent sign is required, because 0.02 would be ambiguous.
func (r *reader) share(usage string) float64 {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	digits, signed := strings.CutSuffix(w.text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil || strings.Trim(digits, "0123456789.e-+") != "":
		r.fail(w, "not a percentage", usage+", such as 2%")
	case !signed && p >= 0 && p <= 100:
		r.fail(w, "missing its percent sign", w.text+"%")
	case !(p >= 0 && p <= 100):
		r.fail(w, "not a percentage", "0% to 100%")
	}
	return p / 100
}

func (r *reader) shares(usage string) (share, correlation float64) {
	share = r.share(usage)
	if r.more() {
		correlation = r.share(usage + " CORRELATION%")
	}
	return share, correlation
}

func (r *reader) delay() {
	const usage = "delay TIME [JITTER [CORRELATION%]]"
	r.cfg.Delay = r.time(usage)
	if r.more() {
		r.jitter.Size = r.time(usage)
	}
	if r.more() {
		r.cfg.Correlation.Jitter = r.share(usage)
	}
}

// These are the distributions of tc-netem(8).
const (
	shapeUniform      = "uniform"
	shapeNormal       = "normal"
	shapePareto       = "pareto"
	shapeParetoNormal = "paretonormal"
)

var shapes = []string{shapeUniform, shapeNormal, shapePareto, shapeParetoNormal}

const usageDistribution = "distribution uniform, normal, pareto, paretonormal or FILE.dist"

func (r *reader) shape() {
	j := r.distribution()
	r.jitter.Shape, r.jitter.Table = j.Shape, j.Table
}

// distribution parses a distribution's name. A name with a dot or a slash is a file.
func (r *reader) distribution() (j RandomJitter) {
	w, ok := r.next(usageDistribution)
	switch {
	case !ok || w.text == shapeUniform:
	case slices.Contains(shapes, w.text):
		j.Shape = w.text
	case !strings.ContainsAny(w.text, "./"):
		r.fail(w, "an unknown distribution"+diagnostic.DidYouMean(w.text, shapes),
			strings.Join(shapes, ", ")+" or a file such as ./lte.dist")
	default:
		text, ok := r.file(w, maxDistribution, strings.Join(shapes, ", "))
		if !ok {
			break
		}
		table, err := ParseTable(string(text))
		if err != nil {
			why := strings.TrimPrefix(err.Error(), ErrConfig.Error()+": ")
			r.fail(w, "not a table of tc: "+why, "")
		}
		j.Shape, j.Table = w.text, table
	}
	return j
}

// maxDistribution is larger than all distribution tables of tc, in bytes.
const maxDistribution = 256 << 10

// file reads the file that an argument names.
func (r *reader) file(w word, most int64, instead string) ([]byte, bool) {
	if r.read == nil {
		r.fail(w, "a file, which cannot be used here", instead)
		return nil, false
	}
	text, err := r.read(w.text, most)
	if err != nil {
		r.fail(w, "a file that cannot be read: "+err.Error(), "")
	}
	return text, err == nil
}

func (r *reader) where() {
	const usage = "where headers or payload"
	switch w, _ := r.next(usage); w.text {
	case "headers":
		r.cfg.Corrupt.Where = Headers
	case "payload":
		r.cfg.Corrupt.Where = Payload
	default:
		r.fail(w, "not a part of a packet", "headers or payload")
	}
}

// timeUnits are the kernel's names for Go's ms, us and s, longest first.
var timeUnits = [...][2]string{
	{"msecs", "ms"}, {"msec", "ms"}, {"usecs", "us"}, {"usec", "us"}, {"secs", "s"}, {"sec", "s"},
}

func (r *reader) time(usage string) time.Duration {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	d, err := duration(w.text)
	switch {
	case err != nil && strings.Trim(w.text, "0123456789.") == "":
		r.fail(w, "missing its unit", w.text+"ms or "+w.text+"us")
	case err != nil:
		r.fail(w, "not a time", usage+", such as 20ms or 250us")
	case d < 0 || d > maxDelay:
		r.fail(w, "out of range", "0s to "+maxDelay.String())
	}
	return d
}

// duration parses a time in Go's units or the kernel's.
func duration(text string) (time.Duration, error) {
	for _, unit := range timeUnits {
		if number, found := strings.CutSuffix(text, unit[0]); found {
			text = number + unit[1]
			break
		}
	}
	return time.ParseDuration(text)
}

func (r *reader) count(usage string, most int) int { return r.number(usage, 1, most) }

func (r *reader) number(usage string, least, most int) int {
	w, ok := r.next(usage)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < least || n > most {
		r.fail(w, "not a valid number",
			usage+" from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n
}

// unit is the name of a unit and its size in the smallest unit.
type unit struct {
	name string
	of   float64
}

// rateUnits are the units of tc(8); "bps" means bytes a second.
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

// sizeUnits are the units of tc(8) for bytes.
var sizeUnits = []unit{{"kb", 1 << 10}, {"mb", 1 << 20}, {"k", 1 << 10}, {"m", 1 << 20}, {"b", 1}}

// measure parses a number with one of the units; false: another form, or not 1 to most.
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

func (r *reader) seed() {
	w, ok := r.next("seed N")
	if !ok {
		return
	}
	n, err := strconv.ParseUint(w.text, 10, 64)
	if err != nil || n == 0 {
		r.fail(w, "not a seed", "a number from 1")
	}
	r.cfg.Seed = n
}
