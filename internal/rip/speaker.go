package rip

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ErrConfig is wrapped by the errors of NewSpeaker.
var ErrConfig = errors.New("rip: invalid configuration")

// Speaker is the RIP engine of one router. Its owner calls it from one goroutine. After each call
// the owner calls Output and NextChange until they return false.
type Speaker struct {
	cfg      Config
	ports    []*port
	outlets  []*outlet // destinations of updates, in the configured order
	answers  []*outlet // destinations of responses to requests
	replies  []reply
	gateways map[Neighbor]*gateway // routers that are configured or have sent a message
	table    table

	started     bool
	periodic    clock.Time // time of the next full update
	requestAt   clock.Time // when to request tables because of lost routes
	requestedAt clock.Time // when tables were last requested
	changesWait bool       // changes wait until heldUntil
	heldUntil   clock.Time
	triggeredAt clock.Time // time of the last triggered update

	changes  []*route // changes that NextChange returns
	counters Counters
	refused  [numRefusals]uint64
	events   []Event
	watched  bool

	parsed  []Entry // memory for ParsePacket
	parsed2 []Entry2
	entries []Entry // entries of the message that is being built
	payload []byte  // the message that Output returned last
}

// Change is a change of the owner's routing table.
type Change struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
	Iface   int
	Cost    int
	Gone    bool // the route was removed, and only Prefix is set
}

// Counters count events since NewSpeaker.
type Counters struct {
	RequestsIn, ResponsesIn, EntriesIn uint64
	RequestsOut, ResponsesOut          uint64
	TriggeredOut                       uint64 // triggered updates, which ResponsesOut includes
	EntriesOut                         uint64
	Expired                            uint64 // routes that timed out
}

// NewSpeaker returns a Speaker that sends nothing until Start.
func NewSpeaker(cfg Config) (*Speaker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Speaker{cfg: cfg, gateways: make(map[Neighbor]*gateway)}
	for _, f := range cfg.Interfaces {
		s.ports = append(s.ports, newPort(f))
	}
	for _, n := range cfg.Neighbors {
		for n.Iface >= len(s.ports) {
			s.ports = append(s.ports, newPort(Interface{}))
		}
	}
	for _, n := range cfg.Neighbors {
		g := &gateway{Neighbor: n, port: s.ports[n.Iface], configured: true}
		s.gateways[n] = g
		g.port.neighborsOnly = true
		if o := s.unicastOutlet(g); o != nil {
			g.outlet = o
			s.outlets = append(s.outlets, o)
		}
	}
	if cfg.Dialect != Course {
		for i, p := range s.ports {
			if o := s.linkOutlet(i, p); o != nil {
				s.outlets = append(s.outlets, o)
			}
		}
	}
	return s, nil
}

// Start sends every neighbor a request (RFC 2453 §3.9.1) and the table, as the course's nodes do.
// It also starts the periodic updates.
func (s *Speaker) Start(now clock.Time) {
	s.started = true
	s.periodic = now.Add(s.period())
	s.changesWait = false // the table includes the changes
	for _, o := range s.outlets {
		if o.port.up {
			o.scheduleInitial()
		}
	}
}

// period draws the time to the next full update. RFC 2453 §3.8: a random offset prevents routers
// from synchronizing.
func (s *Speaker) period() time.Duration {
	if s.cfg.PeriodicOffset <= 0 {
		return s.cfg.Periodic
	}
	return s.cfg.Periodic + between(s.cfg.Rand, -s.cfg.PeriodicOffset, s.cfg.PeriodicOffset)
}

// between draws a random time from least to most.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}

// Deadline returns the time for the next call of Advance.
func (s *Speaker) Deadline() clock.Time {
	t := clock.Earliest(s.periodic, s.table.next(), s.requestAt)
	if s.changesWait && s.heldUntil != clock.Never {
		t = clock.Earliest(t, s.heldUntil)
	}
	return t
}

