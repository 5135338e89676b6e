package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
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
}

// flowKeys are what every flow has. In the order of the table: what it speaks comes first.
var flowKeys = []key[flowOf]{
	{"name", "", func(d *decoder, n *node, f *flowOf) {
		f.named = d.name(n, "a flow's name", &f.Name)
		if _, err := strconv.Atoi(f.Name); err == nil || f.Name == "*" {
			d.bad(n, quote(f.Name)+" is not a flow's name: keys count flows by numbers", "a word")
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
var protocolNames = []string{string(TCP)}

// flows reads all of them.
func (d *decoder) flows(root *node, x *draft) {
	n := x.flows
	switch {
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
	for _, item := range n.items {
		f := d.flow(item)
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
	keys := slices.Concat(flowKeys, protocolKeys(n))
	if !fill(d, n, "a flow", keys, &f) {
		return f
	}
	d.finishApp(&f)
	if f.Protocol == TCP {
		d.finishTCP(&f)
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

// protocolKeys returns the keys of what a flow speaks.
func protocolKeys(*node) []key[flowOf] { return tcpKeys }

// copies returns the flow as often as it is there.
func (f *flowOf) copies() []Flow {
	out := make([]Flow, f.count)
	for i := range out {
		out[i] = f.Flow
		out[i].Start += time.Duration(i) * f.interval
		if f.count > 1 && f.named {
			out[i].Name = f.Name + "-" + strconv.Itoa(i+1)
		}
	}
	return out
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
					d.bad(name, "another flow is called "+quote(f.Name), "names that differ")
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
	a := App{}
	if f.size != nil && !f.size.plain("unlimited") {
		a.Size, _ = d.bytes(f.size, "how much it sends", 1, maxBytes)
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

// tcpKeys are what a flow of TCP has.
var tcpKeys = []key[flowOf]{
	{"cc", "cubic", func(d *decoder, n *node, f *flowOf) { d.algorithm(n, f) }},
	{"fast_convergence", "on", func(d *decoder, n *node, f *flowOf) {
		d.unless(n, &f.cubic.NoFastConvergence)
	}},
	{"reno_friendly", "on", func(d *decoder, n *node, f *flowOf) {
		d.unless(n, &f.cubic.NoRenoFriendly)
	}},
	{"hystart", "on", func(d *decoder, n *node, f *flowOf) { d.unless(n, &f.cubic.NoHyStart) }},
	{"recovery", "rack", func(d *decoder, n *node, f *flowOf) {
		f.TCP.Recovery, _ = d.word(n, "a loss recovery", recoveries)
	}},
	{"mss", "", func(d *decoder, n *node, f *flowOf) {
		d.size(n, "the largest segment", minMSS, maxMTU-tcpIPHeaders, &f.MSS)
		if f.MSS > d.mtu-tcpIPHeaders {
			d.bad(n, fmt.Sprintf("segments of %d bytes do not fit into an MTU of %d", f.MSS, d.mtu),
				fmt.Sprintf("%d bytes at most, or a larger mtu", d.mtu-tcpIPHeaders))
		}
	}},
	{"iw", "10", func(d *decoder, n *node, f *flowOf) {
		d.segments(n, "an initial window", tcp.MaxInitialWindow, &f.TCP.InitialWindow)
	}},
	{"ssthresh", "", func(d *decoder, n *node, f *flowOf) {
		if !n.plain("none") {
			d.segments(n, "an initial slow start threshold", tcp.MaxInitialWindow, &f.Ssthresh)
		}
	}},
	{"window", "", func(_ *decoder, n *node, f *flowOf) { f.window = n }},
	{"delayed_ack", "", func(d *decoder, n *node, f *flowOf) { d.delayedAck(n, f) }},
	{"sack", "on", func(d *decoder, n *node, f *flowOf) {
		d.truth(n, &f.sack)
		f.TCP.NoSACK = !f.sack
	}},
	{"timestamps", "on", func(d *decoder, n *node, f *flowOf) { d.unless(n, &f.TCP.NoTimestamps) }},
	{"window_scale", "on", func(d *decoder, n *node, f *flowOf) {
		d.unless(n, &f.TCP.NoWindowScale)
	}},
	{"nagle", "on", func(d *decoder, n *node, f *flowOf) { d.unless(n, &f.TCP.NoDelay) }},
	{"pacing", "off", func(d *decoder, n *node, f *flowOf) { d.truth(n, &f.TCP.Pacing) }},
	{"ecn", "off", func(d *decoder, n *node, f *flowOf) { d.ecn(n, f) }},
	{"recv_buffer", "", func(d *decoder, n *node, f *flowOf) {
		d.size(n, "a buffer", tcp.MinBuffer, tcp.MaxBuffer, &f.TCP.RecvBuffer)
	}},
	{"send_buffer", "", func(d *decoder, n *node, f *flowOf) {
		d.size(n, "a buffer", tcp.MinBuffer, tcp.MaxBuffer, &f.TCP.SendBuffer)
	}},
	{"rto_min", "200ms", func(d *decoder, n *node, f *flowOf) { d.timeout(n, &f.TCP.RTOMin) }},
	{"rto_max", "120s", func(d *decoder, n *node, f *flowOf) { d.timeout(n, &f.TCP.RTOMax) }},
	{"rto_initial", "", func(d *decoder, n *node, f *flowOf) { d.timeout(n, &f.TCP.RTOInitial) }},
	{"mtu_probing", "off", func(d *decoder, n *node, f *flowOf) {
		f.TCP.MTUProbing, _ = d.word(n, "a way to find the MTU", []string{
			tcp.MTUProbingOff, tcp.MTUProbingBlackHole, tcp.MTUProbingOn,
		})
	}},
}

// recoveries are the names of loss recovery.
var recoveries = []string{"gbn", "newreno", "sack", "rack"}

const (
	tcpIPHeaders = 40
	minMSS       = 48 // internal/tcp obeys none below
	maxTimeout   = 10 * time.Minute
)

// segments reads a number of segments.
func (d *decoder) segments(n *node, what string, most int, to *int) {
	m, ok := d.quantity(n, what, pureNumber, packetCount)
	if !ok {
		return
	}
	if m.value < 1 || m.value > float64(most) || m.value != math.Trunc(m.value) {
		d.bad(n, n.text+" is out of range", what+" from 1 to "+strconv.Itoa(most)+" segments")
		return
	}
	*to = int(m.value)
}

// unless reads a switch whose field says the opposite.
func (d *decoder) unless(n *node, to *bool) {
	on := !*to
	d.truth(n, &on)
	*to = !on
}

// timeout reads a bound of the retransmission time-out.
func (d *decoder) timeout(n *node, to *time.Duration) {
	if t, ok := d.span(n, "a time-out", time.Millisecond, maxTimeout); ok {
		*to = t
	}
}

// delayedAck reads how long an acknowledgment waits; off: not at all, which the engine has no
// zero for.
func (d *decoder) delayedAck(n *node, f *flowOf) {
	if n.plain("off") {
		f.TCP.DelayedAck = time.Nanosecond
		return
	}
	t, ok := d.span(n, "how long an acknowledgment waits", time.Nanosecond,
		tcp.MaxDelayedAck-time.Nanosecond)
	if ok {
		f.TCP.DelayedAck = t
	}
}

// ecn reads whether a flow asks for explicit congestion notification.
func (d *decoder) ecn(n *node, f *flowOf) {
	if w, ok := d.word(n, "a use of ECN", []string{"on", "off", "passive"}); ok {
		f.TCP.ECN, _ = tcp.ParseECNMode(w)
	}
}

// finishTCP checks what keys say of each other.
func (d *decoder) finishTCP(f *flowOf) {
	if f.MSS == 0 {
		f.MSS = d.mtu - tcpIPHeaders
	}
	c := &f.TCP
	n := f.at
	if w := f.window; w != nil {
		if c.Congestion != "fixed" && !isScript(c.Congestion) {
			d.bad(w, "a window is fixed with cc: fixed alone, or a script's conn.fixed_window",
				"cc: fixed, or no window")
		}
		m, ok := d.quantity(w, "a fixed window", packetCount, dataSize, pureNumber)
		if ok {
			if m.of != dataSize {
				m.value *= float64(f.MSS)
			}
			if m.value < 1 || m.value > tcp.MaxBuffer {
				d.bad(w, w.text+" is out of range", "a fixed window up to 1GiB")
			} else {
				c.FixedWindow = int(math.Round(m.value))
			}
		}
	} else if c.Congestion == "fixed" {
		d.bad(n.get("cc"), "a fixed window without its size", "window: 20pkt")
	}
	if (f.cubic != congestion.Cubic{}) {
		c.Algorithms = map[string]congestion.Make{"cubic": f.cubic.New}
		if c.Congestion != "cubic" {
			d.bad(firstOf(n, "fast_convergence", "reno_friendly", "hystart"),
				"a part of CUBIC is off with another congestion control", "cc: cubic")
		}
	}
	if c.RTOMax < c.RTOMin {
		d.bad(firstOf(n, "rto_max", "rto_min"), fmt.Sprintf("rto_max %v is below rto_min %v",
			c.RTOMax, c.RTOMin), "")
	}
	if c.RTOInitial == 0 {
		c.RTOInitial = min(max(time.Second, c.RTOMin), c.RTOMax)
	}
	if c.DelayedAck == 0 {
		const part, most = 5, 40 * time.Millisecond
		c.DelayedAck = min(c.RTOMin/part, most) // as internal/tcp has it
	}
	if d.mtu < minMSS+tcpIPHeaders {
		d.bad(n, fmt.Sprintf("an MTU of %d has no room for TCP", d.mtu),
			fmt.Sprintf("mtu: %d or more", minMSS+tcpIPHeaders))
	}
}

// firstOf returns the first of the keys that the file has, or the mapping.
func firstOf(n *node, keys ...string) *node {
	for _, k := range keys {
		if v := n.get(k); v != nil {
			return v
		}
	}
	return n
}
