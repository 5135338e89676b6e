package rip

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ErrConfig is what NewSpeaker's errors wrap.
var ErrConfig = errors.New("rip: bad configuration")

// Speaker is one router's RIP. Its owner calls it from one goroutine, and after
// any call drains Output and NextChange until they say no.
type Speaker struct {
	cfg      Config
	ports    []*port
	outlets  []*outlet // whom updates go to, in the order of the configuration
	answers  []*outlet // whom an answer is owed to, and nothing else
	replies  []reply
	gateways map[uint64]*gateway
	table    table

	started   bool
	periodic  clock.Time // the next full update
	askAt     clock.Time // when to ask for what has been lost
	asked     clock.Time // when that was last done
	news      bool       // something has changed that waits for heldUntil
	heldUntil clock.Time
	toldAt    clock.Time // the last triggered update

	changes  []*route // what the owner has not been told yet
	counters Counters
	refused  [numRefusals]uint64
	events   []Event
	watched  bool

	parsed  []Entry // ParsePacket's memory
	parsed2 []Entry2
	entries []Entry // a message in the making
	payload []byte  // the message that the last Output lent
}

// Change is one line of news for the owner's routing table.
type Change struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
	Iface   int
	Cost    int
	Gone    bool // the route that was there is not any more; only Prefix is set
}

// Counters count since NewSpeaker.
type Counters struct {
	RequestsIn, ResponsesIn   uint64
	RequestsOut, ResponsesOut uint64
	TriggeredOut              uint64 // of ResponsesOut, those that carried news only
	EntriesIn, EntriesOut     uint64
	Malformed                 uint64 // messages refused for their form
	Strangers                 uint64 // messages refused for their sender
	BadEntries                uint64 // entries ignored in messages that were taken
	TableFull                 uint64 // entries ignored for want of room
	Expired                   uint64 // routes that nobody refreshed
}

// NewSpeaker returns a Speaker that is silent until Start.
func NewSpeaker(cfg Config) (*Speaker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Speaker{cfg: cfg, gateways: make(map[uint64]*gateway)}
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
		s.gateways[gatewayKey(n.Addr, n.Iface)] = g
		g.port.listed = true
		if o := s.unicast(g); o != nil {
			g.outlet = o
			s.outlets = append(s.outlets, o)
		}
	}
	if cfg.Dialect == RIPv2 {
		for i, p := range s.ports {
			if o := s.everybody(i, p); o != nil {
				s.outlets = append(s.outlets, o)
			}
		}
	}
	return s, nil
}

// Start sends every neighbour a request (RFC 2453 §3.9.1) and our own table,
// as the family's nodes do, and begins the periodic updates.
func (s *Speaker) Start(now clock.Time) {
	s.started = true
	s.periodic = now.Add(s.period())
	s.news = false // it is in the table
	for _, o := range s.outlets {
		if o.port.up {
			o.introduce()
		}
	}
}

// period is the time to the next full update. RFC 2453 §3.8: a random offset, drawn
// anew each time, keeps routers from falling into step.
func (s *Speaker) period() time.Duration {
	if s.cfg.PeriodicOffset <= 0 {
		return s.cfg.Periodic
	}
	return s.cfg.Periodic + between(s.cfg.Rand, -s.cfg.PeriodicOffset, s.cfg.PeriodicOffset)
}

// between draws a time from least to most.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1))
}

// Deadline returns when Advance is to be called.
func (s *Speaker) Deadline() clock.Time {
	t := clock.Earliest(s.periodic, s.table.next(), s.askAt)
	if s.news && s.heldUntil != clock.Never {
		t = clock.Earliest(t, s.heldUntil)
	}
	return t
}

// Advance expires what nobody refreshed, forgets what has been dead for long
// enough, and starts the full update when its time has come.
func (s *Speaker) Advance(now clock.Time) {
	for s.table.learned.first().Due(now) {
		s.expire(now, s.table.learned.head)
	}
	for s.table.dead.first().Due(now) {
		s.table.forget(s.table.dead.head)
	}
	if s.askAt.Due(now) {
		s.askAt = clock.Never
		s.ask(now)
	}
	if s.periodic.Due(now) {
		period := s.period()
		s.periodic = s.periodic.Add(period)
		if s.periodic.Due(now) { // whoever drives us was away: no burst to make up for it
			s.periodic = now.Add(period)
		}
		for _, o := range s.outlets {
			o.full = o.port.up
		}
		s.news = false // it is in the full update
	}
	s.release(now)
}

func (s *Speaker) expire(now clock.Time, r *route) {
	s.counters.Expired++
	g := r.via
	s.tell(Event{Kind: RouteExpired, Neighbor: g.Addr, Iface: g.Iface, Prefix: r.prefix})
	s.kill(now, r)
	if g.routes == 0 && s.isSilent(now, g) {
		s.tell(Event{Kind: NeighborSilent, Neighbor: g.Addr, Iface: g.Iface})
	}
}

