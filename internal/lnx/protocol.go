package lnx

import (
	"strconv"
	"time"
)

// TCP configures TCP.
type TCP struct {
	// RTOMin and RTOMax bound the retransmission timer; 1 ms and 5 s unless the
	// file sets them or names a profile.
	RTOMin, RTOMax time.Duration
	// OptionsOff sends headers without options, from the first SYN on.
	OptionsOff bool
	// NoResets sends no segment with RST.
	NoResets bool
	// Profile is a set of defaults: "004" or empty.
	Profile string
}

// ICMP configures ICMP. The zero value is what hosts normally do.
type ICMP struct {
	// Rate limits the error messages per second; 0: 1000, negative: no limit.
	Rate int
	// Burst limits the error messages that leave at once; 0: 50.
	Burst int
	// NoErrors sends no error messages.
	NoErrors bool
	// NoEcho ignores echo requests, NoTimestamp timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast answers echo requests to IPv4 broadcast and multicast addresses.
	EchoBroadcast bool
}

// IP configures which packets IP accepts.
type IP struct {
	// ReversePath checks a packet's source: "loose" requires a route to it, "strict" a route over
	// the interface on which the packet came in; empty: no check (RFC 3704).
	ReversePath string
	// DirectedBroadcast makes a router forward packets to the broadcast address of one of its
	// links.
	DirectedBroadcast bool
	// ReassemblyTimeout is the time after which an incomplete datagram is dropped, and
	// ReassemblyBytes the memory for all of them; 0: 20 s and 4 MiB.
	ReassemblyTimeout time.Duration
	ReassemblyBytes   int
}

// The bounds of ICMP and of reassembly.
const (
	MaxICMP = 1_000_000 // the largest Rate and Burst
	// MaxReassemblyTimeout is the longest timeout that RFC 1122 §3.3.2 allows.
	MaxReassemblyTimeout = 2 * time.Minute
	// MinReassemblyBytes has room for two datagrams of maximum length.
	MinReassemblyBytes = 256 << 10
	maxReassemblyBytes = 1 << 30
)

const maxRTOMicros = 600_000_000 // ten minutes

// tcpDirectives are the directives of TCP.
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

// icmpDirectives are the directives of ICMP.
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

// ipDirectives are the directives of IP.
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
