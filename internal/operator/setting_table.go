package operator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// settings lists the settings in the order of output.
var settings = []setting{
	named("tcp.congestion", "congestion control of new connections: "+
		strings.Join(tcp.Algorithms(), ", "), tcp.Algorithms(),
		func(k *node.Knobs) *string { return &k.Recovery.Congestion }),
	named("tcp.recovery", "loss recovery of new connections: "+
		strings.Join(tcp.Recoveries(), ", "), tcp.Recoveries(),
		func(k *node.Knobs) *string { return &k.Recovery.Strategy }),
	toggle("tcp.nagle", "on: delay small segments while data is unacknowledged (RFC 9293 §3.7.4)",
		false, func(k *node.Knobs) *bool { return &k.NoDelay }),
	toggle("tcp.pacing", "on: new connections spread each window over the round-trip time",
		true, func(k *node.Knobs) *bool { return &k.Recovery.Pacing }),
	named("tcp.mtuprobing", "find a path's MTU by probes (RFC 4821): off, blackhole (after the "+
		"loss of full segments), or on (from the start)", []string{"blackhole", "off", "on"},
		func(k *node.Knobs) *string { return &k.MTUProbing }),
	toggle("tcp.options", "off: new connections send no TCP options, for old nodes",
		false, func(k *node.Knobs) *bool { return &k.OptionsOff }),
	toggle("tcp.rst", "off: send no resets, which some old nodes cannot handle",
		false, func(k *node.Knobs) *bool { return &k.NoResets }),
	toggle("tcp.timestamps", "on: offer and accept timestamps (RFC 7323 §3)",
		false, func(k *node.Knobs) *bool { return &k.NoTimestamps }),
	toggle("tcp.sack", "on: offer and accept selective acknowledgments (RFC 2018)",
		false, func(k *node.Knobs) *bool { return &k.NoSACK }),
	mode("tcp.ecn", "explicit congestion notification (RFC 3168): on offers it, "+
		"passive accepts it, off does neither; dctcp offers it and reports marks as in RFC "+
		"8257, which both ends must do", "on, passive, off or dctcp",
		tcp.ParseECNMode, func(k *node.Knobs) *tcp.ECNMode { return &k.ECN }),
	mode("tcp.syncookies", "answer SYNs without storing them (RFC 4987 §3.6): auto "+
		"(if a listener's SYN queue is full), always, off", "auto, always or off",
		tcp.ParseCookieMode, func(k *node.Knobs) *tcp.CookieMode { return &k.SynCookies }),
	toggle("tcp.windowscale", "on: offer and accept scaled windows (RFC 7323 §2)",
		false, func(k *node.Knobs) *bool { return &k.NoWindowScale }),
	number("tcp.initialwindow", "initial congestion window in segments (RFC 6928)",
		func(k *node.Knobs) *int { return &k.Recovery.InitialWindow }),
	number("tcp.fixedwindow",
		"window of congestion control `fixed` in bytes; 0: the initial window",
		func(k *node.Knobs) *int { return &k.Recovery.FixedWindow }),
	period("tcp.rtomin", "minimum retransmission timeout (RFC 6298 §2.4)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOMin }),
	period("tcp.rtomax", "maximum retransmission timeout (RFC 6298 §2.5)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOMax }),
	period("tcp.rtoinitial", "retransmission timeout before the first RTT sample (RFC 6298 §2.1)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOInitial }),
	period("tcp.delayedack", "maximum delay of an acknowledgment (RFC 9293 §3.8.6.3)",
		func(k *node.Knobs) *time.Duration { return &k.DelayedAck }),
	{
		key: "tcp.recorder", doc: "number of recent segments kept for each connection, so that " +
			"trace can show them; 0: none",
		read: func(k *node.Knobs) string { return strconv.Itoa(k.Recorded) },
		write: func(k *node.Knobs, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || n > node.MaxRecorded {
				return bad(v, fmt.Sprintf("0 to %d segments", node.MaxRecorded))
			}
			k.Recorded = n
			return nil
		},
	},
	{
		key: "icmp.rate", doc: "average limit of ICMP errors a second (RFC 1812 §4.3.2.8); " +
			"off: no limit",
		read: func(k *node.Knobs) string {
			if rate := k.Stack.ICMP.Errors.Rate; rate >= 0 {
				return strconv.Itoa(rate)
			}
			return "off"
		},
		write: func(k *node.Knobs, v string) error {
			rate := &k.Stack.ICMP.Errors.Rate
			if v == "off" {
				*rate = -1
				return nil
			}
			return parseCount(v, rate)
		},
	},
	number("icmp.burst", "ICMP errors that may be sent in a burst",
		func(k *node.Knobs) *int { return &k.Stack.ICMP.Errors.Burst }),
	toggle("icmp.errors", "off: send no ICMP errors, for old nodes that cannot handle them",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoErrors }),
	toggle("icmp.echo", "on: answer pings (RFC 1122 §3.2.2.6)",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoEcho }),
	toggle("icmp.echobroadcast", "on: also answer broadcast and multicast pings",
		true, func(k *node.Knobs) *bool { return &k.Stack.ICMP.EchoBroadcast }),
	toggle("icmp.timestamp", "on: answer timestamp requests (RFC 1122 §3.2.2.8)",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoTimestamp }),
	mode("ip.reversepath", "check of a packet's source (RFC 3704 §2): off, loose (there must be "+
		"a route to it), strict (by the interface on which the packet arrived)",
		"off, loose or strict", func(v string) (stack.ReversePath, bool) {
			m, ok := stack.ParseReversePath(v)
			return m, ok && v != ""
		}, func(k *node.Knobs) *stack.ReversePath { return &k.Stack.IP.ReversePath }),
	toggle("ip.directedbroadcast", "on: a router forwards broadcasts to its own links "+
		"(RFC 2644 §2)",
		true, func(k *node.Knobs) *bool { return &k.Stack.IP.DirectedBroadcast }),
	period("ip.reassemblytimeout", "how long to wait for a datagram's missing fragments "+
		"(RFC 791 §3.2, RFC 1122 §3.3.2)",
		func(k *node.Knobs) *time.Duration { return &k.Stack.IP.Reassembly.Timeout }),
	period("ip.reassemblytimeout6", "the same for IPv6 (RFC 8200 §4.5)",
		func(k *node.Knobs) *time.Duration { return &k.Stack.IP.Reassembly.Timeout6 }),
	number("ip.reassemblybytes", "memory for the fragments of incomplete datagrams in bytes",
		func(k *node.Knobs) *int { return &k.Stack.IP.Reassembly.MaxBytes }),
	ripTime("rip.periodic", "time between full updates of RIP and RIPng (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Periodic }),
	ripTime("rip.offset", "random offset of each full update; 0s: none",
		func(t *rip.Timers) *time.Duration { return &t.PeriodicOffset }),
	ripTime("rip.timeout", "time until a route that is not refreshed expires (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Timeout }),
	ripTime("rip.garbage", "how long an expired route is announced (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Garbage }),
	ripTime("rip.triggermin", "minimum time between triggered updates (RFC 2453 §3.10.1)",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMin }),
	ripTime("rip.triggermax", "maximum time between triggered updates",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMax }),
	ripTime("rip.holddown", "how long new routes to a lost prefix are ignored; 0s: off",
		func(t *rip.Timers) *time.Duration { return &t.HoldDown }),
	ripTime("rip.askafter", "time from losing a route to asking neighbors for another; 0s: never",
		func(t *rip.Timers) *time.Duration { return &t.AskAfter }),
	{
		key: "log.level", doc: "minimum level of log records: debug, info, warn, error",
		values: []string{"debug", "error", "info", "warn"},
		read:   func(k *node.Knobs) string { return strings.ToLower(k.Log.String()) },
		write: func(k *node.Knobs, v string) error {
			if err := k.Log.UnmarshalText([]byte(v)); err != nil {
				return bad(v, "debug, info, warn or error")
			}
			return nil
		},
	},
}

func bad(value, want string) error {
	return fmt.Errorf("%w: %q: must be %s", control.ErrUsage, value, want)
}

// named returns a setting whose keywords the stack checks.
func named(key, doc string, values []string, field func(*node.Knobs) *string) setting {
	return setting{
		key: key, doc: doc, values: values,
		read:  func(k *node.Knobs) string { return *field(k) },
		write: func(k *node.Knobs, v string) error { *field(k) = v; return nil },
	}
}

// mode returns a setting with one of the keywords in want.
func mode[M fmt.Stringer](
	key, doc, want string, parse func(string) (M, bool), field func(*node.Knobs) *M,
) setting {
	values := strings.Split(strings.ReplaceAll(want, " or ", ", "), ", ")
	slices.Sort(values)
	return setting{
		key: key, doc: doc, values: values,
		read: func(k *node.Knobs) string { return (*field(k)).String() },
		write: func(k *node.Knobs, v string) error {
			m, ok := parse(v)
			if !ok {
				return bad(v, want)
			}
			*field(k) = m
			return nil
		},
	}
}

// toggle returns a switch. It is on if the field equals on.
func toggle(key, doc string, on bool, field func(*node.Knobs) *bool) setting {
	return setting{
		key: key, doc: doc, values: []string{"off", "on"},
		read: func(k *node.Knobs) string {
			if *field(k) == on {
				return "on"
			}
			return "off"
		},
		write: func(k *node.Knobs, v string) error {
			if v != "on" && v != "off" {
				return bad(v, "on or off")
			}
			*field(k) = (v == "on") == on
			return nil
		},
	}
}

func number(key, doc string, field func(*node.Knobs) *int) setting {
	return setting{
		key: key, doc: doc,
		read:  func(k *node.Knobs) string { return strconv.Itoa(*field(k)) },
		write: func(k *node.Knobs, v string) error { return parseCount(v, field(k)) },
	}
}

func parseCount(v string, to *int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return bad(v, "a whole number, 0 or more")
	}
	*to = n
	return nil
}

func period(key, doc string, field func(*node.Knobs) *time.Duration) setting {
	return setting{
		key: key, doc: doc,
		read:  func(k *node.Knobs) string { return field(k).String() },
		write: func(k *node.Knobs, v string) error { return parsePeriod(v, "200ms", field(k)) },
	}
}

func parsePeriod(v, example string, to *time.Duration) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return bad(v, "a time such as "+example)
	}
	*to = d
	return nil
}

// ripTime returns a timer of RIP. The value 0s turns the timer off. On a node without RIP the timer
// reads 0s and cannot be set.
func ripTime(key, doc string, field func(*rip.Timers) *time.Duration) setting {
	return setting{
		key: key, doc: doc,
		read: func(k *node.Knobs) string { return max(*field(&k.RIP), 0).String() },
		write: func(k *node.Knobs, v string) error {
			if k.RIP == (rip.Timers{}) {
				return fmt.Errorf("%w: this node does not speak RIP: add `routing rip` to its "+
					"file and restart it", control.ErrUsage)
			}
			d := field(&k.RIP)
			if err := parsePeriod(v, "30s", d); err != nil {
				return err
			}
			if *d == 0 {
				*d = -1
			}
			return nil
		},
	}
}
