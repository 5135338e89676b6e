package sim

import "github.com/tidepool-net/tidepool/internal/clock"

// actor is somebody with an instant at which to act.
type actor struct {
	acts  interface{ act(now clock.Time) }
	due   clock.Time // never: not in the agenda
	order uint64     // among those of one instant
	place int        // in the heap
}

// agenda is a binary heap of the actors that are due some time.
type agenda struct {
	heap   []*actor
	order  uint64
	acting *actor // the first, whose turn it is: nearly always it is set again
}

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
	if a.due == clock.Never {
		a.place = len(g.heap)
		g.heap = append(g.heap, a)
	}
	a.due, a.order = due, g.order
	if !g.up(a) {
		g.down(a)
	}
}

func (g *agenda) remove(a *actor) {
	last := len(g.heap) - 1
	b := g.heap[last]
	g.heap[last] = nil
	g.heap = g.heap[:last]
	a.due = clock.Never
	if a == b {
		return
	}
	b.place = a.place
	g.heap[b.place] = b
	if !g.up(b) {
		g.down(b)
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
	return g.heap[0]
}

func (a *actor) before(b *actor) bool {
	return a.due < b.due || a.due == b.due && a.order < b.order
}

func (g *agenda) up(a *actor) bool {
	i := a.place
	for i > 0 {
		parent := (i - 1) / 2
		if !a.before(g.heap[parent]) {
			break
		}
		g.move(i, g.heap[parent])
		i = parent
	}
	moved := i != a.place
	g.move(i, a)
	return moved
}

func (g *agenda) down(a *actor) {
	i := a.place
	for {
		child := 2*i + 1
		if child >= len(g.heap) {
			break
		}
		if r := child + 1; r < len(g.heap) && g.heap[r].before(g.heap[child]) {
			child = r
		}
		if !g.heap[child].before(a) {
			break
		}
		g.move(i, g.heap[child])
		i = child
	}
	g.move(i, a)
}

func (g *agenda) move(i int, a *actor) {
	g.heap[i] = a
	a.place = i
}
