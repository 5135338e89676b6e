package plan

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/mistake"
)

// draft is an Experiment in the making: what one part says can need another.
type draft struct {
	Experiment
	path       *node
	mahimahi   *node
	flows      *node
	expect     *node
	hostJitter *node
	warmup     *node
}

// Bounds of an experiment.
const (
	maxNameChars = 60
	maxText      = 2000
	maxTrials    = 1_000_000
	minMTU       = 68 // RFC 791 §3.2: every module must forward this much
	maxMTU       = 65535
)

// experimentKeys are what a file has.
var experimentKeys = []key[draft]{
	{"name", "", func(d *decoder, n *node, x *draft) { d.name(n, "a name", &x.Name) }},
	{"about", "", func(d *decoder, n *node, x *draft) { d.text(n, &x.About) }},
	{"duration", "60s", func(d *decoder, n *node, x *draft) {
		if t, ok := d.span(n, "how long a run takes", time.Millisecond, maxSpan); ok {
			x.Duration = t
		}
	}},
	{"warmup", "0s", func(_ *decoder, n *node, x *draft) { x.warmup = n }},
	{"seed", "1", func(d *decoder, n *node, x *draft) {
		if v, ok := d.number(n, "a seed", 0, math.MaxInt64); ok {
			x.Seed = uint64(v)
		}
	}},
	{"trials", "1", func(d *decoder, n *node, x *draft) {
		d.count(n, "a number of trials", maxTrials, &x.Trials)
	}},
	{"host_jitter", "1svc", func(_ *decoder, n *node, x *draft) { x.hostJitter = n }},
	{"mtu", "1500", func(d *decoder, n *node, x *draft) {
		d.size(n, "the longest packet", minMTU, maxMTU, &x.Path.MTU)
	}},
	{"path", "", func(_ *decoder, n *node, x *draft) { x.path = n }},
	{"mm", "", func(_ *decoder, n *node, x *draft) { x.mahimahi = n }},
	{"flows", "", func(_ *decoder, n *node, x *draft) { x.flows = n }},
	{"sweep", "", func(*decoder, *node, *draft) {}}, // sweep.go reads it before
	{"metrics", "", func(d *decoder, n *node, x *draft) { x.Metrics = d.metrics(n) }},
	{"expect", "", func(_ *decoder, n *node, x *draft) { x.expect = n }},
}

// experiment decodes a document.
func (d *decoder) experiment(root *node) Experiment {
	x, before := draft{}, len(d.report.errs)
	x.Path.MTU = 1500
	if !fill(d, root, "an experiment", experimentKeys, &x) {
		return x.Experiment
	}
	d.mtu, d.duration = x.Path.MTU, x.Duration
	if root.get("name") == nil && len(d.report.errs) == before {
		d.report.add(root.place, "an experiment without a name", "name: WORD")
	}
	if w := x.warmup; w != nil {
		d.time(w, "what is left out of the means", maxSpan, &x.Warmup)
		if x.Warmup >= x.Duration && x.Duration > 0 {
			d.bad(w, "a warm-up of "+x.Warmup.String()+" leaves nothing of a run of "+
				x.Duration.String(), "less than duration")
		}
	}
	d.wires(root, &x)
	d.jitterOfHosts(&x)
	d.flows(root, &x)
	if f := x.endless(); f != nil && !d.unread && len(d.report.errs) == before {
		d.report.add(firstOf(root, "path", "mm").place, "nothing takes time on this path, so that "+
			f.Name+" would send for ever at one instant",
			"a delay or a rate, or a flow with a size")
	}
	if x.expect != nil {
		d.expectations(x.expect, &x.Experiment)
	}
	return x.Experiment
}

// jitterOfHosts reads the one key whose unit is the bottleneck's.
func (d *decoder) jitterOfHosts(x *draft) {
	if x.hostJitter == nil || x.hostJitter.plain("off") { // nil: the file has an empty one
		return
	}
	m, ok := d.quantity(x.hostJitter, "the jitter of hosts", svcCount, timeSpan)
	if !ok {
		return
	}
	if m.of == svcCount {
		// The default is in service times, and no mistake where a link takes hours for a packet.
		m.value = min(m.value*float64(d.serviceTime()), float64(time.Minute))
	}
	if m.value > float64(time.Minute) {
		d.bad(x.hostJitter, "out of range", "the jitter of hosts from 0 to 1m")
		return
	}
	x.HostJitter = time.Duration(math.Round(m.value))
}

// name reads what files and columns can be called by.
func (d *decoder) name(n *node, what string, to *string) bool {
	const want = "letters, digits and any of . _ + -, at most 60"
	text, ok := d.scalar(n, what+": "+want)
	if !ok {
		return false
	}
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r) {
			d.bad(n, mistake.Quote(text)+" has "+strconv.QuoteRune(r)+" in it", what+" of "+want)
			return false
		}
	}
	if len([]rune(text)) > maxNameChars || strings.Trim(text, ".") == "" {
		d.bad(n, mistake.Quote(text)+" is not "+what, want)
		return false
	}
	*to = text
	return true
}

// text reads prose.
func (d *decoder) text(n *node, to *string) {
	text, ok := d.scalar(n, "a text")
	if ok && len(text) > maxText {
		d.bad(n, "longer than a text is", strconv.Itoa(maxText)+" bytes at most")
		return
	}
	*to = strings.TrimSpace(text)
}
