package rip

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ErrConfig is what NewSpeaker's errors wrap.
var ErrConfig = errors.New("rip: bad configuration")

// Speaker is one router's RIP. Its owner calls it from one goroutine, and after
// any call drains Output and NextChange until they say no.
type Speaker struct {
	cfg       Config
	neighbors []*neighbor // as configured
	table     table
	started   bool
	periodic  clock.Time // the next full update
	askAt     clock.Time // when to ask for what has been lost
	asked     clock.Time // when that was last done

	changes  []*route // what the owner has not been told yet
	counters Counters
	parsed   []Entry // ParsePacket's memory
	entries  []Entry // a message in the making
	payload  []byte  // the message that the last Output lent
}

// neighbor is a configured neighbour and what it is still to be sent.
type neighbor struct {
	Neighbor
	entrySize int
	up        bool // its interface is
	leaving   bool // it is going down: everything is beyond Infinity there

	request bool     // owed: a request
	full    bool     // owed: the whole table
	changed []*route // owed: news, in the order of its arrival
	sending []*route // the update that is under way, sorted; what is left of it
	news    bool     // sending is a triggered update
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
	s := &Speaker{cfg: cfg, neighbors: make([]*neighbor, len(cfg.Neighbors))}
	for i, n := range cfg.Neighbors {
		s.neighbors[i] = &neighbor{Neighbor: n, entrySize: cfg.EntrySize, up: true}
	}
	return s, nil
}

// Start sends every neighbour a request (RFC 2453 §3.9.1) and our own table,
// as the family's nodes do, and begins the periodic updates.
func (s *Speaker) Start(now clock.Time) {
	s.started = true
	s.periodic = now.Add(s.cfg.Periodic)
	for _, n := range s.neighbors {
		if n.up {
			n.introduce()
		}
	}
}

// Farewell owes the neighbours on an interface that is about to go down a last
// update, in which nothing can be reached through us. Without it they would
// send to us until their routes time out. The caller fetches it with Output,
// then says SetLocal.
func (s *Speaker) Farewell(iface int) {
	for _, n := range s.neighbors {
		if n.Iface == iface && n.up {
			n.leaving, n.request, n.full = true, false, true
			n.sending = nil
		}
	}
}

// SetLocal says that the network p of interface iface is up or down; -1 is for
// a network of ours that no interface has. Down, the network is withdrawn, and
// all that was learned through the interface dies with it, at once. Up again,
// the neighbours there are asked for what they know.
func (s *Speaker) SetLocal(now clock.Time, p netip.Prefix, iface int, up bool) {
	if !p.IsValid() || !p.Addr().Is4() {
		panic(fmt.Sprintf("BUG: rip: %v is not an IPv4 prefix", p))
	}
	if up {
		s.addLocal(p.Masked(), iface)
	} else {
		s.dropLocal(now, p.Masked(), iface)
	}
}

func (s *Speaker) addLocal(p netip.Prefix, iface int) {
	for _, n := range s.neighbors {
		if n.Iface == iface && !n.up {
			n.up = true
			if s.started {
				n.introduce()
			}
		}
	}
	r := s.table.byPrefix[p]
	if r == nil {
		r = s.table.add(p)
	}
	if !slices.Contains(r.locals, iface) {
		r.locals = append(r.locals, iface)
	}
	if r.cost != 0 {
		r.cost, r.via, r.due = 0, nil, clock.Never
		s.publish(r)
	}
}

func (s *Speaker) dropLocal(now clock.Time, p netip.Prefix, iface int) {
	for _, n := range s.neighbors {
		if n.Iface == iface {
			*n = neighbor{Neighbor: n.Neighbor, entrySize: n.entrySize}
		}
	}
	if r := s.table.byPrefix[p]; r != nil && slices.Contains(r.locals, iface) {
		r.locals = slices.DeleteFunc(r.locals, func(i int) bool { return i == iface })
		if !r.isLocal() {
			s.kill(now, r)
		}
	}
	for _, r := range s.table.sorted {
		if r.via != nil && r.via.Iface == iface {
			s.kill(now, r)
		}
	}
}

// Deadline returns when Advance is to be called.
func (s *Speaker) Deadline() clock.Time {
	return clock.Earliest(s.periodic, s.table.sweepAt, s.askAt)
}

// Advance expires what nobody refreshed, forgets what has been dead for long
// enough, and starts the full update when its time has come.
func (s *Speaker) Advance(now clock.Time) {
	if s.table.sweepAt.Due(now) {
		for _, r := range s.table.sweep(now) {
			s.counters.Expired++
			s.kill(now, r)
		}
	}
	if s.askAt.Due(now) {
		s.askAt = clock.Never
		s.ask(now)
	}
	if s.periodic.Due(now) {
		s.periodic = s.periodic.Add(s.cfg.Periodic)
		if s.periodic.Due(now) { // whoever drives us was away: no burst to make up for it
			s.periodic = now.Add(s.cfg.Periodic)
		}
		for _, n := range s.neighbors {
			n.full = n.up
		}
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
			return Change{
				Prefix: r.prefix, NextHop: r.via.Addr, Iface: r.via.Iface, Cost: r.cost,
			}, true
		}
		if r.installed {
			r.installed = false
			return Change{Prefix: r.prefix, Gone: true}, true
		}
	}
	s.changes = nil
	return Change{}, false
}

// Counters returns what has been counted.
func (s *Speaker) Counters() Counters { return s.counters }

// kill makes a route unreachable and starts the time after which it is
// forgotten (RFC 2453 §3.8: the garbage-collection timer).
func (s *Speaker) kill(now clock.Time, r *route) {
	r.cost, r.via = Infinity, nil
	s.table.schedule(r, now.Add(s.cfg.Garbage))
	s.askLater(now)
	s.publish(r)
}

// askLater has the neighbours asked for another way when a route has died. RFC
// 2453 §3.9.1 has requests sent by who seeks "to fill in their routing tables as
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
	if !slices.ContainsFunc(s.table.sorted, (*route).isDead) {
		return
	}
	s.asked = now
	for _, n := range s.neighbors {
		n.request = n.up
	}
}

// publish tells the owner and every neighbour that a route has changed.
func (s *Speaker) publish(r *route) {
	if !r.unsaid {
		r.unsaid = true
		s.changes = append(s.changes, r)
	}
	for _, n := range s.neighbors {
		if n.up {
			n.tell(r, len(s.table.sorted))
		}
	}
}
