package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

func (f *flowDraft) tcpKeys() []key {
	c := &f.TCP
	return []key{
		{"cc", "cubic", f.readAlgorithm},
		{"params", "", f.checkParams},
		{"fast_convergence", "on", readInverse(&f.cubic.NoFastConvergence)},
		{"reno_friendly", "on", readInverse(&f.cubic.NoRenoFriendly)},
		{"hystart", "on", readInverse(&f.cubic.NoHyStart)},
		{"recovery", "rack", readWord("a loss recovery", recoveries, &c.Recovery.Strategy)},
		{"mss", "", f.readMSS},
		{"iw", "10", readSegments(
			"an initial window", tcp.MaxInitialWindow, &c.Recovery.InitialWindow)},
		{"ssthresh", "", unlessNone(readSegments(
			"an initial slow start threshold", tcp.MaxInitialWindow, &f.Ssthresh))},
		{"window", "", readNode(&f.window)},
		{"delayed_ack", "", f.readDelayedAck},
		{"sack", "on", readInverse(&c.NoSACK)},
		{"timestamps", "on", readInverse(&c.NoTimestamps)},
		{"window_scale", "on", readInverse(&c.NoWindowScale)},
		{"nagle", "on", readInverse(&c.NoDelay)},
		{"pacing", "off", readSwitch(&c.Recovery.Pacing)},
		{"ecn", "off", func(d *decoder, n *node) {
			words := []string{"on", "off", "passive", "dctcp"}
			if w, ok := d.word(n, "an ECN mode", words); ok {
				c.ECN, _ = tcp.ParseECNMode(w)
			}
		}},
		{"recv_buffer", "", readSize("a buffer", tcp.MinBuffer, tcp.MaxBuffer, &c.Buffers.Recv)},
		{"send_buffer", "", readSize("a buffer", tcp.MinBuffer, tcp.MaxBuffer, &c.Buffers.Send)},
		{"rto_min", "200ms", readTimeout(&c.Recovery.RTOMin)},
		{"rto_max", "120s", readTimeout(&c.Recovery.RTOMax)},
		{"rto_initial", "", readTimeout(&c.Recovery.RTOInitial)},
		{"mtu_probing", "off", readWord("a path MTU discovery method", []string{
			tcp.MTUProbingOff, tcp.MTUProbingBlackHole, tcp.MTUProbingOn,
		}, &c.MTUProbing)},
	}
}

var recoveries = []string{"gbn", "newreno", "sack", "rack"}

const maxTimeout = 10 * time.Minute

func (f *flowDraft) readMSS(d *decoder, n *node) {
	readSize("the largest segment", tcp.MinMSS, maxMTU-d.headers, &f.MSS)(d, n)
	switch {
	case f.MSS > d.mtu-d.headers:
		d.bad(n, fmt.Sprintf("segments of %d bytes do not fit into an MTU of %d", f.MSS, d.mtu),
			fmt.Sprintf("%d bytes at most, or a larger mtu", d.mtu-d.headers))
	case f.MSS > 0 && f.MSS+d.headers < d.leastMTU:
		d.bad(n, fmt.Sprintf("segments of %d bytes need an MTU below the minimum of IPv6", f.MSS),
			fmt.Sprintf("%d bytes or more, or family: 4", d.leastMTU-d.headers))
	}
}

func readTimeout(to *time.Duration) reading {
	return readTimeFrom(time.Millisecond, "a timeout", maxTimeout, to)
}

// readDelayedAck reads the delay of an acknowledgment. "off" is not stored as zero, because zero
// stands for the engine's default.
func (f *flowDraft) readDelayedAck(d *decoder, n *node) {
	if n.plain("off") {
		f.TCP.DelayedAck = time.Nanosecond
		return
	}
	readTimeFrom(time.Nanosecond, "the delay of an acknowledgment",
		tcp.MaxDelayedAck-time.Nanosecond, &f.TCP.DelayedAck)(d, n)
}

// finishTCP checks keys that depend on each other.
func (f *flowDraft) finishTCP(d *decoder) {
	f.MSS = cmp.Or(f.MSS, d.mtu-d.headers)
	c := &f.TCP
	n := f.at
	if w := f.window; w != nil {
		if c.Recovery.Congestion != "fixed" && !isScript(c.Recovery.Congestion) {
			d.bad(w, "this congestion control does not use a fixed window",
				"cc: fixed, or a script that sets conn.fixed_window")
		}
		m, ok := d.quantity(w, "a fixed window", result.PacketCount, result.Bytes, result.Pure)
		if ok {
			if m.of != result.Bytes {
				m.value *= float64(f.MSS)
			}
			if m.value < 1 || m.value > tcp.MaxBuffer {
				d.bad(w, w.text+" is out of range", "a fixed window up to 1GiB")
			} else {
				c.Recovery.FixedWindow = int(math.Round(m.value))
			}
		}
	} else if c.Recovery.Congestion == "fixed" {
		d.bad(n.get("cc"), "a fixed window needs a size", "window: 20pkt")
	}
	if (f.cubic != congestion.Cubic{}) {
		c.Algorithms = map[string]congestion.Make{"cubic": f.cubic.New}
		if c.Recovery.Congestion != "cubic" {
			d.bad(firstOf(n, "fast_convergence", "reno_friendly", "hystart"),
				"fast_convergence, reno_friendly and hystart are settings of CUBIC", "cc: cubic")
		}
	}
	if c.Recovery.RTOMax < c.Recovery.RTOMin {
		d.bad(firstOf(n, "rto_max", "rto_min"), fmt.Sprintf("rto_max %v is below rto_min %v",
			c.Recovery.RTOMax, c.Recovery.RTOMin), "")
	}
	c.SetTimes()
	if d.mtu < tcp.MinMSS+d.headers {
		d.bad(n, fmt.Sprintf("an MTU of %d is too small for TCP", d.mtu),
			fmt.Sprintf("mtu: %d or more", tcp.MinMSS+d.headers))
	}
}

// firstOf returns the value of the first of these keys that the mapping has, or the mapping.
func firstOf(n *node, keys ...string) *node {
	for _, k := range keys {
		if v := n.get(k); v != nil {
			return v
		}
	}
	return n
}
