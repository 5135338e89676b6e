package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/lnx"
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

// maxICMP bounds the numbers of ICMP.
const maxICMP = 1_000_000

// The bounds of reassembly.
const (
	maxReassemblyTimeout = 2 * time.Minute
	minReassemblyBytes   = 256 << 10
)

// internet translates ICMP and IP into the terms of an .lnx file.
func (c *Config) internet(file *lnx.Config) error {
	if c.ICMP.Rate > maxICMP || c.ICMP.Burst < 0 || c.ICMP.Burst > maxICMP {
		return wrong("ICMP: a rate of %d and a burst of %d: want at most %d",
			c.ICMP.Rate, c.ICMP.Burst, maxICMP)
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
	if d := c.IP.ReassemblyTimeout; d < 0 || d > maxReassemblyTimeout {
		return wrong("IP.ReassemblyTimeout: %v: want at most %v", d, maxReassemblyTimeout)
	}
	if n := c.IP.ReassemblyBytes; n != 0 && n < minReassemblyBytes {
		return wrong("IP.ReassemblyBytes: %d: want at least %d", n, minReassemblyBytes)
	}
	file.IP.ReassemblyTimeout = c.IP.ReassemblyTimeout
	file.IP.ReassemblyBytes = c.IP.ReassemblyBytes
	return nil
}
