package rip

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// route is what is known about one prefix: ours if own is not empty, learned if via
// is set, dead otherwise.
type route struct {
	prefix netip.Prefix
	key    uint64 // prefix as a number, in its order
	cost   int    // Infinity if dead
	tag    uint16 // RFC 2453 §4.2: kept, and told again
	hop    netip.Addr
	via    *gateway // who it was learned from
	own    []own    // why it is ours, the best reason first

	due        clock.Time // learned: when it expires; dead: when it is forgotten
	queue      *queue     // where it waits for that
	prev, next *route
	changedAt  clock.Time
	heldUntil  clock.Time // dead: until then only a shorter way than lost is believed
	lost       int

	forgotten bool // not in the table any more, though a list may still hold it
	unsaid    bool // on the owner's list of changes
	installed bool // the owner has it in its routing table
}

// own is one reason for a prefix to be ours: an interface on it that is up, or that
// the owner said so (iface is then -1, or where its next hop is).
type own struct {
	iface int
	cost  int
	tag   uint16
	hop   netip.Addr // who leads there, if it is not us
	local bool
}

func (r *route) isOwn() bool { return len(r.own) > 0 }

// table holds the routes by prefix, and those that will end by when they do.
type table struct {
	byPrefix map[uint64]*route
	all      []*route // every route, and perhaps some that are forgotten; never changed in place
	added    []*route // behind all
	holes    bool     // all has forgotten ones
	learned  queue
	dead     queue
}

// keyOf is a prefix as a number: routes in the order of their keys are in the order of
// their addresses, the shorter prefix first.
func keyOf(p netip.Prefix) uint64 {
	return uint64(word(p.Addr().As4()))<<6 | uint64(p.Bits())
}

func compareRoutes(a, b *route) int { return cmp.Compare(a.key, b.key) }

func (t *table) find(p netip.Prefix) *route { return t.byPrefix[keyOf(p)] }

// add makes a dead route to a prefix that the table does not have.
func (t *table) add(p netip.Prefix) *route {
	r := &route{prefix: p, key: keyOf(p), cost: Infinity}
	if t.byPrefix == nil {
		t.byPrefix = make(map[uint64]*route)
	}
	t.byPrefix[r.key] = r
	t.added = append(t.added, r)
	return r
}

// forget takes a route out.
func (t *table) forget(r *route) {
	t.unschedule(r)
	r.forgotten = true
	t.holes = true
	delete(t.byPrefix, r.key)
}

// sorted returns every route in order. The slice is lent for as long as its reader
// likes: the next one is made anew, when the table has changed.
func (t *table) sorted() []*route {
	if len(t.added) == 0 && !t.holes {
		return t.all
	}
	slices.SortFunc(t.added, compareRoutes)
	merged := make([]*route, 0, len(t.byPrefix))
	keep := func(r *route) {
		if !r.forgotten {
			merged = append(merged, r)
		}
	}
	added := t.added
	for _, r := range t.all {
		for len(added) > 0 && added[0].key < r.key {
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

// schedule sets the instant at which a learned route expires or a dead one is forgotten.
func (t *table) schedule(r *route, due clock.Time) {
	t.unschedule(r)
	r.due = due
	if r.via != nil {
		t.learned.insert(r)
	} else {
		t.dead.insert(r)
	}
}

// unschedule has a route stay as it is.
func (t *table) unschedule(r *route) {
	if r.queue != nil {
		r.queue.remove(r)
	}
	r.due = clock.Never
}

// next is when the first route ends.
func (t *table) next() clock.Time { return clock.Earliest(t.learned.first(), t.dead.first()) }

// queue is a list of routes in the order of their instants. All of one queue get the
// same time, so that what is inserted last is nearly always due last: to refresh a
// route takes no time that grows with the table.
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
