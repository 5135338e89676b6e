package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ICMP is what a node answers by ICMP. The zero ICMP is what a good host does.
type ICMP struct {
	// Rate is how many error messages may leave a second in the long run; 0: 1000.
	// Negative: no limit.
	Rate int
	// Burst is how many may leave at once; 0: 50.
	Burst int
	// NoErrors sends no error messages. Some nodes of the .lnx family crash at one.
	NoErrors bool
	// NoEcho leaves pings unanswered, and NoTimestamp timestamp requests.
	NoEcho, NoTimestamp bool
	// EchoBroadcast answers pings to all on a link, or to a group, too.
	EchoBroadcast bool
}

// IP is which packets a node takes.
type IP struct {
	// ReversePath is what a packet's source needs (RFC 3704 §2): "loose" a route,
	// "strict" one that leads out where the packet came in; empty or "off": nothing.
	// Rings have ways back that are others than the ways there, and strict cuts them off.
	ReversePath string
	// DirectedBroadcast has a router pass on what is for all on a link of its own.
	DirectedBroadcast bool
	// ReassemblyTimeout is how long the rest of a datagram is waited for that comes in
	// fragments; 0: 20 s. Two minutes at the most.
	ReassemblyTimeout time.Duration
	// ReassemblyBytes bounds the memory for all such datagrams; 0: 4 MiB. Where it is
	// short, the oldest is lost. It is 256 KiB at the least.
	ReassemblyBytes int
}

// internet translates ICMP and IP into the terms of an .lnx file.
func (c *Config) internet(file *lnx.Config) error {
	if c.ICMP.Rate > lnx.MaxICMP || c.ICMP.Burst < 0 || c.ICMP.Burst > lnx.MaxICMP {
		return wrong("ICMP: a rate of %d and a burst of %d: want at most %d",
			c.ICMP.Rate, c.ICMP.Burst, lnx.MaxICMP)
	}
	file.ICMP = lnx.ICMP(c.ICMP)
	switch mode := c.IP.ReversePath; mode {
	case "", "off":
	case "loose", "strict":
		file.IP.ReversePath = mode
	default:
		return wrong("IP.ReversePath: %q: want off, loose or strict", mode)
	}
	file.IP.DirectedBroadcast = c.IP.DirectedBroadcast
	if d := c.IP.ReassemblyTimeout; d < 0 || d > lnx.MaxReassemblyTimeout {
		return wrong("IP.ReassemblyTimeout: %v: want at most %v", d, lnx.MaxReassemblyTimeout)
	}
	if n := c.IP.ReassemblyBytes; n != 0 && n < lnx.MinReassemblyBytes {
		return wrong("IP.ReassemblyBytes: %d: want at least %d", n, lnx.MinReassemblyBytes)
	}
	file.IP.ReassemblyTimeout = c.IP.ReassemblyTimeout
	file.IP.ReassemblyBytes = c.IP.ReassemblyBytes
	return nil
}

// TCP is how a node's TCP behaves. Zero fields mean the default, and the zero TCP
// is a good host.
type TCP struct {
	// Profile names a set of defaults for the other fields: "004" has those of founding
	// document 004 §7, as in an .lnx file; empty: the ones that they tell.
	Profile string
	// CongestionControl names the algorithm of new connections: "cubic", "bbr", "bbr3",
	// "reno", "newreno", "tahoe", "fixed" or "none"; empty: the node's default.
	CongestionControl string
	// Recovery names how losses are found and mended: "rack" (RFC 8985), "sack",
	// "newreno" or "gbn", which goes back to the first loss; empty: "rack".
	Recovery string
	// NoSACK, NoTimestamps and NoWindowScale neither offer nor accept the option.
	NoSACK, NoTimestamps, NoWindowScale bool
	// NoOptions sends plain headers, as old nodes of the .lnx family need them.
	NoOptions bool
	// NoResets sends no segment with RST: a closed port answers with silence. Some
	// nodes of the .lnx family crash at one.
	NoResets bool
	// ECN is explicit congestion notification (RFC 3168): "on" asks for it, "passive"
	// accepts it, "off" does neither; "dctcp" asks for it, and reports marks as RFC 8257 §3.2 has
	// it, which both ends must do; empty: "passive".
	ECN string
	// SynCookies has SYNs answered without remembering them (RFC 4987 §3.6): "auto"
	// when too many are open, "always" or "off"; empty: "auto".
	SynCookies string
	// Pacing spreads what is sent over the round trip. BBR always does.
	Pacing bool
	// Nagle has small segments wait while data is unacknowledged, unless a
	// connection's SetNoDelay says otherwise. Without it they do not, as in net.
	Nagle bool
	// MTUProbing finds a path's MTU where routers do not report it (RFC 4821): "on",
	// "off", or "blackhole" when full segments vanish; empty: "blackhole".
	MTUProbing string
	// InitialWindow is the first congestion window in segments; 0: 10 (RFC 6928).
	InitialWindow int
	// RTOInitial is the retransmission time-out before a round trip was measured,
	// RTOMin and RTOMax bound it afterwards; 0: 1 s, 200 ms, 120 s.
	RTOInitial, RTOMin, RTOMax time.Duration
	// DelayedAck is how long an acknowledgment may wait for company; 0: 40 ms, or
	// a fifth of RTOMin if that is less.
	DelayedAck time.Duration
	// SynRetries and DataRetries are how often a SYN, or data, is retransmitted before
	// the connection fails with ETIMEDOUT; 0: 6 and 15. A RTOMax below a minute has a SYN
	// retransmitted up to 30 times, until that has taken 127 s.
	SynRetries, DataRetries int
	// ReadBuffer and WriteBuffer are each connection's buffers in bytes; 0: they
	// tune themselves, from 1 MiB up to 6 MiB for reading, or what the machine's sockets hold,
	// and 8 MiB for writing.
	ReadBuffer, WriteBuffer int
	// MSL is half of TIME-WAIT; 0: 30 s. Negative: no TIME-WAIT.
	MSL time.Duration
}

// apply sets what is not zero.
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
	c.ECN, _ = tcp.ParseECNMode(t.ECN) // check has looked at both; empty: the zero mode
	c.SynCookies, _ = tcp.ParseCookieMode(t.SynCookies)
	override(&c.MTUProbing, t.MTUProbing)
	override(&c.DelayedAck, t.DelayedAck)
	override(&c.Retries.Syn, t.SynRetries)
	override(&c.Retries.Data, t.DataRetries)
	override(&c.MSL, t.MSL)
	buffer(&c.Buffers.Recv, &c.Buffers.RecvMax, t.ReadBuffer)
	buffer(&c.Buffers.Send, &c.Buffers.SendMax, t.WriteBuffer)
}

// buffer sets a buffer's size, or leaves it to tune itself.
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
