package sim

import "github.com/tidepool-net/tidepool/internal/clock"

// actor is somebody with an instant at which to act.
type actor struct {
	acts  interface{ act(now clock.Time) }
	due   clock.Time // never: not in the agenda
	place int        // in the heap
}

// agenda is a heap of the actors that are due some time, each parent with four children: a
// cache line and a half has them all.
type agenda struct {
	heap   []entry
	order  uint64
	acting *actor // the first, whose turn it is: nearly always it is set again
}

// entry is an actor in the heap, with what it is compared by.
type entry struct {
	due   clock.Time
	order uint64 // among those of one instant
	actor *actor
}

// children is how many an entry of the heap has.
const children = 4

// set files a under due, or strikes it when due is never. Whoever is set to the
// instant it has already keeps its turn.
func (g *agenda) set(a *actor, due clock.Time) {
	if a == g.acting {
		g.acting = nil
	} else if due == a.due {
		return
	}
	if due == clock.Never {
		g.remove(a)
		return
	}
	g.order++
	e, filed := entry{due, g.order, a}, a.due != clock.Never
	a.due = due
	switch {
	case !filed:
		g.heap = append(g.heap, e)
		g.up(len(g.heap)-1, e)
	case a.place > 0 && e.before(&g.heap[(a.place-1)/children]):
		g.up(a.place, e)
	default:
		g.down(a.place, e)
	}
}

func (g *agenda) remove(a *actor) {
	last := len(g.heap) - 1
	e := g.heap[last]
	g.heap[last] = entry{}
	g.heap = g.heap[:last]
	a.due = clock.Never
	if a == e.actor {
		return
	}
	if at := a.place; at > 0 && e.before(&g.heap[(at-1)/children]) {
		g.up(at, e)
	} else {
		g.down(at, e)
	}
}

// begin has the first actor's turn begin: it stays where it is until it is set, or until
// end. Nobody can come before it.
func (g *agenda) begin(a *actor) { g.acting = a }

// end has the turn of an actor end: if it was not set to another instant, it has none.
func (g *agenda) end() {
	if a := g.acting; a != nil {
		g.acting = nil
		g.remove(a)
	}
}

// first returns the actor that is due first, nil when nobody is.
func (g *agenda) first() *actor {
	if len(g.heap) == 0 {
		return nil
	}
	return g.heap[0].actor
}

func (e *entry) before(f *entry) bool {
	return e.due < f.due || e.due == f.due && e.order < f.order
}

// up puts e at i, or nearer to the front.
func (g *agenda) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / children
		if !e.before(&g.heap[parent]) {
			break
		}
		g.put(i, g.heap[parent])
		i = parent
	}
	g.put(i, e)
}

// down puts e at i, or farther from the front.
func (g *agenda) down(i int, e entry) {
	for {
		first := children*i + 1
		if first >= len(g.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(g.heap)); c++ {
			if g.heap[c].before(&g.heap[least]) {
				least = c
			}
		}
		if !g.heap[least].before(&e) {
			break
		}
		g.put(i, g.heap[least])
		i = least
	}
	g.put(i, e)
}

func (g *agenda) put(i int, e entry) {
	g.heap[i] = e
	e.actor.place = i
}
