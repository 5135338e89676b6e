package sim

import (
	"math"
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// actor is anything that acts at a scheduled time.
type actor struct {
	acts  interface{ act(now clock.Time) }
	due   clock.Time // never: not in the agenda
	place uint32     // in the agenda
}

// agenda finds the earliest actor by a tournament: a tree with the actors at its leaves, whose
// other nodes each hold the winner of two. A change replays the matches up to the root. Winners are
// random, so no branch depends on them.
type agenda struct {
	tree   []term   // the root is 1, the children of i are 2i and 2i+1; the second half are leaves
	actors []*actor // by place
	free   []uint32 // places
	order  uint64
	acting *actor // the first, whose turn it is: nearly always it is set again
}

// term is what an actor is compared by: its instant, and its turn among those of one instant,
// which no two share. The last bits of the turn are the actor's place.
type term struct{ due, turn uint64 }

func (t term) place() uint32 { return uint32(t.turn & (mostPlaces - 1)) }

// idle is later than any instant: the term of a place that is free.
const idle = math.MaxUint64

// mostPlaces leaves room for 2^40 turns, which take days.
const (
	placeBits  = 24
	mostPlaces = 1 << placeBits
)

// leastPlaces is how many places an agenda begins with, a power of two.
const leastPlaces = 16

// set schedules a at due, or removes it if due is never. An unchanged time keeps its place among
// equal ones.
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
	if a.due == clock.Never {
		g.place(a)
	}
	g.order++
	a.due = due
	g.play(a.place, uint64(due))
}

func (g *agenda) place(a *actor) {
	if len(g.free) == 0 {
		g.grow()
	}
	last := len(g.free) - 1
	a.place, g.free = g.free[last], g.free[:last]
	g.actors[a.place] = a
}

func (g *agenda) remove(a *actor) {
	g.play(a.place, idle)
	g.actors[a.place] = nil
	g.free = append(g.free, a.place)
	a.due = clock.Never
}

// play gives a place an instant and the latest turn, and has it play against its neighbours, up
// to the root.
func (g *agenda) play(place uint32, due uint64) {
	tree := g.tree
	t := term{due, g.order<<placeBits | uint64(place)}
	i := len(tree)/2 + int(place)
	tree[i] = t
	for i > 1 {
		o := tree[i^1]
		// The borrow of a subtraction says which of two numbers of 128 bits is less.
		_, less := bits.Sub64(o.turn, t.turn, 0)
		_, less = bits.Sub64(o.due, t.due, less)
		mask := -less // all ones if the other one wins
		t.due ^= (t.due ^ o.due) & mask
		t.turn ^= (t.turn ^ o.turn) & mask
		i /= 2
		tree[i] = t
	}
}

func (g *agenda) grow() {
	was := len(g.tree) / 2
	n := max(leastPlaces, 2*was)
	if n > mostPlaces {
		panic("BUG: sim: too many actors")
	}
	leaves := g.tree[was:]
	g.tree = make([]term, 2*n)
	g.actors = append(g.actors, make([]*actor, n-len(g.actors))...)
	for i := n - 1; i >= was; i-- {
		g.tree[n+i] = term{idle, uint64(i)}
		g.free = append(g.free, uint32(i))
	}
	copy(g.tree[n:], leaves)
	for i := n - 1; i > 0; i-- {
		a, b := g.tree[2*i], g.tree[2*i+1]
		if b.due < a.due || b.due == a.due && b.turn < a.turn {
			a = b
		}
		g.tree[i] = a
	}
}

// begin begins the first actor's turn. The actor keeps its place until set or end; none can come
// before it.
func (g *agenda) begin(a *actor) { g.acting = a }

// end ends the turn of an actor. If it did not set another time, it has no further turn.
func (g *agenda) end() {
	if a := g.acting; a != nil {
		g.acting = nil
		g.remove(a)
	}
}

// first returns the earliest actor, or nil.
func (g *agenda) first() *actor {
	if len(g.tree) == 0 {
		return nil
	}
	return g.actors[g.tree[1].place()]
}
