package starlark

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// conn holds the connection's settings for init. It is immutable, so a script may keep it.
type conn = event[congestion.Config]

var connFields = []field[congestion.Config]{
	integer("mss", func(c *congestion.Config) int { return c.MSS }),
	integer("initial_window", func(c *congestion.Config) int { return c.InitialWindow }),
	integer("max_window", func(c *congestion.Config) int { return c.MaxWindow }),
	integer("fixed_window", func(c *congestion.Config) int { return c.FixedWindow }),
	integer("cwnd", func(c *congestion.Config) int { return c.FirstCwnd() }),
	integer("ssthresh", func(c *congestion.Config) int { return c.FirstSsthresh() }),
	measurement("srtt", func(c *congestion.Config) time.Duration { return c.SRTT }),
	measurement("min_rtt", func(c *congestion.Config) time.Duration { return c.MinRTT }),
	flag("sack", func(c *congestion.Config) bool { return c.SACK }),
	flag("paced", func(c *congestion.Config) bool { return c.Paced }),
	integer("burst", func(c *congestion.Config) int { return max(c.Burst, 1) }),
}
