package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ICMP configures what a node answers by ICMP. Zero fields: the defaults.
type ICMP struct {
	// Rate is the average number of error messages per second. 0: 1000. Negative: no limit.
	Rate int
	// Burst is the number of error messages that may be sent at once. 0: 50.
	Burst int
	// NoErrors disables ICMP error messages. Some nodes of courses crash when they receive one.
	NoErrors bool
	// NoEcho and NoTimestamp disable the answers to pings and to timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast enables answers to broadcast and multicast pings.
	EchoBroadcast bool
}

// IP configures which packets a node accepts.
type IP struct {
	// ReversePath is the reverse path filter (RFC 3704 §2): "loose" requires a route to a packet's
	// source, "strict" requires that this route leaves by the interface at which the packet
	// arrived. Empty or "off": no filter. Strict filtering drops valid packets where routes are
	// asymmetric, for example in a ring.
	ReversePath string
	// DirectedBroadcast makes a router forward broadcasts to networks that it is attached to.
	DirectedBroadcast bool
	// ReassemblyTimeout is how long the fragments of a datagram wait for the missing ones. 0: 20 s.
	// At most two minutes.
	ReassemblyTimeout time.Duration
	// ReassemblyBytes is the memory for all incomplete datagrams in bytes. 0: 4 MiB. At least 256
	// KiB. If it is full, the oldest datagram is dropped.
	ReassemblyBytes int
}

// internet converts ICMP and IP to the settings of an .lnx file.
func (c *Config) internet(file *lnx.Config) error {
	if c.ICMP.Rate > lnx.MaxICMP || c.ICMP.Burst < 0 || c.ICMP.Burst > lnx.MaxICMP {
		return wrong("ICMP.Rate %d, ICMP.Burst %d: each must be at most %d, and Burst 0 or more",
			c.ICMP.Rate, c.ICMP.Burst, lnx.MaxICMP)
	}
	file.ICMP = lnx.ICMP(c.ICMP)
	switch mode := c.IP.ReversePath; mode {
	case "", "off":
	case "loose", "strict":
		file.IP.ReversePath = mode
	default:
		return wrong("IP.ReversePath %q: must be off, loose or strict", mode)
	}
	file.IP.DirectedBroadcast = c.IP.DirectedBroadcast
	if d := c.IP.ReassemblyTimeout; d < 0 || d > lnx.MaxReassemblyTimeout {
		return wrong("IP.ReassemblyTimeout %v: must be at most %v", d, lnx.MaxReassemblyTimeout)
	}
	if n := c.IP.ReassemblyBytes; n != 0 && n < lnx.MinReassemblyBytes {
		return wrong("IP.ReassemblyBytes %d: must be at least %d", n, lnx.MinReassemblyBytes)
	}
	file.IP.ReassemblyTimeout = c.IP.ReassemblyTimeout
	file.IP.ReassemblyBytes = c.IP.ReassemblyBytes
	return nil
}

// TCP configures a node's TCP. Zero fields: the defaults.
type TCP struct {
	// Profile selects defaults for the other fields. "004": the values of founding document 004 §7,
	// as in an .lnx file. Empty: the values stated below.
	Profile string
	// CongestionControl is the algorithm of new connections: "cubic", "bbr", "bbr3", "reno",
	// "newreno", "tahoe", "fixed" or "none". Empty: the node's default.
	CongestionControl string
	// Recovery is the algorithm for loss detection and recovery: "rack" (RFC 8985), "sack",
	// "newreno" or "gbn" (go-back-N). Empty: "rack".
	Recovery string
	// NoSACK, NoTimestamps and NoWindowScale neither offer nor accept the option.
	NoSACK, NoTimestamps, NoWindowScale bool
	// NoOptions sends segments without options, for old nodes of courses.
	NoOptions bool
	// NoResets sends no RST: closed ports do not answer. Some nodes of courses crash when they
	// receive one.
	NoResets bool
	// ECN is explicit congestion notification (RFC 3168): "on" requests it, "passive" accepts it,
	// "off" does neither. "dctcp" requests it and reports marks as in RFC 8257 §3.2, which both
	// ends must do. Empty: "passive".
	ECN string
	// SynCookies answers SYNs without keeping state (RFC 4987 §3.6): "auto" if too many connections
	// are half-open, "always" or "off". Empty: "auto".
	SynCookies string
	// Pacing spreads segments over the round-trip time. BBR always paces.
	Pacing bool
	// Nagle enables Nagle's algorithm for connections that do not call SetNoDelay. The default is
	// off, as in package net.
	Nagle bool
	// MTUProbing finds a path's MTU without ICMP (RFC 4821): "on", "off", or "blackhole", which
	// starts when full-sized segments are lost. Empty: "blackhole".
	MTUProbing string
	// InitialWindow is the initial congestion window in segments. 0: 10 (RFC 6928).
	InitialWindow int
	// RTOInitial is the retransmission timeout before the first round-trip time is measured. RTOMin
	// and RTOMax are the limits afterwards. 0: 1 s, 200 ms, 120 s.
	RTOInitial, RTOMin, RTOMax time.Duration
	// DelayedAck is the longest delay of an acknowledgment. 0: 40 ms, or a fifth of RTOMin if that
	// is less.
	DelayedAck time.Duration
	// SynRetries and DataRetries are how often a SYN or data is retransmitted before the connection
	// fails with ETIMEDOUT. 0: 6 and 15. If RTOMax is below 64 s, a SYN is retransmitted for at
	// least 127 s, but at most 30 times.
	SynRetries, DataRetries int
	// ReadBuffer and WriteBuffer are the sizes of each connection's buffers in bytes. 0: automatic.
	// The receive buffer then grows from 1 MiB to 6 MiB, or to the size of the machine's socket
	// buffers; the send buffer grows to 8 MiB.
	ReadBuffer, WriteBuffer int
	// MSL is half of the duration of TIME-WAIT. 0: 30 s. Negative: no TIME-WAIT.
	MSL time.Duration
}

// apply sets all switches, ECN and SynCookies, and the other fields that are not zero.
func (t *TCP) apply(c *tcp.Config) {
	rec := &c.Recovery
	override(&rec.Congestion, t.CongestionControl)
	override(&rec.Strategy, t.Recovery)
	override(&rec.InitialWindow, t.InitialWindow)
	override(&rec.RTOInitial, t.RTOInitial)
	override(&rec.RTOMin, t.RTOMin)
	override(&rec.RTOMax, t.RTOMax)
	rec.Pacing = t.Pacing
	c.NoSACK, c.NoTimestamps, c.NoWindowScale = t.NoSACK, t.NoTimestamps, t.NoWindowScale
	c.OptionsOff, c.NoDelay = t.NoOptions, !t.Nagle
	c.NoResets = t.NoResets
	c.ECN, _ = tcp.ParseECNMode(t.ECN) // check has validated both
	c.SynCookies, _ = tcp.ParseCookieMode(t.SynCookies)
	override(&c.MTUProbing, t.MTUProbing)
	override(&c.DelayedAck, t.DelayedAck)
	override(&c.Retries.Syn, t.SynRetries)
	override(&c.Retries.Data, t.DataRetries)
	override(&c.MSL, t.MSL)
	buffer(&c.Buffers.Recv, &c.Buffers.RecvMax, t.ReadBuffer)
	buffer(&c.Buffers.Send, &c.Buffers.SendMax, t.WriteBuffer)
}

// buffer sets a buffer's size. 0 leaves it automatic.
func buffer(size, most *int, wanted int) {
	if wanted != 0 {
		*size, *most = wanted, wanted
	}
}

func override[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
