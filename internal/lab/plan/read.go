package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// draft is an Experiment that is being read. The values in nodes depend on other keys, so they are
// read last.
type draft struct {
	Experiment
	path       *node
	mahimahi   *node
	flows      *node
	expect     *node
	hostJitter *node
	warmup     *node
}

// These are limits of an experiment.
const (
	maxNameChars = 60
	maxText      = 2000
	maxTrials    = 1_000_000
	minMTU       = 68   // RFC 791 §3.2: every host must forward packets of this size
	minMTU6      = 1280 // smallest MTU of IPv6 (RFC 8200 §5)
	maxMTU       = 65535
)

func (x *draft) keys() []key {
	nothing := func(*decoder, *node) {}
	return []key{
		{"name", "", func(d *decoder, n *node) { d.name(n, "a name", &x.Name) }},
		{"about", "", readText(&x.About)},
		{"duration", "60s", readTimeFrom(
			time.Millisecond, "the duration of a run", maxSpan, &x.Duration)},
		{"warmup", "0s", readNode(&x.warmup)},
		{"seed", "1", readNumber("a seed", 0, math.MaxInt64, &x.Seed)},
		{"trials", "1", readCount("a number of trials", maxTrials, &x.Trials)},
		{"host_jitter", "1svc", readNode(&x.hostJitter)},
		{"mtu", "1500", readSize("an MTU", minMTU, maxMTU, &x.Path.MTU)},
		{"family", "", func(d *decoder, n *node) {
			w, _ := d.word(n, "a version of IP", []string{"4", "6"})
			x.Path.IPv6 = w == "6"
		}},
		{"path", "", readNode(&x.path)},
		{"mm", "", readNode(&x.mahimahi)},
		{"flows", "", readNode(&x.flows)},
		{"sweep", "", nothing}, // Parse has read it
		{"metrics", "", x.readMetrics},
		{"expect", "", readNode(&x.expect)},
	}
}

func (d *decoder) experiment(root *node) Experiment {
	x, before := draft{}, d.report.added
	x.Path.MTU = 1500
	if !d.fill(root, "an experiment", x.keys()) {
		return x.Experiment
	}
	d.mtu, d.duration, d.leastMTU, d.headers = x.Path.MTU, x.Duration, minMTU, x.Path.headers()
	if x.Path.IPv6 {
		if d.leastMTU = minMTU6; d.mtu < minMTU6 {
			d.bad(root.get("mtu"), fmt.Sprintf("%d bytes are below the minimum MTU of IPv6", d.mtu),
				fmt.Sprintf("%d or more, or family: 4", minMTU6))
		}
	}
	if root.get("name") == nil && d.report.added == before {
		d.report.add(root.place, "the experiment has no name", "name: WORD")
	}
	if w := x.warmup; w != nil {
		readTime("a warm-up", maxSpan, &x.Warmup)(d, w)
		if x.Warmup >= x.Duration && x.Duration > 0 {
			d.bad(w, "a warm-up of "+x.Warmup.String()+" leaves no time to measure in a run of "+
				x.Duration.String(), "less than duration")
		}
	}
	x.readPath(d, root)
	x.readHostJitter(d)
	x.readFlows(d, root)
	if f := x.endless(); f != nil && !d.unread && d.report.added == before {
		d.report.add(firstOf(root, "path", "mm").place, "the path has neither delay nor rate: "+
			f.Name+" would send forever at one instant",
			"a delay or a rate, or a flow with a size")
	}
	if x.expect != nil {
		d.expectations(x.expect, &x.Experiment)
	}
	return x.Experiment
}

// readHostJitter reads the hosts' jitter, which can be in service times of the bottleneck.
func (x *draft) readHostJitter(d *decoder) {
	if x.hostJitter == nil || x.hostJitter.plain("off") { // nil: the key has no value
		return
	}
	m, ok := d.quantity(x.hostJitter, "the jitter of hosts", result.Services, result.Seconds)
	if !ok {
		return
	}
	if m.of == result.Services { // one packet of the MTU at the bottleneck
		var service float64
		if d.bottleneck > 0 {
			const bits = 8
			service = math.Round(float64(d.mtu*bits) * 1e9 / d.bottleneck)
		}
		// The default is 1svc, which must not be an error if a packet takes hours on a slow link.
		m.value = min(m.value*service, float64(time.Minute))
	}
	if m.value > float64(time.Minute) {
		d.bad(x.hostJitter, "out of range", "the jitter of hosts from 0 to 1m")
		return
	}
	x.HostJitter = time.Duration(math.Round(m.value))
}

func (d *decoder) name(n *node, what string, to *string) bool {
	const want = "letters, digits and any of . _ + -, at most 60"
	text, ok := d.scalar(n, what+": "+want)
	if !ok {
		return false
	}
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r) {
			d.bad(n, diagnostic.Quote(text)+" contains "+strconv.QuoteRune(r), what+" of "+want)
			return false
		}
	}
	if len([]rune(text)) > maxNameChars || strings.Trim(text, ".") == "" {
		d.bad(n, diagnostic.Quote(text)+" is not "+what, want)
		return false
	}
	*to = text
	return true
}

func readText(to *string) reading {
	return func(d *decoder, n *node) {
		text, ok := d.scalar(n, "text")
		if ok && len(text) > maxText {
			d.bad(n, "the text is too long", strconv.Itoa(maxText)+" bytes at most")
			return
		}
		*to = strings.TrimSpace(text)
	}
}

func (x *draft) readMetrics(d *decoder, n *node) {
	items := []*node{n}
	switch n.kind {
	case list:
		items = n.items
	case mapping:
		d.bad(n, "a mapping is not allowed here", metricsWant)
		return
	case scalar:
	}
	if len(items) == 0 {
		d.bad(n, "the table has no columns", metricsWant+" (or remove the line)")
		return
	}
	for _, item := range items {
		name, ok := d.scalar(item, metricsWant)
		m, known := result.Find(name)
		switch {
		case !ok:
		case !known:
			near := diagnostic.DidYouMean(name, result.Names())
			d.bad(item, diagnostic.Quote(name)+" is not a metric"+near, "one of `node lab metrics`")
		case slices.Contains(x.Metrics, m.Name):
			d.bad(item, diagnostic.Quote(name)+" is listed twice", "each metric once")
		default:
			x.Metrics = append(x.Metrics, m.Name)
		}
	}
}

const metricsWant = "names of metrics, such as [completion, goodput]"
