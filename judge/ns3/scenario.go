package ns3

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// UnableError names the part of an experiment that has no counterpart in ns-3.
type UnableError struct {
	What string // such as "jitter"
}

// Error implements error.
func (u *UnableError) Error() string { return "ns-3 cannot simulate " + u.What }

// algorithms maps congestion controls to ns-3's names.
var algorithms = map[string]string{
	"reno": "TcpLinuxReno", "cubic": "TcpCubic", "bbr": "TcpBbr",
}

// Deviations returns the names of the deviations of ns-3's TCP from an RFC or a draft that
// Options.Without can remove. docs/ns3.md explains each; driver/driver.cc removes it.
func Deviations() []string {
	return []string{"end-growth", "double-count", "early-timeouts", "stale-samples"}
}

// Able returns an UnableError if a part of an experiment has no counterpart in ns-3.
func Able(x *plan.Experiment) error {
	_, err := scenario(x)
	return err
}

// Sizes in bytes.
const (
	tcpIPHeaders = 40
	timestamps   = 12 // length of the option, which ns-3's segment size does not include
)

// usualPackets limits a link without a queue of its own, as in internal/netem.
const usualPackets = 65536

// bufferSize replaces buffers that grow on demand: ns-3's buffers have a fixed size.
const bufferSize = 32 << 20

// scenario encodes an experiment for the driver.
func scenario(x *plan.Experiment) (string, error) {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s %v\n", key, value) }
	line("duration", x.Duration.Seconds())
	line("warmup", x.Warmup.Seconds())
	line("jitter", x.HostJitter.Seconds())
	line("mtu", x.Path.MTU)
	for _, d := range []struct {
		name string
		cfg  *netem.Config
	}{{"down.", &x.Path.Down}, {"up.", &x.Path.Up}} {
		err := direction(d.cfg, func(key string, value any) { line(d.name+key, value) })
		if err != nil {
			return "", err
		}
	}
	if x.Path.IPv6 {
		return "", &UnableError{"IPv6"}
	}
	for i := range x.Flows {
		line("flow", i)
		err := flow(x, i, func(key string, value any) { line("flow."+key, value) })
		if err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// direction encodes one direction of the bottleneck.
func direction(c *netem.Config, line func(key string, value any)) error {
	unable := func(what string) error { return &UnableError{what} }
	switch {
	case c.Policer != nil:
		return unable("a policer")
	case c.Jitter != nil || c.Reorder != (netem.Reorder{}):
		return unable("jitter or reordering")
	case c.Duplicate > 0 || c.Corrupt != (netem.Corrupt{}) || c.Truncate > 0:
		return unable("duplicated, corrupted or truncated packets")
	case c.Overhead != 0:
		return unable("a packet overhead")
	}
	line("delay", c.Delay.Seconds())
	switch l := c.Loss.(type) {
	case nil:
	case netem.UniformLoss:
		line("loss", float64(l))
	case netem.PeriodicLoss:
		if l.First != 0 && l.First != l.Every {
			return unable("a periodic loss with a given first packet")
		}
		line("every", l.Every)
	default:
		return unable("this loss model")
	}
	switch r := c.Rate.(type) {
	case nil:
		return nil
	case netem.BitsPerSecond:
		line("rate", int64(r))
	default:
		return unable("a rate that changes")
	}
	if c.Queue == nil {
		line("attribute MaxSize", fmt.Sprint(cmp.Or(c.MaxPackets, usualPackets), "p"))
		return nil
	}
	return queue(c, line)
}

// queue encodes a queue discipline and its attributes.
func queue(c *netem.Config, line func(key string, value any)) error {
	set := func(name string, value any) { line("attribute "+name, value) }
	times := func(name string, t time.Duration) {
		if t > 0 {
			set(name, fmt.Sprint(t.Seconds(), "s"))
		}
	}
	size := func(b netem.Bound, usual string) error {
		switch {
		case b.Packets > 0 && b.Bytes > 0:
			return &UnableError{"a queue with a limit of packets and one of bytes"}
		case b.Packets > 0:
			set("MaxSize", fmt.Sprint(b.Packets, "p"))
		case b.Bytes > 0:
			set("MaxSize", fmt.Sprint(b.Bytes, "B"))
		case b.Time > 0:
			set("MaxSize", fmt.Sprint(int64(b.Time.Seconds()*float64(c.Rate.MeanRate())/8), "B"))
		default:
			set("MaxSize", usual)
		}
		return nil
	}
	const most = "1000p" // Linux's default
	switch q := c.Queue.(type) {
	case netem.DropTail:
		line("disc", "ns3::FifoQueueDisc")
		return size(netem.Bound(q), "1000000p")
	case netem.CoDel:
		line("disc", "ns3::CoDelQueueDisc")
		times("Target", q.Target)
		times("Interval", q.Interval)
		set("UseEcn", q.ECN)
		return size(netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}, most)
	case netem.FQCoDel:
		line("disc", "ns3::FqCoDelQueueDisc")
		times("Target", q.Target)
		times("Interval", q.Interval)
		set("UseEcn", q.ECN)
		return size(netem.Bound{Packets: q.Packets, Bytes: q.Bytes}, "10240p")
	case netem.PIE:
		line("disc", "ns3::PieQueueDisc")
		times("QueueDelayReference", q.Target)
		times("Tupdate", q.Update)
		times("MaxBurstAllowance", q.Burst)
		set("UseEcn", q.ECN)
		set("UseDequeueRateEstimator", !q.Timestamps)
		set("UseDerandomization", true) // RFC 8033 §5.4
		return size(netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}, most)
	case netem.RED:
		return red(q, c, line, size)
	default:
		return &UnableError{"this queue"}
	}
}

