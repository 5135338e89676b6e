package settings

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// internet are the settings of IP and ICMP.
var internet = []Setting{
	{
		key: "icmp.rate", doc: "ICMP errors a second in the long run (RFC 1812 §4.3.2.8); " +
			"off: as many as there is reason for",
		read: func(k *Knobs) string {
			if rate := k.Stack.ICMP.Errors.Rate; rate >= 0 {
				return strconv.Itoa(rate)
			}
			return "off"
		},
		write: func(k *Knobs, v string) error {
			rate := &k.Stack.ICMP.Errors.Rate
			if v == "off" {
				*rate = -1
				return nil
			}
			return parseCount(v, rate)
		},
	},
	count("icmp.burst", "ICMP errors that may leave at once",
		func(k *Knobs) *int { return &k.Stack.ICMP.Errors.Burst }),
	{
		key: "icmp.errors", doc: "off: send no ICMP errors, which some old nodes do not survive",
		read:  func(k *Knobs) string { return onOff(!k.Stack.ICMP.NoErrors) },
		write: func(k *Knobs, v string) error { return parseOff(v, &k.Stack.ICMP.NoErrors) },
	},
	{
		key: "icmp.echo", doc: "on: answer pings (RFC 1122 §3.2.2.6)",
		read:   func(k *Knobs) string { return onOff(!k.Stack.ICMP.NoEcho) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.Stack.ICMP.NoEcho) },
	},
	{
		key: "icmp.echobroadcast", doc: "on: answer pings to all on a link, or to a group, too",
		read:   func(k *Knobs) string { return onOff(k.Stack.ICMP.EchoBroadcast) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOn(v, &k.Stack.ICMP.EchoBroadcast) },
	},
	{
		key: "icmp.timestamp", doc: "on: answer timestamp requests (RFC 1122 §3.2.2.8)",
		read:   func(k *Knobs) string { return onOff(!k.Stack.ICMP.NoTimestamp) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.Stack.ICMP.NoTimestamp) },
	},
	{
		key: "ip.reversepath", doc: "what a packet's source needs (RFC 3704 §2): off nothing, " +
			"loose a route, strict one that leads out where the packet came in",
		values: []string{"loose", "off", "strict"},
		read:   func(k *Knobs) string { return k.Stack.IP.ReversePath.String() },
		write: func(k *Knobs, v string) error {
			mode, ok := stack.ParseReversePath(v)
			if !ok || v == "" {
				return fmt.Errorf("%w: %q: want off, loose or strict", control.ErrUsage, v)
			}
			k.Stack.IP.ReversePath = mode
			return nil
		},
	},
	{
		key: "ip.directedbroadcast", doc: "on: a router passes on what is for all on a link of " +
			"its own (RFC 2644 §2)",
		read:   func(k *Knobs) string { return onOff(k.Stack.IP.DirectedBroadcast) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOn(v, &k.Stack.IP.DirectedBroadcast) },
	},
	period("ip.reassemblytimeout", "how long the rest of a datagram is waited for that comes in "+
		"fragments (RFC 791 §3.2, RFC 1122 §3.3.2)",
		func(k *Knobs) *time.Duration { return &k.Stack.IP.Reassembly.Timeout }),
	count("ip.reassemblybytes", "the memory for datagrams that come in fragments",
		func(k *Knobs) *int { return &k.Stack.IP.Reassembly.MaxBytes }),
}
