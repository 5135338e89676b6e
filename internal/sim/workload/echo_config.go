package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// ErrEchoConfig is wrapped by errors in an EchoConfig or a BurstConfig.
var ErrEchoConfig = errors.New("fence: invalid configuration")

// EchoConfig is the workload of the document, and the configuration of RCP. The zero value follows
// the document.
type EchoConfig struct {
	// Writes is the number of pieces that the client writes; 0: 1000.
	Writes int
	// MinBytes and MaxBytes limit the length of a piece, which is uniformly distributed; 0: 200,
	// 399.
	MinBytes, MaxBytes int
	// MinPause and MaxPause limit the pause after each piece, which is uniformly distributed in
	// whole milliseconds; 0: 2 ms, 19 ms.
	MinPause, MaxPause time.Duration
	// RCP configures both ends: Width of the fence, PacketSize, Tick, and the switches Window and
	// Timer. Zero fields have the document's values, with three exceptions: a SendBuffer of 1 MiB,
	// because the document's is unlimited; a Timeout of 50 Ticks, because timeouts after ten Ticks
	// are too frequent at a loss of 60 %; and a MaxRTO of ten Ticks. AttachEcho sets Rand.
	RCP rcp.Config
	// Opened, if not nil, is called with the client's TCP connection after its first SYN.
	Opened func(*sim.Conn)
}

// EchoStream is a suffix: the random stream of a client's writes has the name HOST + EchoStream.
const EchoStream = " fence"

// These defaults differ from the defaults of RCP.
const (
	defaultTick  = 10 * time.Millisecond
	timeoutTicks = 50
	maxRTOTicks  = 10
	sendBuffer   = 1 << 20
)

// maxWrites limits the number of a client's pieces, and maxPiece limits the length of a piece.
const (
	maxWrites = 1 << 20
	maxPiece  = 1 << 16
)

// WithDefaults replaces zeros by the defaults.
func (c EchoConfig) WithDefaults() EchoConfig {
	c.Writes = cmp.Or(c.Writes, 1000)
	c.MinBytes = cmp.Or(c.MinBytes, 200)
	c.MaxBytes = cmp.Or(c.MaxBytes, max(399, c.MinBytes))
	c.MinPause = cmp.Or(c.MinPause, 2*time.Millisecond)
	c.MaxPause = cmp.Or(c.MaxPause, max(19*time.Millisecond, c.MinPause))
	c.RCP = transport(c.RCP)
	return c
}

// transport replaces zeros in RCP's configuration by this package's defaults.
func transport(c rcp.Config) rcp.Config {
	c.Tick = cmp.Or(c.Tick, defaultTick)
	c.Timeout = cmp.Or(c.Timeout, timeoutTicks*c.Tick)
	c.MaxRTO = cmp.Or(c.MaxRTO, min(maxRTOTicks*c.Tick, c.Timeout))
	c.SendBuffer = cmp.Or(c.SendBuffer, sendBuffer)
	return c
}

// DrawPiece draws the length of a piece.
func (c *EchoConfig) DrawPiece(r *rand.Rand) int {
	return c.MinBytes + r.IntN(c.MaxBytes-c.MinBytes+1)
}

// DrawPause draws the length of a pause.
func (c *EchoConfig) DrawPause(r *rand.Rand) time.Duration {
	steps := int64((c.MaxPause - c.MinPause) / time.Millisecond)
	return c.MinPause + time.Duration(r.Int64N(steps+1))*time.Millisecond
}

func (c *EchoConfig) validate() error {
	switch {
	case c.Writes < 1 || c.Writes > maxWrites:
		return fmt.Errorf("%w: %d writes: must be 1 to %d", ErrEchoConfig, c.Writes, maxWrites)
	case c.MinBytes < 1 || c.MaxBytes < c.MinBytes || c.MaxBytes > maxPiece:
		return fmt.Errorf("%w: pieces of %d to %d bytes: must be 1 to %d", ErrEchoConfig,
			c.MinBytes, c.MaxBytes, maxPiece)
	case c.MinPause < 0 || c.MaxPause < c.MinPause || c.MaxPause > time.Hour:
		return fmt.Errorf("%w: pauses of %v to %v: must be 0 to 1h", ErrEchoConfig, c.MinPause,
			c.MaxPause)
	}
	return nil
}
