package plan

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// MaxFlows is the maximum number of flows.
const MaxFlows = 1000

type flowDraft struct {
	Flow
	at       *node
	count    int
	interval time.Duration
	named    bool
	window   *node
	cubic    congestion.Cubic
	app      *node
	size     *node
	rcp      rcp.Config
	rdt      workload.ObjectsConfig
	strategy strategyDraft
}

// keys are the keys of every flow, in the order in which they are read.
func (f *flowDraft) keys() []key {
	return []key{
		{"name", "", func(d *decoder, n *node) {
			f.named = d.name(n, "a flow's name", &f.Name)
			if _, err := strconv.Atoi(f.Name); err == nil || f.Name == "*" {
				d.bad(n, diagnostic.Quote(f.Name)+
					" is not a flow's name: keys address flows by number", "a name with a letter")
			}
		}},
		{"count", "1", readCount("a number of flows", MaxFlows, &f.count)},
		{"interval", "", readTime("the interval between starts", maxSpan, &f.interval)},
		{"protocol", "tcp", func(d *decoder, n *node) {
			if w, ok := d.word(n, "a protocol", protocolNames); ok {
				f.Protocol = Protocol(w)
			}
		}},
		{"direction", "down", func(d *decoder, n *node) {
			w, _ := d.word(n, "a direction of data", []string{"down", "up"})
			f.Upward = w == "up"
		}},
		{"start", "0s", readTime("a start time", maxSpan, &f.Start)},
		{"stop", "", readTime("a stop time", maxSpan, &f.Stop)},
		{"delay", "0s", readTime("the one-way delay of the flow's links", maxDelay, &f.Delay)},
		{"size", "", readNode(&f.size)},
		{"app", "", readNode(&f.app)},
	}
}

func protocolOf(n *node) Protocol {
	if p := n.get("protocol"); p != nil && slices.Contains(protocolNames, p.text) {
		return Protocol(p.text)
	}
	return TCP
}

func (f *flowDraft) keysOf(p Protocol) []key {
	echo, fetch := key{"echo", "", f.readEcho}, key{"objects", "", f.readObjects}
	switch p {
	case RCP:
		own := key{"rcp", "", readMapping("RCP", rcpKeys(&f.rcp))}
		return []key{echo, {"burst", "", f.readBurst}, own}
	case RDT:
		return []key{fetch, {"rdt", "", readMapping("RDT", rdtKeys(&f.rdt))}}
	case Notebook:
		return []key{{"notebook", "", f.strategy.read}}
	case QUIC:
		return []key{fetch}
	case TCP:
	}
	return append(f.tcpKeys(), echo, fetch)
}

var protocolNames = []string{string(TCP), string(RCP), string(RDT), string(Notebook), string(QUIC)}

func (x *draft) readFlows(d *decoder, root *node) {
	n := x.flows
	switch {
	case n == nil && root.get("flows") != nil: // fill has reported that the key has no value
		return
	case n == nil:
		d.report.add(root.place, "the experiment has no flows", "flows: [{cc: cubic}]")
		return
	case n.kind != list:
		d.bad(n, n.shown()+" is not a list of flows", "flows: [{cc: cubic}]")
		return
	case len(n.items) == 0:
		d.bad(n, "the list of flows is empty", "flows: [{cc: cubic}]")
		return
	}
	for i, item := range n.items {
		f := shared(d, item, [3]any{d.mtu, d.headers, d.duration}, func() *flowDraft {
			return readFlow(d, item)
		})
		if len(x.Flows)+f.count > MaxFlows {
			d.bad(item, "too many flows", strconv.Itoa(MaxFlows)+" at most")
			break
		}
		x.Flows = append(x.Flows, f.copies(i)...)
	}
	x.nameFlows(d)
}

func readFlow(d *decoder, n *node) *flowDraft {
	f := &flowDraft{at: n, count: 1}
	protocol := protocolOf(n)
	if !d.fill(n, "a flow over "+string(protocol), slices.Concat(f.keys(), f.keysOf(protocol))) {
		return f
	}
	f.finishApp(d)
	switch f.Protocol {
	case TCP:
		f.finishTCP(d)
	case RCP, RDT, Notebook, QUIC:
		f.finishDocument(d)
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
		d.bad(i, "an interval needs a count of more than 1", "a count such as count: 3")
	}
	return f
}

// copies returns the flows of one item of the list.
func (f *flowDraft) copies(item int) []Flow {
	out := make([]Flow, f.count)
	for i := range out {
		out[i] = f.Flow
		out[i].Item = item
		out[i].Start += time.Duration(i) * f.interval
		if f.count > 1 && f.named {
			out[i].Name = f.Name + "-" + strconv.Itoa(i+1)
		}
	}
	return out
}

// nameFlows names each flow without a name after its kind, and adds a number if the name is not
// unique. Names must differ.
func (x *draft) nameFlows(d *decoder) {
	taken := map[string]bool{}
	for _, f := range x.Flows {
		if f.Name == "" {
			continue
		}
		if taken[f.Name] {
			for _, item := range slices.Backward(x.flows.items) {
				if name := item.get("name"); name.plain(f.Name) {
					d.bad(name, "another flow has the name "+diagnostic.Quote(f.Name),
						"different names")
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

func (a *App) keys() []key {
	const mostRequests = 1_000_000
	return []key{
		{"rate", "", readRate("a rate", &a.Rate)},
		{"on", "", readTime("the time on", maxSpan, &a.On)},
		{"off", "", readTime("the time off", maxSpan, &a.Off)},
		{"requests", "", readCount("a number of requests", mostRequests, &a.Requests)},
		{"gap", "", readTime("the time between requests", maxSpan, &a.Gap)},
	}
}

// maxBytes limits sizes. It is more than any run transfers.
const maxBytes = 1 << 50

func (f *flowDraft) finishApp(d *decoder) {
	a := f.App
	if f.size != nil && !f.size.plain("unlimited") {
		a.Size, _ = d.bytes(f.size, "a size of the data", 1, maxBytes)
	}
	own := f.Protocol != TCP || f.App.Echo != nil || f.App.Objects != nil
	if own && (f.size != nil || f.app != nil) {
		d.bad(firstOf(f.at, "size", "app"), "this kind of flow does not accept size and app",
			"a flow without them")
		return
	}
	if n := f.app; n != nil && !n.plain("bulk") {
		if n.kind != mapping {
			d.bad(n, n.shown()+" is not an application",
				"bulk, or a mapping with rate, on, off, requests or gap")
			return
		}
		d.fill(n, "an application", a.keys())
		switch {
		case (n.get("on") == nil) != (n.get("off") == nil):
			d.bad(n, "only one of on and off is set", "both of them")
		case n.get("on") != nil && a.On == 0:
			d.bad(n.get("on"), "the application is never on", "more than 0s")
		case n.get("requests") != nil && f.size == nil:
			d.bad(n.get("requests"), "requests need a size", "size: 10kB in the flow")
		case n.get("requests") != nil && (a.Rate > 0 || a.On > 0):
			d.bad(n.get("requests"), "requests and paced writing cannot be used together",
				"only one of them")
		case n.get("gap") != nil && n.get("requests") == nil:
			d.bad(n.get("gap"), "a gap needs requests", "a number of requests such as requests: 10")
		}
	}
	f.App = a
}

// Label returns the kind of a flow: its congestion control, or its protocol.
func (f *Flow) Label() string {
	if f.Protocol == TCP {
		return f.TCP.Recovery.Congestion
	}
	return string(f.Protocol)
}
