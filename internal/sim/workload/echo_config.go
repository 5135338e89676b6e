package workload

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// ErrEchoConfig is wrapped by errors in a Config.
var ErrEchoConfig = errors.New("fence: invalid configuration")

// EchoConfig is the document's workload and how RCP is to carry it. The zero Config is the
// document's.
type EchoConfig struct {
	// Name is of the flow's random streams, so that flows differ which share a host; empty:
	// "fence".
	Name string
	// Writes is how many pieces the client writes; 0: 1000.
	Writes int
	// MinBytes and MaxBytes bound a piece's length, of which each is as likely; 0: 200, 399.
	MinBytes, MaxBytes int
	// MinPause and MaxPause bound how long the client rests after each piece, in whole
	// milliseconds of which each is as likely; 0: 2 ms, 19 ms.
	MinPause, MaxPause time.Duration
	// RCP is how both ends are: Width, the fence's, PacketSize, Tick, the switches Window and
	// Timer. Its zeros mean the document's but for three: a SendBuffer of 1 MiB, for the
	// document's has no end; a Timeout of 50 Ticks, for at a loss of 60 % its ten are not
	// rare enough for a table; and a MaxRTO of ten Ticks. Rand is filled in.
	RCP rcp.Config
	// Opened, if not nil, is called with the client's TCP connection before anything happens on it.
	Opened func(*sim.Conn)
}

// Defaults that differ from RCP's.
const (
	defaultTick  = 10 * time.Millisecond
	timeoutTicks = 50
	maxRTOTicks  = 10
	sendBuffer   = 1 << 20
)

// maxWrites bounds what one client writes, maxPiece a piece of it.
const (
	maxWrites = 1 << 20
	maxPiece  = 1 << 16
)

// WithDefaults replaces zeros by the defaults.
func (c EchoConfig) WithDefaults() EchoConfig {
	c.Name = cmp.Or(c.Name, "fence")
	c.Writes = cmp.Or(c.Writes, 1000)
	c.MinBytes = cmp.Or(c.MinBytes, 200)
	c.MaxBytes = cmp.Or(c.MaxBytes, max(399, c.MinBytes))
	c.MinPause = cmp.Or(c.MinPause, 2*time.Millisecond)
	c.MaxPause = cmp.Or(c.MaxPause, max(19*time.Millisecond, c.MinPause))
	c.RCP = transport(c.RCP)
	return c
}

// transport fills in what this room wants of RCP.
func transport(c rcp.Config) rcp.Config {
	c.Tick = cmp.Or(c.Tick, defaultTick)
	c.Timeout = cmp.Or(c.Timeout, timeoutTicks*c.Tick)
	c.MaxRTO = cmp.Or(c.MaxRTO, min(maxRTOTicks*c.Tick, c.Timeout))
	c.SendBuffer = cmp.Or(c.SendBuffer, sendBuffer)
	return c
}

func (c *EchoConfig) validate() error {
	switch {
	case c.Writes < 1 || c.Writes > maxWrites:
		return fmt.Errorf("%w: %d writes: must be 1 to %d", ErrEchoConfig, c.Writes, maxWrites)
	case c.MinBytes < 1 || c.MaxBytes < c.MinBytes || c.MaxBytes > maxPiece:
		return fmt.Errorf("%w: pieces of %d to %d bytes: must be 1 to %d", ErrEchoConfig,
			c.MinBytes,
			c.MaxBytes, maxPiece)
	case c.MinPause < 0 || c.MaxPause < c.MinPause || c.MaxPause > time.Hour:
		return fmt.Errorf("%w: pauses of %v to %v: must be 0 to 1h", ErrEchoConfig, c.MinPause,
			c.MaxPause)
	}
	return nil
}
