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

// settings are in the order in which they are shown.
var settings = []setting{
	named("tcp.congestion", "congestion control of new connections: "+
		strings.Join(tcp.Algorithms(), ", "), tcp.Algorithms(),
		func(k *node.Knobs) *string { return &k.Recovery.Congestion }),
	named("tcp.recovery", "loss recovery of new connections: "+
		strings.Join(tcp.Recoveries(), ", "), tcp.Recoveries(),
		func(k *node.Knobs) *string { return &k.Recovery.Strategy }),
	toggle("tcp.nagle", "on: small segments wait while data is unacknowledged (RFC 9293 §3.7.4)",
		false, func(k *node.Knobs) *bool { return &k.NoDelay }),
	toggle("tcp.pacing", "on: new connections spread their window over the round trip",
		true, func(k *node.Knobs) *bool { return &k.Recovery.Pacing }),
	named("tcp.mtuprobing", "find a path's MTU by probes (RFC 4821): off, blackhole when full "+
		"segments vanish, or on from the start", []string{"blackhole", "off", "on"},
		func(k *node.Knobs) *string { return &k.MTUProbing }),
	toggle("tcp.options", "off: new connections send plain headers, as old nodes need them",
		false, func(k *node.Knobs) *bool { return &k.OptionsOff }),
	toggle("tcp.rst", "off: send no resets, which some old nodes do not survive",
		false, func(k *node.Knobs) *bool { return &k.NoResets }),
	toggle("tcp.timestamps", "on: offer and accept timestamps (RFC 7323 §3)",
		false, func(k *node.Knobs) *bool { return &k.NoTimestamps }),
	toggle("tcp.sack", "on: offer and accept selective acknowledgments (RFC 2018)",
		false, func(k *node.Knobs) *bool { return &k.NoSACK }),
	mode("tcp.ecn", "explicit congestion notification (RFC 3168): on asks for it, "+
		"passive agrees when asked, off does neither; dctcp asks, and reports marks as RFC "+
		"8257 has it, which both ends must do", "on, passive, off or dctcp",
		tcp.ParseECNMode, func(k *node.Knobs) *tcp.ECNMode { return &k.ECN }),
	mode("tcp.syncookies", "SYNs answered without keeping them (RFC 4987 §3.6): auto "+
		"when a listener's SYN queue is full, always, off", "auto, always or off",
		tcp.ParseCookieMode, func(k *node.Knobs) *tcp.CookieMode { return &k.SynCookies }),
	toggle("tcp.windowscale", "on: offer and accept scaled windows (RFC 7323 §2)",
		false, func(k *node.Knobs) *bool { return &k.NoWindowScale }),
	number("tcp.initialwindow", "the first congestion window, in segments (RFC 6928)",
		func(k *node.Knobs) *int { return &k.Recovery.InitialWindow }),
	number("tcp.fixedwindow", "the window of the algorithm fixed, in bytes; 0: the first window",
		func(k *node.Knobs) *int { return &k.Recovery.FixedWindow }),
	period("tcp.rtomin", "the least retransmission time-out (RFC 6298 §2.4)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOMin }),
	period("tcp.rtomax", "the greatest retransmission time-out (RFC 6298 §2.5)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOMax }),
	period("tcp.rtoinitial", "the time-out before the first measurement (RFC 6298 §2.1)",
		func(k *node.Knobs) *time.Duration { return &k.Recovery.RTOInitial }),
	period("tcp.delayedack", "how long an acknowledgment waits for company (RFC 9293 §3.8.6.3)",
		func(k *node.Knobs) *time.Duration { return &k.DelayedAck }),
	{
		key: "tcp.recorder", doc: "the last segments of each connection that are kept, for trace " +
			"to begin with what was before it; 0: none",
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
		key: "icmp.rate", doc: "ICMP errors a second in the long run (RFC 1812 §4.3.2.8); " +
			"off: as many as there is reason for",
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
	number("icmp.burst", "ICMP errors that may leave at once",
		func(k *node.Knobs) *int { return &k.Stack.ICMP.Errors.Burst }),
	toggle("icmp.errors", "off: send no ICMP errors, which some old nodes do not survive",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoErrors }),
	toggle("icmp.echo", "on: answer pings (RFC 1122 §3.2.2.6)",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoEcho }),
	toggle("icmp.echobroadcast", "on: answer pings to all on a link, or to a group, too",
		true, func(k *node.Knobs) *bool { return &k.Stack.ICMP.EchoBroadcast }),
	toggle("icmp.timestamp", "on: answer timestamp requests (RFC 1122 §3.2.2.8)",
		false, func(k *node.Knobs) *bool { return &k.Stack.ICMP.NoTimestamp }),
	mode("ip.reversepath", "what a packet's source needs (RFC 3704 §2): off nothing, "+
		"loose a route, strict one that leads out where the packet came in",
		"off, loose or strict", func(v string) (stack.ReversePath, bool) {
			m, ok := stack.ParseReversePath(v)
			return m, ok && v != ""
		}, func(k *node.Knobs) *stack.ReversePath { return &k.Stack.IP.ReversePath }),
	toggle("ip.directedbroadcast", "on: a router passes on what is for all on a link of its own "+
		"(RFC 2644 §2)",
		true, func(k *node.Knobs) *bool { return &k.Stack.IP.DirectedBroadcast }),
	period("ip.reassemblytimeout", "how long the rest of a datagram is waited for that comes in "+
		"fragments (RFC 791 §3.2, RFC 1122 §3.3.2)",
		func(k *node.Knobs) *time.Duration { return &k.Stack.IP.Reassembly.Timeout }),
	number("ip.reassemblybytes", "the memory for datagrams that come in fragments",
		func(k *node.Knobs) *int { return &k.Stack.IP.Reassembly.MaxBytes }),
	ripTime("rip.periodic", "time between full updates (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Periodic }),
	ripTime("rip.offset", "how far chance moves each of them; 0s: not",
		func(t *rip.Timers) *time.Duration { return &t.PeriodicOffset }),
	ripTime("rip.timeout", "how long a route lives that nobody refreshes (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Timeout }),
	ripTime("rip.garbage", "how long a dead route is still announced (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Garbage }),
	ripTime("rip.triggermin", "the least that news waits behind news (RFC 2453 §3.10.1)",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMin }),
	ripTime("rip.triggermax", "the most that it waits",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMax }),
	ripTime("rip.holddown", "how long a lost prefix is not believed in again; 0s: at once",
		func(t *rip.Timers) *time.Duration { return &t.HoldDown }),
	ripTime("rip.askafter", "how long after a loss neighbours are asked for a way; 0s: never",
		func(t *rip.Timers) *time.Duration { return &t.AskAfter }),
	{
		key: "log.level", doc: "what a node without a shell logs: debug, info, warn, error",
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

// bad is the error of a value that the setting does not take.
func bad(value, want string) error {
	return fmt.Errorf("%w: %q: want %s", control.ErrUsage, value, want)
}

// named is a setting whose words the stack judges.
func named(key, doc string, values []string, field func(*node.Knobs) *string) setting {
	return setting{
		key: key, doc: doc, values: values,
		read:  func(k *node.Knobs) string { return *field(k) },
		write: func(k *node.Knobs, v string) error { *field(k) = v; return nil },
	}
}

// mode is a setting with one of the words that want lists.
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

// toggle is a switch. It is on when the field equals on.
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

// number is a setting with a whole number.
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
		return bad(v, "a whole number")
	}
	*to = n
	return nil
}

// period is a setting with a time.
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

// ripTime is a timer of RIP; 0s turns it off. On a node without RIP it reads 0s and cannot be
// written.
func ripTime(key, doc string, field func(*rip.Timers) *time.Duration) setting {
	return setting{
		key: key, doc: doc,
		read: func(k *node.Knobs) string { return max(*field(&k.RIP), 0).String() },
		write: func(k *node.Knobs, v string) error {
			if k.RIP == (rip.Timers{}) {
				return fmt.Errorf("%w: this node does not speak RIP", control.ErrUsage)
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
