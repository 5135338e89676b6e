package lnx

import (
	"strconv"
	"time"
)

// TCP is how TCP behaves.
type TCP struct {
	// RTOMin and RTOMax bound the retransmission timer; 1 ms and 5 s unless the
	// file sets them or names a profile.
	RTOMin, RTOMax time.Duration
	// OptionsOff sends plain headers from the first SYN on.
	OptionsOff bool
	// NoResets sends no segment with RST.
	NoResets bool
	// Profile names a set of defaults: "004" or none.
	Profile string
}

// ICMP is what ICMP answers. Zero is what a good host does.
type ICMP struct {
	// Rate is how many errors may leave a second; 0: 1000. Negative: no limit.
	Rate int
	// Burst is how many may leave at once; 0: 50.
	Burst int
	// NoErrors sends no error messages.
	NoErrors bool
	// NoEcho leaves pings unanswered, and NoTimestamp timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast answers pings to all on a link as well.
	EchoBroadcast bool
}

// IP is which packets IP takes.
type IP struct {
	// ReversePath is what a packet's source needs: "loose" a route, "strict" one that
	// leads out where the packet came in; empty: nothing.
	ReversePath string
	// DirectedBroadcast has a router pass on what is for all on a link of its own.
	DirectedBroadcast bool
	// ReassemblyTimeout is how long the rest of a datagram is waited for that comes in
	// fragments, and ReassemblyBytes the memory for all of them; 0: 20 s and 4 MiB.
	ReassemblyTimeout time.Duration
	ReassemblyBytes   int
}

// The bounds of ICMP and of reassembly.
const (
	MaxICMP = 1_000_000 // of both numbers of ICMP's limit
	// MaxReassemblyTimeout is the most that RFC 1122 §3.3.2 allows.
	MaxReassemblyTimeout = 2 * time.Minute
	// MinReassemblyBytes has room for two datagrams of any length.
	MinReassemblyBytes = 256 << 10
	maxReassemblyBytes = 1 << 30
)

const maxRTOMicros = 600_000_000 // ten minutes

// tcpDirectives are those of TCP.
var tcpDirectives = directivesOf(
	timer("tcp rto-min", time.Microsecond, 1, maxRTOMicros,
		func(c *Config) *time.Duration { return &c.TCP.RTOMin }).usually(func(c *Config) string {
		least, _ := RTODefaults(c.TCP.Profile)
		return strconv.FormatInt(least.Microseconds(), 10)
	}),
	timer("tcp rto-max", time.Microsecond, 1, maxRTOMicros,
		func(c *Config) *time.Duration { return &c.TCP.RTOMax }).usually(func(c *Config) string {
		_, most := RTODefaults(c.TCP.Profile)
		return strconv.FormatInt(most.Microseconds(), 10)
	}),
	switchOff("tcp options", func(c *Config) *bool { return &c.TCP.OptionsOff }),
	switchOff("tcp rst", func(c *Config) *bool { return &c.TCP.NoResets }),
	settingOf("tcp profile", profile004, func(c *Config) *string { return &c.TCP.Profile },
		func(r *report, w Word) (string, bool) {
			if w.Text != profile004 {
				r.bad(w, "not a profile", profile004)
			}
			return profile004, w.Text == profile004
		},
		func(string) string { return profile004 }),
)

// icmpDirectives are those of ICMP.
var icmpDirectives = directivesOf(
	settingOf("icmp rate", "MESSAGES-A-SECOND or off",
		func(c *Config) *int { return &c.ICMP.Rate },
		func(r *report, w Word) (int, bool) {
			if w.Text == "off" {
				return -1, true
			}
			return r.number(w, 1, MaxICMP, " messages a second, or off")
		},
		func(n int) string {
			if n < 0 {
				return "off"
			}
			return strconv.Itoa(n)
		}),
	count("icmp burst", "MESSAGES",
		func(c *Config) *int { return &c.ICMP.Burst }, within(1, MaxICMP, " messages")),
	switchOff("icmp errors", func(c *Config) *bool { return &c.ICMP.NoErrors }),
	switchOff("icmp echo", func(c *Config) *bool { return &c.ICMP.NoEcho }),
	switchOn("icmp echo-broadcast", func(c *Config) *bool { return &c.ICMP.EchoBroadcast }),
	switchOff("icmp timestamp", func(c *Config) *bool { return &c.ICMP.NoTimestamp }),
)

// ipDirectives are those of IP.
var ipDirectives = directivesOf(
	choice("ip reverse-path", []string{"off", "loose", "strict"},
		func(c *Config) *string { return &c.IP.ReversePath }),
	switchOn("ip directed-broadcast", func(c *Config) *bool { return &c.IP.DirectedBroadcast }),
	timer("ip reassembly-timeout", time.Millisecond, 1,
		uint64(MaxReassemblyTimeout/time.Millisecond),
		func(c *Config) *time.Duration { return &c.IP.ReassemblyTimeout }),
	count("ip reassembly-bytes", "BYTES", func(c *Config) *int { return &c.IP.ReassemblyBytes },
		within(MinReassemblyBytes, maxReassemblyBytes, " bytes")),
)
