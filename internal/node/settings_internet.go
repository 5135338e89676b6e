package node

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// internet are the settings of IP and ICMP.
var internet = []setting{
	{
		key: "icmp.rate", doc: "ICMP errors a second in the long run (RFC 1812 §4.3.2.8); " +
			"off: as many as there is reason for",
		read: func(k *knobs) string {
			if rate := k.stack.ICMP.Errors.Rate; rate >= 0 {
				return strconv.Itoa(rate)
			}
			return "off"
		},
		write: func(k *knobs, v string) error {
			rate := &k.stack.ICMP.Errors.Rate
			if v == "off" {
				*rate = -1
				return nil
			}
			return parseCount(v, rate)
		},
	},
	count("icmp.burst", "ICMP errors that may leave at once",
		func(k *knobs) *int { return &k.stack.ICMP.Errors.Burst }),
	{
		key: "icmp.echo", doc: "on: answer pings (RFC 1122 §3.2.2.6)",
		read:  func(k *knobs) string { return onOff(!k.stack.ICMP.NoEcho) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.stack.ICMP.NoEcho) },
	},
	{
		key: "icmp.echobroadcast", doc: "on: answer pings to all on a link, or to a group, too",
		read:  func(k *knobs) string { return onOff(k.stack.ICMP.EchoBroadcast) },
		write: func(k *knobs, v string) error { return parseOn(v, &k.stack.ICMP.EchoBroadcast) },
	},
	{
		key: "icmp.timestamp", doc: "on: answer timestamp requests (RFC 1122 §3.2.2.8)",
		read:  func(k *knobs) string { return onOff(!k.stack.ICMP.NoTimestamp) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.stack.ICMP.NoTimestamp) },
	},
	{
		key: "ip.reversepath", doc: "what a packet's source needs (RFC 3704 §2): off nothing, " +
			"loose a route, strict one that leads out where the packet came in",
		read: func(k *knobs) string { return k.stack.IP.ReversePath.String() },
		write: func(k *knobs, v string) error {
			mode, ok := stack.ParseReversePath(v)
			if !ok || v == "" {
				return fmt.Errorf("%w: %q: want off, loose or strict", control.ErrUsage, v)
			}
			k.stack.IP.ReversePath = mode
			return nil
		},
	},
	{
		key: "ip.directedbroadcast", doc: "on: a router passes on what is for all on a link of " +
			"its own (RFC 2644 §2)",
		read:  func(k *knobs) string { return onOff(k.stack.IP.DirectedBroadcast) },
		write: func(k *knobs, v string) error { return parseOn(v, &k.stack.IP.DirectedBroadcast) },
	},
	period("ip.reassemblytimeout", "how long the rest of a datagram is waited for that comes in "+
		"fragments (RFC 791 §3.2, RFC 1122 §3.3.2)",
		func(k *knobs) *time.Duration { return &k.stack.IP.Reassembly.Timeout }),
	count("ip.reassemblybytes", "the memory for datagrams that come in fragments",
		func(k *knobs) *int { return &k.stack.IP.Reassembly.MaxBytes }),
}

// internetKnobs is how a file sets them.
func internetKnobs(c *lnx.Config) (k stack.Knobs) {
	k.ICMP = stack.ICMPKnobs{
		Errors: icmp.Limit{Rate: c.ICMP.Rate, Burst: c.ICMP.Burst},
		NoEcho: c.ICMP.NoEcho, NoTimestamp: c.ICMP.NoTimestamp,
		EchoBroadcast: c.ICMP.EchoBroadcast,
	}
	k.IP.DirectedBroadcast = c.IP.DirectedBroadcast
	k.IP.Reassembly.Timeout = c.IP.ReassemblyTimeout
	k.IP.Reassembly.MaxBytes = c.IP.ReassemblyBytes
	k.IP.ReversePath, _ = stack.ParseReversePath(c.IP.ReversePath) // lnx knows the same modes
	return k
}
