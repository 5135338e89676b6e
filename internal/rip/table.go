package rip

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// route is the route of one prefix. It is own if own is not empty, learned if via is set, and
// otherwise unreachable.
type route struct {
	prefix netip.Prefix
	key    key    // key of prefix
	cost   int    // Infinity if unreachable
	tag    uint16 // tag that is kept and announced (RFC 2453 §4.2)
	hop    netip.Addr
	via    *gateway // router that announced the route
	own    []own    // sources of an own prefix, the best first

	due        clock.Time // time of expiry of a learned route, or of deletion of an unreachable one
	queue      *queue     // the timer queue that contains it
	prev, next *route
	changedAt  clock.Time
	heldUntil  clock.Time // of an unreachable route: until then, only a cost below lost is accepted
	lost       int

	removed   bool // the route was removed from the table; some list may still contain it
	pending   bool // Speaker.changes contains the route
	installed bool // the owner's routing table contains the route
}

// own is a source of an own prefix: an interface that is up, or an External of the owner. For an
// External, iface is -1 or the interface of its next hop.
type own struct {
	iface int
	cost  int
	tag   uint16
	hop   netip.Addr // next hop; zero: this router
	local bool
}

func (r *route) isOwn() bool { return len(r.own) > 0 }

// table contains the routes by prefix, and two queues of the times of expiry and deletion.
type table struct {
	byPrefix map[key]*route
	all      []*route // sorted routes, including some removed ones; never changed in place
	added    []*route // routes not yet in all
	holes    bool     // all contains removed routes
	learned  queue
	garbage  queue // unreachable routes
}

// key is a prefix as numbers, for fast lookups: the halves of the address and the prefix length.
type key struct{ hi, lo, bits uint64 }

func keyOf(p netip.Prefix) key {
	b := p.Addr().As16()
	return key{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), uint64(p.Bits())}
}

// compareRoutes orders routes by address, then by prefix length.
func compareRoutes(a, b *route) int {
	return cmp.Or(cmp.Compare(a.key.hi, b.key.hi), cmp.Compare(a.key.lo, b.key.lo),
		cmp.Compare(a.key.bits, b.key.bits))
}

func (t *table) find(p netip.Prefix) *route { return t.byPrefix[keyOf(p)] }

// add adds an unreachable route for a new prefix.
func (t *table) add(p netip.Prefix) *route {
	r := &route{prefix: p, key: keyOf(p), cost: Infinity}
	if t.byPrefix == nil {
		t.byPrefix = make(map[key]*route)
	}
	t.byPrefix[r.key] = r
	t.added = append(t.added, r)
	return r
}

func (t *table) forget(r *route) {
	t.unschedule(r)
	r.removed = true
	t.holes = true
	delete(t.byPrefix, r.key)
}

// sorted returns all routes in order. After a change, it returns a new slice.
func (t *table) sorted() []*route {
	if len(t.added) == 0 && !t.holes {
		return t.all
	}
	slices.SortFunc(t.added, compareRoutes)
	merged := make([]*route, 0, len(t.byPrefix))
	keep := func(r *route) {
		if !r.removed {
			merged = append(merged, r)
		}
	}
	added := t.added
	for _, r := range t.all {
		for len(added) > 0 && compareRoutes(added[0], r) < 0 {
			keep(added[0])
			added = added[1:]
		}
		keep(r)
	}
	for _, r := range added {
		keep(r)
	}
	t.all, t.added, t.holes = merged, nil, false
	return merged
}

// schedule sets when a learned route expires or an unreachable one is deleted.
func (t *table) schedule(r *route, due clock.Time) {
	t.unschedule(r)
	r.due = due
	if r.via != nil {
		t.learned.insert(r)
	} else {
		t.garbage.insert(r)
	}
}

// unschedule stops a route's timer.
func (t *table) unschedule(r *route) {
	if r.queue != nil {
		r.queue.remove(r)
	}
	r.due = clock.Never
}

// next returns the next time at which a route expires or is deleted.
func (t *table) next() clock.Time { return clock.Earliest(t.learned.first(), t.garbage.first()) }

// queue is a list of routes by deadline. All routes of a queue have the same lifetime, so a new one
// nearly always belongs at the end, and the cost of a refresh does not depend on the size of the
// table.
type queue struct{ head, tail *route }

func (q *queue) first() clock.Time {
	if q.head == nil {
		return clock.Never
	}
	return q.head.due
}

func (q *queue) insert(r *route) {
	at := q.tail
	for at != nil && at.due > r.due {
		at = at.prev
	}
	r.queue, r.prev = q, at
	if at == nil {
		r.next, q.head = q.head, r
	} else {
		r.next, at.next = at.next, r
	}
	if r.next == nil {
		q.tail = r
	} else {
		r.next.prev = r
	}
}

func (q *queue) remove(r *route) {
	if r.prev == nil {
		q.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		q.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.queue, r.prev, r.next = nil, nil, nil
}
