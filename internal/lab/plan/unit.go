package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// measures has each unit's description and an example.
var measures = map[result.Unit]struct{ what, example string }{
	result.Pure:        {"a number without a unit", "5"},
	result.Seconds:     {"a time", "88ms or 1.5s"},
	result.Bytes:       {"a size", "26400B or 26.4kB"},
	result.Rate:        {"a rate", "12Mbit/s"},
	result.Percent:     {"a share", "1%"},
	result.PacketCount: {"a number of packets", "50pkt"},
	result.BDPs:        {"a number of bandwidth-delay products", "1bdp"},
	result.Services:    {"a number of service times", "1svc"},
}

// unitHints has hints for common ambiguous units.
var unitHints = map[string]string{
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

// measured is a number of ns, bytes, bit/s or another unit.
type measured struct {
	value float64
	of    result.Unit
}

// quantity reads a number with one of the units. In error messages, what names the quantity.
func (d *decoder) quantity(n *node, what string, as ...result.Unit) (measured, bool) {
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
	if m.value == 0 && m.of == result.Pure {
		return measured{0, as[0]}, true // zero is the same in every unit
	}
	want := expected(what, as)
	if m.of == result.Pure && len(as) == 1 {
		d.bad(n, diagnostic.Quote(text)+" has no unit", what+", such as "+withUnit(text, as[0]))
		return measured{}, false
	}
	msg := " is " + measures[m.of].what
	if m.of == result.Pure {
		msg = " has no unit"
	}
	d.bad(n, diagnostic.Quote(text)+msg, want)
	return measured{}, false
}

// withUnit suggests units for a number without one.
func withUnit(text string, as result.Unit) string {
	switch as {
	case result.Seconds:
		return text + "ms or " + text + "s"
	case result.Rate:
		return text + "Mbit/s or " + text + "bit/s"
	case result.Percent:
		if v, err := strconv.ParseFloat(text, 64); err == nil && v <= 1 {
			return strconv.FormatFloat(v*100, 'g', 6, 64) + "% or " + text + "%"
		}
		return text + "%"
	case result.Bytes:
		return text + "B or " + text + "kB"
	default:
	}
	return measures[as].example
}

// expected describes a quantity with examples.
func expected(what string, as []result.Unit) string {
	examples := make([]string, len(as))
	for i, a := range as {
		examples[i] = measures[a].example
		if len(as) > 2 {
			examples[i], _, _ = strings.Cut(examples[i], " ")
		}
	}
	return what + ", such as " + diagnostic.OneOf(examples)
}

// measure parses a number with a unit. If it cannot, why is the reason.
func measure(text string) (m measured, why string) {
	n := result.NumberLength(text)
	unit := strings.TrimSpace(text[n:])
	v, err := strconv.ParseFloat(text[:n], 64)
	switch {
	case strings.HasPrefix(text, "-"):
		return m, "it is negative"
	case math.IsInf(v, 0):
		return m, "it is too large"
	case err != nil:
		return m, "it does not begin with a number"
	case unit == "":
		return measured{v, result.Pure}, ""
	}
	if u, ok := result.Measures[unit]; ok {
		return measured{u.Of(v), u.Unit}, ""
	}
	if span, err := time.ParseDuration(text); err == nil { // such as 1m30s
		return measured{float64(span), result.Seconds}, ""
	}
	if better, ok := unitHints[unit]; ok {
		return m, "write " + better
	}
	if better := sameCase(unit); better != "" {
		return m, diagnostic.Quote(unit) + " is not a unit (did you mean " + better + "?)"
	}
	return m, diagnostic.Quote(unit) + " is not a unit"
}

// sameCase finds a unit that differs only in case, the first by name.
func sameCase(unit string) string {
	best := ""
	for name := range result.Measures {
		if strings.EqualFold(name, unit) && (best == "" || name < best) {
			best = name
		}
	}
	return best
}

// maxSpan limits all times to a week.
const maxSpan = 7 * 24 * time.Hour

func (d *decoder) span(n *node, what string, least, most time.Duration) (time.Duration, bool) {
	m, ok := d.quantity(n, what, result.Seconds)
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

func readTimeFrom(least time.Duration, what string, most time.Duration, to *time.Duration) reading {
	return func(d *decoder, n *node) {
		if t, ok := d.span(n, what, least, most); ok {
			*to = t
		}
	}
}

// bytes reads a size. A number without a unit is in bytes.
func (d *decoder) bytes(n *node, what string, least, most float64) (uint64, bool) {
	m, ok := d.quantity(n, what, result.Bytes, result.Pure)
	if !ok {
		return 0, false
	}
	v := math.Round(m.value)
	if v < least || v > most || v != m.value && m.of == result.Pure {
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
		m, ok := d.quantity(n, what, result.Pure, result.PacketCount)
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
	m, ok := d.quantity(n, what, result.Rate)
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

func readShare(what string, to *float64) reading {
	return func(d *decoder, n *node) {
		m, ok := d.quantity(n, what, result.Percent)
		switch {
		case !ok:
		case m.value > 1:
			d.bad(n, n.text+" is above 100%", what+" from 0% to 100%")
		default:
			*to = m.value
		}
	}
}
