package workload

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// ErrObjectsConfig is wrapped by errors in an ObjectsConfig.
var ErrObjectsConfig = errors.New("objects: invalid configuration")

// Arm is a protocol for transferring objects, with the order of the objects.
type Arm uint8

// These are the arms.
const (
	// RDT is the reliable data transfer over UDP.
	RDT Arm = iota
	// Sequential is one TCP connection with one object after the other. Each object follows its
	// length in 16 characters, as in the document.
	Sequential
	// Interleaved is one TCP connection on which the objects take turns, one chunk at a time. A
	// lost chunk delays all objects.
	Interleaved
	// Parallel is a TCP connection for each object.
	Parallel
	numArms
)

var armNames = [numArms]string{"rdt", "sequential", "interleaved", "parallel"}

func (a Arm) String() string {
	if a < numArms {
		return armNames[a]
	}
	return "unknown arm"
}

// ObjectsConfig describes the transfers. The zero value follows the document, over RDT.
type ObjectsConfig struct {
	Arm Arm
	// Seed is the seed of the objects' random bytes; 0: the world's seed.
	Seed uint64
	// Pairs is the number of small objects, and also the number of large ones; 0: 10.
	Pairs int
	// Small and Large are the numbers of random bytes in an object of each kind; 0: 7400 and
	// 740000, which become 9998 and 999651 bytes of text.
	Small, Large int
	// SmallestFirst sends the small objects before the large ones, one after the other. It has no
	// effect if objects take turns.
	SmallestFirst bool
	// RDT configures both ends of the arm RDT. The zero value follows the document.
	RDT rdt.Config
	// Buffer is the size in bytes of the receive buffers of RDT's two sockets; 0: 16 MiB, as in the
	// document. A window of 1120 packets arrives at once, and would overflow Linux's default.
	Buffer int
	// Cost is the time that each of RDT's two ends takes to send a packet; 0: 20 µs, about Python's
	// time for a header, a digest and a system call; negative: no time. Without this time, a window
	// leaves at one instant, and a retransmission waits behind the whole window. So most lost
	// packets are retransmitted only after a timeout.
	Cost time.Duration
	// ReadCost is the client's time for one read from a TCP connection, of at most 1024 bytes like
	// the document's; 0: a read takes no time and returns all data.
	ReadCost time.Duration
	// Chunk is the size in bytes of a chunk in the arm Interleaved; 0: 1325.
	Chunk int
	// Opened, if not nil, is called with each connection that the server accepts, before its use.
	Opened func(*sim.Conn)
}

const (
	defaultPairs  = 10
	defaultSmall  = 7400
	defaultLarge  = 740_000
	objectsBuffer = 16 << 20
	defaultChunk  = 1325
	defaultCost   = 20 * time.Microsecond
	maxBuffered   = 1 << 30
	maxRandom     = 1 << 26 // maximum number of bytes of an object, and of all objects
)

func (c ObjectsConfig) withDefaults() ObjectsConfig {
	c.Pairs = cmp.Or(c.Pairs, defaultPairs)
	c.Small = cmp.Or(c.Small, defaultSmall)
	c.Large = cmp.Or(c.Large, defaultLarge)
	c.Buffer = cmp.Or(c.Buffer, objectsBuffer)
	c.Chunk = cmp.Or(c.Chunk, defaultChunk)
	c.Cost = cmp.Or(c.Cost, defaultCost)
	return c
}

func (c *ObjectsConfig) validate() error {
	switch {
	case c.Arm >= numArms:
		return fmt.Errorf("%w: arm %d: must be below %d", ErrObjectsConfig, c.Arm, numArms)
	case c.Pairs < 1 || c.Pairs > rdt.MaxObjects/2:
		return fmt.Errorf("%w: %d pairs: must be 1 to %d", ErrObjectsConfig, c.Pairs,
			rdt.MaxObjects/2)
	case c.Small < 1 || c.Large < 1 || c.Small > maxRandom || c.Large > maxRandom ||
		c.Pairs*(c.Small+c.Large) > maxRandom:
		return fmt.Errorf("%w: %d pairs of %d and %d bytes: must be 1 or more, and %d in total at "+
			"most", ErrObjectsConfig, c.Pairs, c.Small, c.Large, maxRandom)
	case c.Cost > time.Second || c.ReadCost < 0 || c.ReadCost > time.Second:
		return fmt.Errorf("%w: cost %v, read cost %v: each must be at most 1s", ErrObjectsConfig,
			c.Cost, c.ReadCost)
	case c.Buffer < 0 || c.Buffer > maxBuffered || c.Chunk < 1 || c.Chunk > maxChunk:
		return fmt.Errorf("%w: buffer of %d bytes, chunks of %d: must be 0 to %d and 1 to %d",
			ErrObjectsConfig, c.Buffer, c.Chunk, maxBuffered, maxChunk)
	}
	return nil
}
