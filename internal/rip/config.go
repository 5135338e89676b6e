package rip

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Dialect is a version of the protocol.
type Dialect uint8

// These are the dialects.
const (
	// Course is the course's protocol: IP protocol 200, unicast to configured neighbors.
	Course Dialect = iota
	// RIPv2 is RFC 2453: UDP port 520, multicast, and version 1 if configured.
	RIPv2
	// RIPng is RFC 2080, for IPv6: UDP port 521, multicast between link-local addresses.
	RIPng
)

// maxGateways limits the routers that a Speaker of RIPv2 or RIPng tracks. A new router replaces
// those that have been silent for Timeout. If there are none, the Speaker rejects the new router's
// messages.
const maxGateways = 1024

// Neighbor is a configured router. The Speaker sends messages to it and accepts its messages.
type Neighbor struct {
	Addr  netip.Addr
	Iface int
}

// Timers are the times of a Speaker. They may change while the Speaker runs. Zero means the
// dialect's default. A negative value disables PeriodicOffset, TriggerMin, TriggerMax, HoldDown or
// AskAfter.
type Timers struct {
	// Periodic is the time between two full updates. Default: 5 s, RIPv2 and RIPng 30 s.
	Periodic time.Duration
	// PeriodicOffset is the maximum random offset of Periodic in either direction (RFC 2453 §3.8).
	// It is at most half of Periodic. Default: none, RIPv2 and RIPng a sixth of Periodic.
	PeriodicOffset time.Duration
	// Timeout is the lifetime of a learned route without a refresh. It must be longer than Periodic
	// and PeriodicOffset together. Default: 12 s, RIPv2 and RIPng 180 s.
	Timeout time.Duration
	// Garbage is how long the Speaker announces an unreachable route at Infinity before it deletes
	// the route. Default: Timeout, RIPv2 and RIPng 120 s.
	Garbage time.Duration
	// TriggerMin and TriggerMax limit the random delay between two triggered updates (RFC 2453
	// §3.10.1). Default: none, RIPv2 and RIPng 1 s and 5 s.
	TriggerMin, TriggerMax time.Duration
	// HoldDown is how long after the loss of a route the Speaker accepts only routes with a lower
	// cost. Default: none. RFC 2453 has no such timer.
	HoldDown time.Duration
	// AskAfter is how long after the loss of a route the Speaker requests tables from the
	// neighbors, if it found no other route. Default: a tenth of Periodic. RIPv2 and RIPng send no
	// requests and wait for the neighbors' next full update.
	AskAfter time.Duration
}

// Config is the configuration of a Speaker.
type Config struct {
	Dialect Dialect
	// Neighbors are the configured routers, in the order of sending. The course's dialect accepts
	// messages only from them. RIPv2 and RIPng do the same on interfaces with a configured
	// neighbor.
	Neighbors []Neighbor
	// Interfaces configures the owner's interfaces, by number. RIPv2 and RIPng need an entry for
	// each. In the course's dialect the default is the zero Interface.
	Interfaces []Interface
	Timers
	// EntrySize is the size of sent entries in the course's dialect, 12 or 8 bytes. Zero means 12.
	// A neighbor that sends entries of 8 bytes receives entries of 8 bytes.
	EntrySize int
	// MaxEntries is the maximum number of entries in a message of the course's dialect, up to 64.
	// Zero means 64. In RIPv2 and RIPng the interface's MTU sets the maximum.
	MaxEntries int
	// MaxRoutes is the maximum number of prefixes in the table. The Speaker counts and ignores
	// announcements beyond it. Zero means 16384.
	MaxRoutes int
	// Rand is the source of the random times. If nil, the seed is fixed.
	Rand *rand.Rand
	// Sequence is the sequence number of authenticated messages at clock time 0. It increases by
	// one per second. Taken from the wall clock, it increases even across a restart.
	Sequence uint32
}

func (c Config) withDefaults() Config {
	c.Timers = c.Timers.WithDefaults(c.Dialect)
	c.EntrySize = cmp.Or(c.EntrySize, EntrySize)
	c.MaxEntries = cmp.Or(c.MaxEntries, MaxEntries)
	c.MaxRoutes = cmp.Or(c.MaxRoutes, 16384)
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(1, 520))
	}
	return c
}

// WithDefaults replaces zeros by the dialect's defaults. Those of RIPv2 are in RFC 2453 §3.8 and
// §3.10.1, those of RIPng in RFC 2080 §2.3 and §2.5.1.
func (t Timers) WithDefaults(d Dialect) Timers {
	if d != Course {
		setDefault(&t.Periodic, 30*time.Second)
		setDefault(&t.PeriodicOffset, t.Periodic/6)
		setDefault(&t.Timeout, 180*time.Second)
		setDefault(&t.Garbage, 120*time.Second)
		setDefault(&t.TriggerMax, max(5*time.Second, t.TriggerMin))
		setDefault(&t.TriggerMin, min(time.Second, t.TriggerMax))
		setDefault(&t.AskAfter, -1)
	}
	setDefault(&t.Periodic, 5*time.Second)
	setDefault(&t.Timeout, 12*time.Second)
	setDefault(&t.Garbage, t.Timeout)
	setDefault(&t.AskAfter, t.Periodic/10)
	setDefault(&t.TriggerMax, t.TriggerMin)
	return t
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func (t Timers) validate() error {
	switch {
	case t.Periodic < 0 || t.Timeout < 0 || t.Garbage < 0:
		return fmt.Errorf("%w: times must not be negative", ErrConfig)
	case t.PeriodicOffset > t.Periodic/2:
		return fmt.Errorf("%w: offset %v is more than half of the period %v",
			ErrConfig, t.PeriodicOffset, t.Periodic)
	case t.Timeout <= t.Periodic+t.PeriodicOffset && t.PeriodicOffset > 0:
		return fmt.Errorf("%w: timeout %v must be longer than the period %v plus its offset %v",
			ErrConfig, t.Timeout, t.Periodic, t.PeriodicOffset)
	case t.Timeout <= t.Periodic:
		return fmt.Errorf("%w: timeout %v must be longer than the period %v",
			ErrConfig, t.Timeout, t.Periodic)
	case t.TriggerMin > t.TriggerMax:
		return fmt.Errorf("%w: triggered update delay %v to %v: the minimum is above the maximum",
			ErrConfig, t.TriggerMin, t.TriggerMax)
	}
	return nil
}

func (c Config) validate() error {
	if err := c.Timers.validate(); err != nil {
		return err
	}
	switch {
	case c.Dialect > RIPng:
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
		valid := n.Addr.Is4()
		if c.Dialect == RIPng {
			valid = isLinkLocal(n.Addr)
		}
		if !valid || n.Iface < 0 {
			return fmt.Errorf("%w: invalid neighbor %v on interface %d", ErrConfig, n.Addr, n.Iface)
		}
		if c.Dialect != Course && n.Iface >= len(c.Interfaces) {
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
