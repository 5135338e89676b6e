package lnx

import (
	"strconv"
	"time"
)

// TCP configures TCP.
type TCP struct {
	// RTOMin and RTOMax limit the retransmission timer. They are 1 ms and 5 s unless the file sets
	// them or names a profile.
	RTOMin, RTOMax time.Duration
	// OptionsOff sends TCP headers without options, even in the SYN.
	OptionsOff bool
	// NoResets sends no segments with RST.
	NoResets bool
	// Profile is a set of defaults: "004" or empty.
	Profile string
}

// ICMP configures ICMP. The zero value is the normal behavior of hosts.
type ICMP struct {
	// Rate limits the error messages per second. Zero means 1000, a negative value no limit.
	Rate int
	// Burst limits the error messages that are sent at once. Zero means 50.
	Burst int
	// NoErrors sends no error messages.
	NoErrors bool
	// NoEcho ignores echo requests. NoTimestamp ignores timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast answers echo requests to IPv4 broadcast and multicast addresses.
	EchoBroadcast bool
}

// IP configures how the node treats the packets that it receives.
type IP struct {
	// ReversePath checks a packet's source. "loose" requires a route to it, "strict" a route over
	// the interface that received the packet, and "" nothing (RFC 3704).
	ReversePath string
	// DirectedBroadcast makes a router forward packets to the broadcast address of one of its
	// links.
	DirectedBroadcast bool
	// ReassemblyTimeout is the time after which an incomplete IPv4 datagram is dropped. Zero means
	// 20 s. ReassemblyBytes limits the memory of all incomplete datagrams. Zero means 4 MiB.
	ReassemblyTimeout time.Duration
	ReassemblyBytes   int
}

// These are the limits of ICMP and of reassembly.
const (
	MaxICMP = 1_000_000 // maximum of Rate and of Burst
	// MaxReassemblyTimeout is the longest timeout that RFC 1122 §3.3.2 allows.
	MaxReassemblyTimeout = 2 * time.Minute
	// MinReassemblyBytes is enough for two datagrams of maximum length.
	MinReassemblyBytes = 256 << 10
	maxReassemblyBytes = 1 << 30
)

const maxRTOMicros = 600_000_000 // ten minutes

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
