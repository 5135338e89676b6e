package plan

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/objects"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// MaxFlows is how many flows an experiment has at the most.
const MaxFlows = 1000

// flowOf is a flow in the making.
type flowOf struct {
	Flow
	at       *node
	count    int
	interval time.Duration
	named    bool
	window   *node
	cubic    congestion.Cubic
	sack     bool
	app      *node
	size     *node
	rcp      rcp.Config
	rdt      objects.Config
	strategy strategyOf
}

// flowKeys are what every flow has. In the order of the table: what it speaks comes first.
var flowKeys = []key[flowOf]{
	{"name", "", func(d *decoder, n *node, f *flowOf) {
		f.named = d.name(n, "a flow's name", &f.Name)
		if _, err := strconv.Atoi(f.Name); err == nil || f.Name == "*" {
			d.bad(n, mistake.Quote(f.Name)+" is not a flow's name: keys count flows by numbers",
				"a word")
		}
	}},
	{"count", "1", func(d *decoder, n *node, f *flowOf) {
		d.count(n, "how many such flows", MaxFlows, &f.count)
	}},
	{"interval", "", func(d *decoder, n *node, f *flowOf) {
		d.time(n, "how much later each begins", maxSpan, &f.interval)
	}},
	{"protocol", "tcp", func(d *decoder, n *node, f *flowOf) {
		if w, ok := d.word(n, "a protocol", protocolNames); ok {
			f.Protocol = Protocol(w)
		}
	}},
	{"direction", "down", func(d *decoder, n *node, f *flowOf) {
		w, _ := d.word(n, "a direction of data", []string{"down", "up"})
		f.Upward = w == "up"
	}},
	{"start", "0s", func(d *decoder, n *node, f *flowOf) {
		d.time(n, "when it begins", maxSpan, &f.Start)
	}},
	{"stop", "", func(d *decoder, n *node, f *flowOf) {
		d.time(n, "when it ends", maxSpan, &f.Stop)
	}},
	{"delay", "0s", func(d *decoder, n *node, f *flowOf) {
		d.time(n, "the wire of its own hosts, each way", maxDelay, &f.Delay)
	}},
	{"size", "", func(_ *decoder, n *node, f *flowOf) { f.size = n }},
	{"app", "", func(_ *decoder, n *node, f *flowOf) { f.app = n }},
}

// protocolNames are what flows may speak.
var protocolNames = []string{string(TCP), string(RCP), string(RDT), string(Notebook), string(QUIC)}

// flows reads all of them.
func (d *decoder) flows(root *node, x *draft) {
	n := x.flows
	switch {
	case n == nil && root.get("flows") != nil: // it is empty, which is reported
		return
	case n == nil:
		d.report.add(root.place, "an experiment without flows", "flows: [{cc: cubic}]")
		return
	case n.kind != list:
		d.bad(n, d.shown(n)+" is not a list of flows", "flows: [{cc: cubic}]")
		return
	case len(n.items) == 0:
		d.bad(n, "no flow in the list", "flows: [{cc: cubic}]")
		return
	}
	for i, item := range n.items {
		f := d.flow(item)
		f.Item = i
		if len(x.Flows)+f.count > MaxFlows {
			d.bad(item, "too many flows", strconv.Itoa(MaxFlows)+" at most")
			break
		}
		x.Flows = append(x.Flows, f.copies()...)
	}
	d.nameFlows(n, x)
}

// flow reads one.
func (d *decoder) flow(n *node) flowOf {
	f := flowOf{at: n, count: 1, sack: true}
	spoken := spokenBy(n)
	if !fill(d, n, "a flow of "+string(spoken), protocolTables[spoken], &f) {
		return f
	}
	d.finishApp(&f)
	switch f.Protocol {
	case TCP:
		d.finishTCP(&f)
	case RCP, RDT, Notebook, QUIC:
		d.finishDocument(&f)
	}
	last := f.Start + time.Duration(f.count-1)*f.interval
	switch stop := n.get("stop"); {
	case stop != nil && f.Stop <= f.Start:
		d.bad(stop, fmt.Sprintf("a stop at %v is before the start at %v", f.Stop, f.Start), "")
	case stop != nil && f.Stop <= last:
		d.bad(stop, fmt.Sprintf("a stop at %v is before the start of the last copy at %v",
			f.Stop, last), "")
	case last >= d.duration && d.duration > 0:
		at := n.get("start")
		if at == nil {
			at = n
		}
		d.bad(at, fmt.Sprintf("a start at %v is after the end of the run at %v", last,
			d.duration), "less than duration")
	}
	if i := n.get("interval"); i != nil && f.count == 1 {
		d.bad(i, "an interval between copies of which there is one", "count: 3 beside it")
	}
	return f
}

