package recovery

import (
	"cmp"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Config says how senders find losses and control congestion.
type Config struct {
	// Strategy names the loss recovery: "gbn", "newreno", "sack" or "rack"; zero: "rack" (RFC
	// 8985). With the first two, the host does not permit selective acknowledgments.
	Strategy string
	// Congestion names the congestion control algorithm; zero: "cubic".
	Congestion string
	// InitialWindow is the first congestion window in segments; zero: 10 (RFC 6928).
	InitialWindow int
	// FixedWindow is the window of the algorithm "fixed", in bytes; zero: the initial window.
	FixedWindow int
	// RTOMin and RTOMax bound the RTO; zero: 200 ms, 120 s.
	RTOMin, RTOMax time.Duration
	// RTOInitial is the RTO before the first sample; zero: 1 s (RFC 6298 §2.1).
	RTOInitial time.Duration
	// Pacing spreads the window of new connections over the round trip. BBR always paces.
	Pacing bool
}

// SetDefaults fills in the defaults.
func (c *Config) SetDefaults() {
	c.RTOMin = cmp.Or(c.RTOMin, 200*time.Millisecond)
	c.RTOMax = cmp.Or(c.RTOMax, max(120*time.Second, c.RTOMin))
	c.InitialWindow = cmp.Or(c.InitialWindow, 10)
	c.Congestion = cmp.Or(c.Congestion, "cubic")
	c.Strategy = cmp.Or(c.Strategy, "rack")
}

// Options configure the recoveries of a host.
type Options struct {
	Config
	Algorithms map[string]congestion.Make // by name, in addition to package congestion
	MaxWindow  int                        // bytes
	FinTimeout time.Duration              // after a FIN whose data is acknowledged; 0: RTO
	AckDelay   time.Duration              // RFC 8985 §7.2, max_ack_delay
}
