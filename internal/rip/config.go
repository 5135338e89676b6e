package rip

import (
	"fmt"
	"net/netip"
	"time"
)

// What a zero Config means.
const (
	DefaultPeriodic  = 5 * time.Second
	DefaultTimeout   = 12 * time.Second
	DefaultMaxRoutes = 16384
)

// Neighbor is a router that our messages go to and whose messages count.
type Neighbor struct {
	Addr  netip.Addr
	Iface int
}

// Config says how a Speaker behaves.
type Config struct {
	// Neighbors get our messages, in this order; nobody else is listened to.
	Neighbors []Neighbor
	// Periodic is the time between two full updates. Zero: 5 s.
	Periodic time.Duration
	// Timeout is how long a learned route lives without being refreshed; it has
	// to be longer than Periodic. Zero: 12 s.
	Timeout time.Duration
	// Garbage is how long a dead route is still announced at Infinity before it
	// is forgotten. Zero: as long as Timeout.
	Garbage time.Duration
	// AskAfter is how long after a route has died the neighbours are asked for
	// another way, if none has turned up. Zero: a tenth of Periodic; negative:
	// they are not asked, and another way is found with their next full update.
	AskAfter time.Duration
	// EntrySize is the width in which entries are sent, 12 or 8; a neighbour that
	// is heard to speak 8 is spoken to in 8. Zero: 12.
	EntrySize int
	// MaxEntries is the most entries a message carries, up to 64. Zero: 64.
	MaxEntries int
	// MaxRoutes is the most prefixes that the table holds; what neighbours
	// announce beyond it is ignored and counted. Zero: 16384.
	MaxRoutes int
}

func (c Config) withDefaults() Config {
	if c.Periodic == 0 {
		c.Periodic = DefaultPeriodic
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Garbage == 0 {
		c.Garbage = c.Timeout
	}
	if c.AskAfter == 0 {
		c.AskAfter = c.Periodic / 10
	}
	if c.EntrySize == 0 {
		c.EntrySize = EntrySize
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = MaxEntries
	}
	if c.MaxRoutes == 0 {
		c.MaxRoutes = DefaultMaxRoutes
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Periodic < 0 || c.Timeout < 0 || c.Garbage < 0:
		return fmt.Errorf("%w: a negative time", ErrConfig)
	case c.Timeout <= c.Periodic:
		return fmt.Errorf("%w: time-out %v is not longer than the period %v",
			ErrConfig, c.Timeout, c.Periodic)
	case c.EntrySize != EntrySize && c.EntrySize != OldEntrySize:
		return fmt.Errorf("%w: entry size %d is neither 12 nor 8", ErrConfig, c.EntrySize)
	case c.MaxEntries < 1 || c.MaxEntries > MaxEntries:
		return fmt.Errorf("%w: %d entries a message, want 1 to 64", ErrConfig, c.MaxEntries)
	case c.MaxRoutes < 1:
		return fmt.Errorf("%w: room for %d routes", ErrConfig, c.MaxRoutes)
	}
	seen := make(map[Neighbor]bool, len(c.Neighbors))
	for _, n := range c.Neighbors {
		if !n.Addr.Is4() || n.Iface < 0 {
			return fmt.Errorf("%w: neighbor %v on interface %d", ErrConfig, n.Addr, n.Iface)
		}
		if seen[n] {
			return fmt.Errorf("%w: neighbor %v twice", ErrConfig, n.Addr)
		}
		seen[n] = true
	}
	return nil
}