// copies returns the flow as often as it is there.
func (f *flowOf) copies() []Flow {
	out := make([]Flow, f.count)
	for i := range out {
		out[i] = f.Flow
		a := &out[i].App
		a.Echo, a.Burst = clone(a.Echo), clone(a.Burst)
		a.Objects, a.Notebook = clone(a.Objects), clone(a.Notebook)
		out[i].Start += time.Duration(i) * f.interval
		if f.count > 1 && f.named {
			out[i].Name = f.Name + "-" + strconv.Itoa(i+1)
		}
	}
	return out
}

// clone copies what is there.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// nameFlows gives names to those that have none: what they run, and a number if that is not
// enough. Names must differ.
func (d *decoder) nameFlows(n *node, x *draft) {
	taken := map[string]bool{}
	for _, f := range x.Flows {
		if f.Name == "" {
			continue
		}
		if taken[f.Name] {
			for _, item := range slices.Backward(n.items) {
				if name := item.get("name"); name.plain(f.Name) {
					d.bad(name, "another flow is called "+mistake.Quote(f.Name),
						"names that differ")
					break
				}
			}
		}
		taken[f.Name] = true
	}
	same := map[string]int{}
	for _, f := range x.Flows {
		same[f.Label()]++
	}
	next := map[string]int{}
	for i := range x.Flows {
		f := &x.Flows[i]
		if f.Name != "" {
			continue
		}
		label := f.Label()
		f.Name = label
		for same[label] > 1 || taken[f.Name] {
			next[label]++
			if f.Name = label + "-" + strconv.Itoa(next[label]); !taken[f.Name] {
				break
			}
		}
		taken[f.Name] = true
	}
}

var appKeys = []key[App]{
	{"rate", "", func(d *decoder, n *node, a *App) {
		a.Rate, _ = d.rate(n, "how fast it writes")
	}},
	{"on", "", func(d *decoder, n *node, a *App) {
		d.time(n, "how long it writes", maxSpan, &a.On)
	}},
	{"off", "", func(d *decoder, n *node, a *App) {
		d.time(n, "how long it rests", maxSpan, &a.Off)
	}},
	{"requests", "", func(d *decoder, n *node, a *App) {
		const most = 1_000_000
		d.count(n, "how many requests", most, &a.Requests)
	}},
	{"gap", "", func(d *decoder, n *node, a *App) {
		d.time(n, "how long after the last", maxSpan, &a.Gap)
	}},
}

// maxBytes is more than any run moves.
const maxBytes = 1 << 50

// finishApp reads what the application does.
func (d *decoder) finishApp(f *flowOf) {
	a := f.App
	if f.size != nil && !f.size.plain("unlimited") {
		a.Size, _ = d.bytes(f.size, "how much it sends", 1, maxBytes)
	}
	own := f.Protocol != TCP || f.App.Echo != nil || f.App.Objects != nil
	if own && (f.size != nil || f.app != nil) {
		d.bad(firstOf(f.at, "size", "app"), "size and app are not for what this flow does",
			"neither of them")
		return
	}
	if n := f.app; n != nil && !n.plain("bulk") {
		if n.kind != mapping {
			d.bad(n, d.shown(n)+" is not an application",
				"bulk, or a mapping with rate, on, off, requests or gap")
			return
		}
		fill(d, n, "an application", appKeys, &a)
		switch {
		case (n.get("on") == nil) != (n.get("off") == nil):
			d.bad(n, "on and off go together", "both of them")
		case n.get("on") != nil && a.On == 0:
			d.bad(n.get("on"), "an application that is never on", "more than 0s")
		case n.get("requests") != nil && f.size == nil:
			d.bad(n.get("requests"), "requests for nothing", "size: 10kB in the flow")
		case n.get("requests") != nil && (a.Rate > 0 || a.On > 0):
			d.bad(n.get("requests"), "requests and paced writing exclude each other", "one of them")
		case n.get("gap") != nil && n.get("requests") == nil:
			d.bad(n.get("gap"), "a gap between requests that there are not",
				"requests: 10 beside it")
		}
	}
	f.App = a
}

// Label is what a flow is an instance of: its congestion control, or its protocol.
func (f *Flow) Label() string {
	if f.Protocol == TCP {
		return f.TCP.Congestion
	}
	return string(f.Protocol)
}
