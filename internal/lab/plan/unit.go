package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

type dimension uint8

const (
	pureNumber dimension = iota
	timeSpan             // ns
	dataSize             // bytes
	dataRate             // bit/s
	shareOf              // of 1
	packetCount
	bdpCount  // bandwidth-delay products
	svcCount  // service times
	noMeasure // not a quantity
)

// measures has each dimension's description and an example.
var measures = [...]struct{ what, such string }{
	pureNumber:  {"a number without a unit", "5"},
	timeSpan:    {"a time", "88ms or 1.5s"},
	dataSize:    {"a size", "26400B or 26.4kB"},
	dataRate:    {"a rate", "12Mbit/s"},
	shareOf:     {"a share", "1%"},
	packetCount: {"a number of packets", "50pkt"},
	bdpCount:    {"a number of bandwidth-delay products", "1bdp"},
	svcCount:    {"a number of service times", "1svc"},
	noMeasure:   {"not a quantity", ""},
}

// units maps the names of units to their quantities and sizes.
var units = map[string]struct {
	of   dimension
	size float64
}{
	"ns": {timeSpan, 1}, "us": {timeSpan, 1e3}, "µs": {timeSpan, 1e3}, "ms": {timeSpan, 1e6},
	"s": {timeSpan, 1e9}, "min": {timeSpan, 60e9}, "m": {timeSpan, 60e9}, "h": {timeSpan, 3600e9},
	"B": {dataSize, 1}, "kB": {dataSize, 1e3}, "MB": {dataSize, 1e6}, "GB": {dataSize, 1e9},
	"KiB": {dataSize, 1 << 10}, "MiB": {dataSize, 1 << 20}, "GiB": {dataSize, 1 << 30},
	"bit/s": {dataRate, 1}, "kbit/s": {dataRate, 1e3}, "Mbit/s": {dataRate, 1e6},
	"Gbit/s": {dataRate, 1e9}, "Tbit/s": {dataRate, 1e12},
	"bit": {dataRate, 1}, "kbit": {dataRate, 1e3}, "Mbit": {dataRate, 1e6},
	"Gbit": {dataRate, 1e9}, "Tbit": {dataRate, 1e12},
	"mbit": {dataRate, 1e6}, "gbit": {dataRate, 1e9}, "tbit": {dataRate, 1e12}, // as tc(8) has them
	"B/s": {dataRate, 8}, "kB/s": {dataRate, 8e3}, "MB/s": {dataRate, 8e6}, "GB/s": {dataRate, 8e9},
	"%":   {shareOf, 1}, // see measure
	"pkt": {packetCount, 1}, "pkts": {packetCount, 1}, "packet": {packetCount, 1},
	"packets": {packetCount, 1},
	"bdp":     {bdpCount, 1}, "svc": {svcCount, 1},
}

// advice is for common ambiguous units.
var advice = map[string]string{
	"Mbps": "Mbit/s, or MB/s if bytes are meant", "mbps": "Mbit/s, or MB/s if bytes are meant",
	"kbps": "kbit/s, or kB/s if bytes are meant", "Kbps": "kbit/s, or kB/s if bytes are meant",
	"Gbps": "Gbit/s, or GB/s if bytes are meant", "gbps": "Gbit/s, or GB/s if bytes are meant",
	"bps": "bit/s, or B/s if bytes are meant",
	"K":   "kB for 1000 bytes, KiB for 1024", "k": "kB for 1000 bytes, KiB for 1024",
	"KB": "kB for 1000 bytes, KiB for 1024", "kb": "kB for 1000 bytes, kbit for bits",
	"Kb": "kB for 1000 bytes, kbit for bits", "b": "B for bytes, bit for bits",
	"M": "MB for bytes, Mbit for bits", "Mb": "MB for bytes, Mbit for bits",
	"mb": "MB for bytes, Mbit for bits", "G": "GB for bytes, Gbit for bits",
	"p": "pkt", "ms/s": "ms", "sec": "s", "secs": "s", "seconds": "s", "msec": "ms",
}

// measured is a number in the smallest unit of its dimension.
type measured struct {
	value float64
	of    dimension
}

// quantity reads a number with a unit of one of the dimensions. Error messages describe it by what.
func (d *decoder) quantity(n *node, what string, as ...dimension) (measured, bool) {
	if n.kind != scalar || n.empty() {
		d.scalar(n, expected(what, as))
		return measured{}, false
	}
	text := n.text
	m, why := measure(text)
	if why != "" {
		d.bad(n, diagnostic.Quote(text)+" is not a quantity: "+why, expected(what, as))
		return measured{}, false
	}
	if slices.Contains(as, m.of) {
		return m, true
	}
	if m.value == 0 && m.of == pureNumber {
		return measured{0, as[0]}, true // nothing of anything
	}
	want := expected(what, as)
	if m.of == pureNumber && len(as) == 1 {
		d.bad(n, diagnostic.Quote(text)+" has no unit", what+", such as "+withUnit(text, as[0]))
		return measured{}, false
	}
	msg := " is " + measures[m.of].what
	if m.of == pureNumber {
		msg = " has no unit"
	}
	d.bad(n, diagnostic.Quote(text)+msg, want)
	return measured{}, false
}

// withUnit suggests units for a number without one.
func withUnit(text string, as dimension) string {
	switch as {
	case timeSpan:
		return text + "ms or " + text + "s"
	case dataRate:
		return text + "Mbit/s or " + text + "bit/s"
	case shareOf:
		if v, err := strconv.ParseFloat(text, 64); err == nil && v <= 1 {
			return strconv.FormatFloat(v*100, 'g', 6, 64) + "% or " + text + "%"
		}
		return text + "%"
	case dataSize:
		return text + "B or " + text + "kB"
	case pureNumber, packetCount, bdpCount, svcCount, noMeasure:
	}
	return measures[as].such
}