// Advance expires routes that were not refreshed, deletes unreachable routes, and starts the full
// update when it is due.
func (s *Speaker) Advance(now clock.Time) {
	for s.table.learned.first().Due(now) {
		s.expire(now, s.table.learned.head)
	}
	for s.table.garbage.first().Due(now) {
		s.table.forget(s.table.garbage.head)
	}
	if s.requestAt.Due(now) {
		s.requestAt = clock.Never
		s.requestTables(now)
	}
	if s.periodic.Due(now) {
		period := s.period()
		s.periodic = s.periodic.Add(period)
		if s.periodic.Due(now) { // if the caller was late, the missed updates are skipped
			s.periodic = now.Add(period)
		}
		for _, o := range s.outlets {
			o.full = o.port.up
		}
		s.changesWait = false // the full update includes the changes
	}
	s.release(now)
}

// NextChange returns the next change of the learned routes, or false if there is no change. It does
// not return the router's own networks.
func (s *Speaker) NextChange() (Change, bool) {
	for len(s.changes) > 0 {
		r := s.changes[0]
		s.changes = s.changes[1:]
		r.pending = false
		if r.via != nil {
			r.installed = true
			c := Change{Prefix: r.prefix, NextHop: r.hop, Iface: r.via.Iface, Cost: r.cost}
			s.addEvent(Event{
				Kind: RouteLearned, Neighbor: c.NextHop, Iface: c.Iface,
				Prefix: c.Prefix, Cost: c.Cost,
			})
			return c, true
		}
		if r.installed {
			r.installed = false
			s.addEvent(Event{Kind: RouteLost, Prefix: r.prefix})
			return Change{Prefix: r.prefix, Gone: true}, true
		}
	}
	s.changes = nil
	return Change{}, false
}

// Counters returns the Speaker's counters.
func (s *Speaker) Counters() Counters { return s.counters }

// Refused returns the counts of the reasons that occurred, in a fixed order.
func (s *Speaker) Refused() []Refused {
	var list []Refused
	for r, n := range s.refused {
		if n > 0 {
			list = append(list, Refused{Refusal(r), n})
		}
	}
	return list
}

// Timers returns the current timers.
func (s *Speaker) Timers() Timers { return s.cfg.Timers }

// SetTimers changes the timers. Running timers keep their deadlines, except that the next full
// update is at most a new period away.
func (s *Speaker) SetTimers(now clock.Time, t Timers) error {
	t = t.WithDefaults(s.cfg.Dialect)
	if err := t.validate(); err != nil {
		return err
	}
	s.cfg.Timers = t
	if s.started {
		s.periodic = min(s.periodic, now.Add(s.period()))
	}
	return nil
}

// publish queues a changed route for the owner and for every neighbor.
func (s *Speaker) publish(now clock.Time, r *route) {
	r.changedAt = now
	if !r.pending {
		r.pending = true
		s.changes = append(s.changes, r)
	}
	for _, o := range s.outlets {
		if o.port.up {
			o.addChanged(r, len(s.table.byPrefix))
			s.changesWait = true
		}
	}
}

// release sends the queued changes to all outlets when their delay has passed. RFC 2453 §3.10.1:
// after a triggered update the next one waits for a random time and contains all changes until
// then.
func (s *Speaker) release(now clock.Time) {
	if !s.changesWait || s.heldUntil != clock.Never && now < s.heldUntil {
		return
	}
	s.changesWait, s.heldUntil = false, clock.Never
	released := false
	for _, o := range s.outlets {
		o.released = len(o.changed) > 0
		released = released || o.released
	}
	if released && s.cfg.TriggerMax > 0 {
		s.triggeredAt = now
		s.heldUntil = now.Add(between(s.cfg.Rand, max(s.cfg.TriggerMin, 0), s.cfg.TriggerMax))
	}
}

// shortenDelay shortens the delay of triggered updates to the minimum of RFC 2453 §3.10.1. It is
// for changes of the router's own links, because packets are lost until a dead link is withdrawn.
func (s *Speaker) shortenDelay() {
	if s.heldUntil != clock.Never {
		s.heldUntil = min(s.heldUntil, s.triggeredAt.Add(max(s.cfg.TriggerMin, 0)))
	}
}
