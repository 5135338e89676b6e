package rip

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// route is what is known about one prefix: ours if locals is not empty, learned
// if via is set, dead otherwise.
type route struct {
	prefix netip.Prefix
	cost   int        // 0 if ours, Infinity if dead
	via    *neighbor  // who it was learned from and leads through
	locals []int      // interfaces of ours that are on this network and up
	due    clock.Time // learned: when it expires; dead: when it is forgotten

	forgotten bool // not in the table any more, though a list may still hold it
	unsaid    bool // on the owner's list of changes
	installed bool // the owner has it in its routing table
}

func (r *route) isLocal() bool { return len(r.locals) > 0 }
func (r *route) isDead() bool  { return r.cost == Infinity }

// table holds the routes by prefix and in order.
type table struct {
	byPrefix map[netip.Prefix]*route
	sorted   []*route
	sweepAt  clock.Time // not after the first due of any route; may be early
}

func comparePrefix(r *route, p netip.Prefix) int { return r.prefix.Compare(p) }

func compareRoutes(a, b *route) int { return a.prefix.Compare(b.prefix) }

// add makes a dead route to a prefix that the table does not have.
func (t *table) add(p netip.Prefix) *route {
	r := &route{prefix: p, cost: Infinity}
	if t.byPrefix == nil {
		t.byPrefix = make(map[netip.Prefix]*route)
	}
	t.byPrefix[p] = r
	at, _ := slices.BinarySearchFunc(t.sorted, p, comparePrefix)
	t.sorted = slices.Insert(t.sorted, at, r)
	return r
}

// schedule sets the instant at which a route expires or is forgotten.
func (t *table) schedule(r *route, due clock.Time) {
	r.due = due
	t.sweepAt = clock.Earliest(t.sweepAt, due)
}

// sweep forgets the dead routes whose time has come and returns the learned
// ones that have expired, in order. The next sweep is set: a refresh only moves a
// route's instant away, so one look at all routes serves for a long time.
func (t *table) sweep(now clock.Time) (expired []*route) {
	t.sweepAt = clock.Never
	t.sorted = slices.DeleteFunc(t.sorted, func(r *route) bool {
		switch {
		case !r.due.Due(now):
			t.sweepAt = clock.Earliest(t.sweepAt, r.due)
		case r.via != nil:
			expired = append(expired, r)
		default:
			r.forgotten = true
			delete(t.byPrefix, r.prefix)
			return true
		}
		return false
	})
	return expired
}
