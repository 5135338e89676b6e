package plan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tcpKeys are what a flow of TCP has.
var tcpKeys = []key[flowOf]{
	{"cc", "cubic", func(d *decoder, n *node, f *flowOf) { d.algorithm(n, f) }},
	{"params", "", checkParams},
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
	if w, ok := d.word(n, "a use of ECN", []string{"on", "off", "passive", "dctcp"}); ok {
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
