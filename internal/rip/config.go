package rip

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Dialect is the protocol that a Speaker speaks.
type Dialect uint8

// The dialects.
const (
	// Course is the course's: IP protocol 200, unicast to configured neighbours.
	Course Dialect = iota
	// RIPv2 is RFC 2453's: UDP port 520, multicast, version 1 where it is asked for.
	RIPv2
)

// maxGateways bounds the routers that a RIPv2 Speaker keeps books of. One more takes
// the place of one that has been silent for the time-out, or is refused.
const maxGateways = 1024

// Neighbor is a router that our messages go to and whose messages count.
type Neighbor struct {
	Addr  netip.Addr
	Iface int
}

// Timers are the times of a Speaker; they may change while it runs. In each, zero
// means the dialect's default, and what may be left away is so when it is negative.
type Timers struct {
	// Periodic is the time between two full updates: 5 s, RIPv2 30 s.
	Periodic time.Duration
	// PeriodicOffset is how far, up or down, chance moves each of them (RFC 2453
	// §3.8): none, RIPv2 a sixth of Periodic. At most half of Periodic.
	PeriodicOffset time.Duration
	// Timeout is how long a learned route lives without being refreshed; it has
	// to be longer than Periodic and PeriodicOffset. 12 s, RIPv2 180 s.
	Timeout time.Duration
	// Garbage is how long a dead route is still announced at Infinity before it
	// is forgotten. As long as Timeout, RIPv2 120 s.
	Garbage time.Duration
	// TriggerMin and TriggerMax bound the time for which, after a triggered update,
	// news waits for more (RFC 2453 §3.10.1): none, RIPv2 1 s and 5 s.
	TriggerMin, TriggerMax time.Duration
	// HoldDown is how long, after a route has died, only a shorter way than it was
	// is believed. None by default: RFC 2453 has no such time.
	HoldDown time.Duration
	// AskAfter is how long after a route has died the neighbours are asked for
	// another way, if none has turned up. A tenth of Periodic; in RIPv2 they are not
	// asked, and another way is found with their next full update.
	AskAfter time.Duration
}

// Config says how a Speaker behaves.
type Config struct {
	// Dialect is what is spoken.
	Dialect Dialect
	// Neighbors get our messages, in this order. In the course's dialect nobody else
	// is listened to; in RIPv2 that is so on the interfaces that have one.
	Neighbors []Neighbor
	// Interfaces say how RIP is spoken on the owner's interfaces, by their number.
	// RIPv2 needs one for each; in the course's dialect those that are missing are
	// the zero Interface.
	Interfaces []Interface
	Timers
	// EntrySize is the width in which the course's entries are sent, 12 or 8; a
	// neighbour that is heard to speak 8 is spoken to in 8. Zero: 12.
	EntrySize int
	// MaxEntries is the most entries a message of the course carries, up to 64.
	// Zero: 64. Of RIPv2's, the interface's MTU tells.
	MaxEntries int
	// MaxRoutes is the most prefixes that the table holds; what neighbours
	// announce beyond it is ignored and counted. Zero: 16384.
	MaxRoutes int
	// Rand draws the random times; nil: a fixed seed.
	Rand *rand.Rand
	// Sequence is the sequence number of authenticated messages at the origin of the
	// clock; it grows by one a second. Wall-clock seconds make it survive a restart.
	Sequence uint32
}

func (c Config) withDefaults() Config {
	c.Timers = c.Timers.WithDefaults(c.Dialect)
	if c.EntrySize == 0 {
		c.EntrySize = EntrySize
	}
	if c.MaxEntries == 0 {
		c.MaxEntries = MaxEntries
	}
	if c.MaxRoutes == 0 {
		c.MaxRoutes = 16384
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(1, 520))
	}
	return c
}

// WithDefaults replaces zeros by the dialect's defaults; RFC 2453 §3.8 and §3.10.1 have RIPv2's.
func (t Timers) WithDefaults(d Dialect) Timers {
	if d == RIPv2 {
		or(&t.Periodic, 30*time.Second)
		or(&t.PeriodicOffset, t.Periodic/6)
		or(&t.Timeout, 180*time.Second)
		or(&t.Garbage, 120*time.Second)
		or(&t.TriggerMax, max(5*time.Second, t.TriggerMin))
		or(&t.TriggerMin, min(time.Second, t.TriggerMax))
		or(&t.AskAfter, -1)
	}
	or(&t.Periodic, 5*time.Second)
	or(&t.Timeout, 12*time.Second)
	or(&t.Garbage, t.Timeout)
	or(&t.AskAfter, t.Periodic/10)
	or(&t.TriggerMax, t.TriggerMin)
	return t
}

func or(d *time.Duration, usual time.Duration) {
	if *d == 0 {
		*d = usual
	}
}

func (t Timers) validate() error {
	switch {
	case t.Periodic < 0 || t.Timeout < 0 || t.Garbage < 0:
		return fmt.Errorf("%w: a negative time", ErrConfig)
	case t.PeriodicOffset > t.Periodic/2:
		return fmt.Errorf("%w: offset %v is more than half of the period %v",
			ErrConfig, t.PeriodicOffset, t.Periodic)
	case t.Timeout <= t.Periodic+t.PeriodicOffset && t.PeriodicOffset > 0:
		return fmt.Errorf("%w: timeout %v must be longer than the period %v and its offset %v",
			ErrConfig, t.Timeout, t.Periodic, t.PeriodicOffset)
	case t.Timeout <= t.Periodic:
		return fmt.Errorf("%w: timeout %v must be longer than the period %v",
			ErrConfig, t.Timeout, t.Periodic)
	case t.TriggerMin > t.TriggerMax:
		return fmt.Errorf("%w: triggered update delay of at least %v and at most %v",
			ErrConfig, t.TriggerMin, t.TriggerMax)
	}
	return nil
}

func (c Config) validate() error {
	if err := c.Timers.validate(); err != nil {
		return err
	}
	switch {
	case c.Dialect > RIPv2:
		return fmt.Errorf("%w: unknown dialect %d", ErrConfig, c.Dialect)
	case c.EntrySize != EntrySize && c.EntrySize != OldEntrySize:
		return fmt.Errorf("%w: entry size %d must be 12 or 8", ErrConfig, c.EntrySize)
	case c.MaxEntries < 1 || c.MaxEntries > MaxEntries:
		return fmt.Errorf("%w: %d entries a message: must be 1 to 64", ErrConfig, c.MaxEntries)
	case c.MaxRoutes < 1:
		return fmt.Errorf("%w: route limit %d must be positive", ErrConfig, c.MaxRoutes)
	}
	for i := range c.Interfaces {
		if err := c.Interfaces[i].validate(c.Dialect); err != nil {
			return fmt.Errorf("%w: interface %d: %w", ErrConfig, i, err)
		}
	}
	return c.validateNeighbors()
}

func (c Config) validateNeighbors() error {
	seen := make(map[Neighbor]bool, len(c.Neighbors))
	for _, n := range c.Neighbors {
		if !n.Addr.Is4() || n.Iface < 0 {
			return fmt.Errorf("%w: neighbor %v on interface %d", ErrConfig, n.Addr, n.Iface)
		}
		if c.Dialect == RIPv2 && n.Iface >= len(c.Interfaces) {
			return fmt.Errorf("%w: neighbor %v on interface %d, which does not exist",
				ErrConfig, n.Addr, n.Iface)
		}
		if seen[n] {
			return fmt.Errorf("%w: duplicate neighbor %v", ErrConfig, n.Addr)
		}
		seen[n] = true
	}
	return nil
}