func red(q netem.RED, c *netem.Config, line func(key string, value any),
	size func(netem.Bound, string) error,
) error {
	if q.Max == 0 || q.Min == 0 || q.InPackets != (q.Packets > 0) {
		return &UnableError{"RED without both thresholds in the unit of its limit"}
	}
	line("disc", "ns3::RedQueueDisc")
	line("attribute MinTh", q.Min)
	line("attribute MaxTh", q.Max)
	line("attribute LinkBandwidth", fmt.Sprint(c.Rate.MeanRate(), "bps"))
	line("attribute Gentle", !q.Abrupt)
	line("attribute UseEcn", q.ECN)
	line("attribute UseHardDrop", true)
	q = q.WithDefaults()
	// the paper's drops are at most 1/p packets apart; with Wait, they would be at least that far
	// apart
	line("attribute Wait", false)
	line("attribute LInterm", 1/q.MaxP)
	line("attribute QW", q.Weight)
	line("attribute MeanPktSize", q.Mean)
	return size(netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}, "1000p")
}

func flow(x *plan.Experiment, i int, line func(key string, value any)) error {
	f := &x.Flows[i]
	unable := func(what string) error { return &UnableError{f.Name + "'s " + what} }
	name := f.TCP.Recovery.Congestion
	switch a := &f.App; {
	case f.Protocol != plan.TCP:
		return unable("protocol " + string(f.Protocol))
	case algorithms[name] == "" || f.Script != nil:
		return unable("congestion control " + f.TCP.Recovery.Congestion)
	case a.Rate > 0 || a.On > 0 || a.Requests > 0 || a.Echo != nil || a.Objects != nil:
		return unable("application, which is not bulk")
	case f.TCP.Recovery.Strategy == "gbn":
		return unable("go-back-N recovery")
	case f.TCP.NoTimestamps || f.TCP.NoWindowScale:
		return unable("lack of timestamps or window scaling")
	case f.TCP.Recovery.Pacing:
		return unable("pacing")
	}
	line("cc", algorithms[name])
	line("start", f.Start.Seconds())
	line("stop", f.Stop.Seconds())
	line("delay", f.Delay.Seconds())
	line("upward", bit(f.Upward))
	line("sack", bit(!f.TCP.NoSACK && f.TCP.Recovery.Strategy != "newreno"))
	line("ecn", bit(f.TCP.ECN.String() == "on"))
	line("mss", min(f.MSS, x.Path.MTU-tcpIPHeaders)-timestamps)
	line("initial", f.TCP.Recovery.InitialWindow)
	line("ssthresh", f.Ssthresh)
	line("size", f.App.Size)
	if f.TCP.DelayedAck <= time.Nanosecond {
		line("delack", 1)
	} else {
		line("delack", 2)
		line("delack_timeout", f.TCP.DelayedAck.Seconds())
	}
	line("sndbuf", cmp.Or(f.TCP.Buffers.Send, bufferSize))
	line("rcvbuf", cmp.Or(f.TCP.Buffers.Recv, bufferSize))
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