func expected(what string, as []dimension) string {
	such := make([]string, len(as))
	for i, a := range as {
		such[i] = measures[a].such
		if len(as) > 2 {
			such[i], _, _ = strings.Cut(such[i], " ")
		}
	}
	return what + ", such as " + diagnostic.OneOf(such)
}

// measure parses a number with a unit. Why is the reason if it cannot.
func measure(text string) (m measured, why string) {
	digits := strings.TrimLeft(text, "0123456789.")
	number := text[:len(text)-len(digits)]
	if rest, ok := exponent(digits); ok && number != "" {
		number, digits = text[:len(text)-len(rest)], rest
	}
	unit := strings.TrimSpace(digits)
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case strings.HasPrefix(text, "-"):
		return m, "it is negative"
	case math.IsInf(v, 0):
		return m, "it is too large"
	case err != nil:
		return m, "it does not begin with a number"
	case unit == "":
		return measured{v, pureNumber}, ""
	case unit == "%":
		return measured{v / 100, shareOf}, "" // not times .01, which is no binary fraction
	}
	if u, ok := units[unit]; ok {
		return measured{v * u.size, u.of}, ""
	}
	if span, err := time.ParseDuration(text); err == nil { // such as 1m30s
		return measured{float64(span), timeSpan}, ""
	}
	if better, ok := advice[unit]; ok {
		return m, "write " + better
	}
	for name := range units {
		if strings.EqualFold(name, unit) && name != "m" && name != "M" {
			return m, diagnostic.Quote(unit) + " is not a unit (did you mean " +
				sameCase(unit) + "?)"
		}
	}
	return m, diagnostic.Quote(unit) + " is not a unit"
}

// sameCase finds a unit that differs only in case, the first by name.
func sameCase(unit string) string {
	best := ""
	for name := range units {
		if strings.EqualFold(name, unit) && (best == "" || name < best) {
			best = name
		}
	}
	return best
}

// exponent removes a leading power of ten, such as e-3.
func exponent(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, "e") {
		return text, false
	}
	t := strings.TrimLeft(text[1:], "+-")
	rest = strings.TrimLeft(t, "0123456789")
	return rest, rest != t && len(text)-1-len(t) <= 1
}

// maxSpan limits all times to a week.
const maxSpan = 7 * 24 * time.Hour

func (d *decoder) span(n *node, what string, least, most time.Duration) (time.Duration, bool) {
	m, ok := d.quantity(n, what, timeSpan)
	if !ok {
		return 0, false
	}
	if m.value < float64(least) || m.value > float64(most) {
		d.bad(n, n.text+" is out of range", what+" from "+least.String()+" to "+most.String())
		return 0, false
	}
	return time.Duration(math.Round(m.value)), true
}

func readTime(what string, most time.Duration, to *time.Duration) reading {
	return readTimeFrom(0, what, most, to)
}

// readTimeFrom reads a time that is not below least.
func readTimeFrom(least time.Duration, what string, most time.Duration, to *time.Duration) reading {
	return func(d *decoder, n *node) {
		if t, ok := d.span(n, what, least, most); ok {
			*to = t
		}
	}
}

// bytes reads a size; a number without a unit is one in bytes.
func (d *decoder) bytes(n *node, what string, least, most float64) (uint64, bool) {
	m, ok := d.quantity(n, what, dataSize, pureNumber)
	if !ok {
		return 0, false
	}
	v := math.Round(m.value)
	if v < least || v > most || v != m.value && m.of == pureNumber {
		d.bad(n, n.text+" is out of range", what+" from "+bytesText(least)+" to "+bytesText(most))
		return 0, false
	}
	return uint64(v), true
}

func readSize(what string, least, most int, to *int) reading {
	return func(d *decoder, n *node) {
		if v, ok := d.bytes(n, what, float64(least), float64(most)); ok {
			*to = int(v)
		}
	}
}

func readSegments(what string, most int, to *int) reading {
	return func(d *decoder, n *node) {
		m, ok := d.quantity(n, what, pureNumber, packetCount)
		switch {
		case !ok:
		case m.value < 1 || m.value > float64(most) || m.value != math.Trunc(m.value):
			d.bad(n, n.text+" is out of range", what+" from 1 to "+strconv.Itoa(most)+" segments")
		default:
			*to = int(m.value)
		}
	}
}

func bytesText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + "B" }

// maxRate is netem's limit.
const maxRate = 1e12

func (d *decoder) rate(n *node, what string) (int64, bool) {
	m, ok := d.quantity(n, what, dataRate)
	if !ok {
		return 0, false
	}
	if m.value < 1 || m.value > maxRate {
		d.bad(n, n.text+" is out of range", what+" from 1bit/s to 1Tbit/s")
		return 0, false
	}
	return int64(math.Round(m.value)), true
}

func readRate(what string, to *int64) reading {
	return func(d *decoder, n *node) { *to, _ = d.rate(n, what) }
}

// readShare reads a percentage as a number from 0 to 1.
func readShare(what string, to *float64) reading {
	return func(d *decoder, n *node) {
		m, ok := d.quantity(n, what, shareOf)
		switch {
		case !ok:
		case m.value > 1:
			d.bad(n, n.text+" is above 100%", what+" from 0% to 100%")
		default:
			*to = m.value
		}
	}
}
