package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

func (f *flowOf) tcpKeys() []key {
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
			if w, ok := d.word(n, "a use of ECN", words); ok {
				c.ECN, _ = tcp.ParseECNMode(w)
			}
		}},
		{"recv_buffer", "", readSize("a buffer", tcp.MinBuffer, tcp.MaxBuffer, &c.Buffers.Recv)},
		{"send_buffer", "", readSize("a buffer", tcp.MinBuffer, tcp.MaxBuffer, &c.Buffers.Send)},
		{"rto_min", "200ms", readTimeout(&c.Recovery.RTOMin)},
		{"rto_max", "120s", readTimeout(&c.Recovery.RTOMax)},
		{"rto_initial", "", readTimeout(&c.Recovery.RTOInitial)},
		{"mtu_probing", "off", readWord("a way to find the MTU", []string{
			tcp.MTUProbingOff, tcp.MTUProbingBlackHole, tcp.MTUProbingOn,
		}, &c.MTUProbing)},
	}
}

var recoveries = []string{"gbn", "newreno", "sack", "rack"}

const (
	tcpIPHeaders = 40
	maxTimeout   = 10 * time.Minute
)

// readMSS reads the largest segment, which the path's MTU has to have room for.
func (f *flowOf) readMSS(d *decoder, n *node) {
	readSize("the largest segment", tcp.MinMSS, maxMTU-tcpIPHeaders, &f.MSS)(d, n)
	if f.MSS > d.mtu-tcpIPHeaders {
		d.bad(n, fmt.Sprintf("segments of %d bytes do not fit into an MTU of %d", f.MSS, d.mtu),
			fmt.Sprintf("%d bytes at most, or a larger mtu", d.mtu-tcpIPHeaders))
	}
}

func readTimeout(to *time.Duration) reading {
	return readTimeFrom(time.Millisecond, "a time-out", maxTimeout, to)
}

// readDelayedAck reads how long an acknowledgment waits; off: not at all, which the engine has no
// zero for.
func (f *flowOf) readDelayedAck(d *decoder, n *node) {
	if n.plain("off") {
		f.TCP.DelayedAck = time.Nanosecond
		return
	}
	readTimeFrom(time.Nanosecond, "how long an acknowledgment waits",
		tcp.MaxDelayedAck-time.Nanosecond, &f.TCP.DelayedAck)(d, n)
}

// finishTCP checks what keys say of each other.
func (f *flowOf) finishTCP(d *decoder) {
	f.MSS = cmp.Or(f.MSS, d.mtu-tcpIPHeaders)
	c := &f.TCP
	n := f.at
	if w := f.window; w != nil {
		if c.Recovery.Congestion != "fixed" && !isScript(c.Recovery.Congestion) {
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
				c.Recovery.FixedWindow = int(math.Round(m.value))
			}
		}
	} else if c.Recovery.Congestion == "fixed" {
		d.bad(n.get("cc"), "a fixed window without its size", "window: 20pkt")
	}
	if (f.cubic != congestion.Cubic{}) {
		c.Algorithms = map[string]congestion.Make{"cubic": f.cubic.New}
		if c.Recovery.Congestion != "cubic" {
			d.bad(firstOf(n, "fast_convergence", "reno_friendly", "hystart"),
				"a part of CUBIC is off with another congestion control", "cc: cubic")
		}
	}
	if c.Recovery.RTOMax < c.Recovery.RTOMin {
		d.bad(firstOf(n, "rto_max", "rto_min"), fmt.Sprintf("rto_max %v is below rto_min %v",
			c.Recovery.RTOMax, c.Recovery.RTOMin), "")
	}
	c.SetTimes()
	if d.mtu < tcp.MinMSS+tcpIPHeaders {
		d.bad(n, fmt.Sprintf("an MTU of %d has no room for TCP", d.mtu),
			fmt.Sprintf("mtu: %d or more", tcp.MinMSS+tcpIPHeaders))
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
