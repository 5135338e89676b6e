package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// TCP is how a node's TCP behaves. Zero fields mean the default.
type TCP struct {
	// CongestionControl names the algorithm of new connections.
	CongestionControl string
	// InitialWindow is the first congestion window in segments; 0: 10 (RFC 6928).
	InitialWindow int
	// RTOInitial is the retransmission time-out before a round trip was measured,
	// RTOMin and RTOMax bound it afterwards; 0: 1 s, 200 ms, 120 s.
	RTOInitial, RTOMin, RTOMax time.Duration
	// DelayedAck is how long an acknowledgment may wait for company; 0: 40 ms, or
	// a fifth of RTOMin if that is less.
	DelayedAck time.Duration
	// Nagle has small segments wait while data is unacknowledged, unless a
	// connection's SetNoDelay says otherwise. Without it they do not, as in net.
	Nagle bool
	// ReadBuffer and WriteBuffer are each connection's buffers in bytes; 0: 2 MiB,
	// or less where the machine's sockets hold less.
	ReadBuffer, WriteBuffer int
	// MSL is half of TIME-WAIT; 0: 30 s. Negative: no TIME-WAIT.
	MSL time.Duration
}

// apply sets what is not zero.
func (t *TCP) apply(c *node.TCPConfig) {
	override(&c.Congestion, t.CongestionControl)
	override(&c.InitialWindow, t.InitialWindow)
	override(&c.RTOInitial, t.RTOInitial)
	override(&c.RTOMin, t.RTOMin)
	override(&c.RTOMax, t.RTOMax)
	override(&c.DelayedAck, t.DelayedAck)
	override(&c.RecvBuffer, t.ReadBuffer)
	override(&c.SendBuffer, t.WriteBuffer)
	override(&c.MSL, t.MSL)
	c.NoDelay = !t.Nagle
}

func override[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