// NextChange returns the next change of what has been learned, until there is
// none. Our own networks are not among it.
func (s *Speaker) NextChange() (Change, bool) {
	for len(s.changes) > 0 {
		r := s.changes[0]
		s.changes = s.changes[1:]
		r.unsaid = false
		if r.via != nil {
			r.installed = true
			c := Change{Prefix: r.prefix, NextHop: r.hop, Iface: r.via.Iface, Cost: r.cost}
			s.tell(Event{
				Kind: RouteLearned, Neighbor: c.NextHop, Iface: c.Iface,
				Prefix: c.Prefix, Cost: c.Cost,
			})
			return c, true
		}
		if r.installed {
			r.installed = false
			s.tell(Event{Kind: RouteLost, Prefix: r.prefix})
			return Change{Prefix: r.prefix, Gone: true}, true
		}
	}
	s.changes = nil
	return Change{}, false
}

// Counters returns what has been counted.
func (s *Speaker) Counters() Counters {
	c := s.counters
	c.Malformed = s.refused[RefusedForm] + s.refused[RefusedCommand]
	c.Strangers = s.refused[RefusedStranger] + s.refused[RefusedInterface] +
		s.refused[RefusedOffLink] + s.refused[RefusedOwn]
	c.TableFull = s.refused[RefusedTableFull]
	c.BadEntries = s.refused[RefusedFamily] + s.refused[RefusedMask] + s.refused[RefusedMartian] +
		s.refused[RefusedMetric] + s.refused[RefusedNextHop]
	return c
}

// Timers returns the times that are in force.
func (s *Speaker) Timers() Timers { return s.cfg.Timers }

// SetTimers changes the times. What waits already keeps its instant, but for the next
// full update, which is not further away than the new period.
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

// kill makes a route unreachable and starts the time after which it is
// forgotten (RFC 2453 §3.8: the garbage-collection timer).
func (s *Speaker) kill(now clock.Time, r *route) {
	if s.cfg.HoldDown > 0 {
		r.heldUntil, r.lost = now.Add(s.cfg.HoldDown), r.cost
	}
	r.setVia(nil)
	r.cost, r.hop = Infinity, netip.Addr{}
	s.table.schedule(r, now.Add(s.cfg.Garbage))
	s.askLater(now)
	s.publish(now, r)
}

// askLater has the neighbours asked for another way when a route has died.
// RFC 2453 §3.9.1 has requests sent by who seeks "to fill in their routing tables as
// quickly as possible", which after a cut saves up to a whole period. It waits a
// moment, so that the bad news overtakes who still believes in the old way, and
// asks once a period at most, so that a flapping link does not multiply.
func (s *Speaker) askLater(now clock.Time) {
	tooSoon := s.asked != clock.Never && now.Sub(s.asked) < s.cfg.Periodic
	if s.started && s.askAt == clock.Never && s.cfg.AskAfter > 0 && !tooSoon {
		s.askAt = now.Add(s.cfg.AskAfter)
	}
}

// ask owes every neighbour a request, if a route is still missing.
func (s *Speaker) ask(now clock.Time) {
	if s.table.dead.head == nil {
		return
	}
	s.asked = now
	for _, o := range s.outlets {
		o.request = o.port.up
	}
}

// publish tells the owner and every neighbour that a route has changed.
func (s *Speaker) publish(now clock.Time, r *route) {
	r.changedAt = now
	if !r.unsaid {
		r.unsaid = true
		s.changes = append(s.changes, r)
	}
	for _, o := range s.outlets {
		if o.port.up {
			o.owe(r, len(s.table.byPrefix))
			s.news = true
		}
	}
}

// release lets the news go that has waited long enough, everywhere at once. RFC 2453
// §3.10.1: after a triggered update the next waits for a random time, and is one
// update then.
func (s *Speaker) release(now clock.Time) {
	if !s.news || s.heldUntil != clock.Never && now < s.heldUntil {
		return
	}
	s.news, s.heldUntil = false, clock.Never
	released := false
	for _, o := range s.outlets {
		o.released = len(o.changed) > 0
		released = released || o.released
	}
	if released && s.cfg.TriggerMax > 0 {
		s.toldAt = now
		s.heldUntil = now.Add(between(s.cfg.Rand, max(s.cfg.TriggerMin, 0), s.cfg.TriggerMax))
	}
}

// hurry has news of our own links wait no longer than the least that RFC 2453 §3.10.1
// allows: what is withdrawn late is a black hole until then.
func (s *Speaker) hurry() {
	if s.heldUntil != clock.Never {
		s.heldUntil = min(s.heldUntil, s.toldAt.Add(max(s.cfg.TriggerMin, 0)))
	}
}
