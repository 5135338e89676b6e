package sim

import (
	"math"
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// actor is anything that acts at a scheduled time.
type actor struct {
	acts  interface{ act(now clock.Time) }
	due   clock.Time // time of the next action; never: the actor is not in the agenda
	place uint32     // place of the actor in the agenda
}

// agenda finds the earliest actor by a tournament tree: the actors are the leaves, and each inner
// node holds the winner of its two children. A change replays the matches up to the root. Winners
// are random, so the code avoids branches that depend on them.
type agenda struct {
	tree   []term   // root 1, children of i at 2i and 2i+1; the second half are leaves
	actors []*actor // actors by place
	free   []uint32 // places that are not in use
	order  uint64
	acting *actor // actor whose turn it is; it is nearly always scheduled again
}

// term is the key by which actors are compared: the instant, and the turn among the actors of one
// instant. No two actors share a turn. The last bits of the turn are the actor's place.
type term struct{ due, turn uint64 }

func (t term) place() uint32 { return uint32(t.turn & (mostPlaces - 1)) }

// idle is the term of a free place. It is later than any instant.
const idle = math.MaxUint64

// mostPlaces leaves room for 2^40 turns, which last for days.
const (
	placeBits  = 24
	mostPlaces = 1 << placeBits
)

// leastPlaces is the initial number of places. It is a power of two.
const leastPlaces = 16

// set schedules a at due, or removes it if due is never. An actor whose time does not change keeps
// its place among those with equal times.
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

// play gives a place an instant and the latest turn. It then replays the matches of that place up
// to the root.
func (g *agenda) play(place uint32, due uint64) {
	tree := g.tree
	t := term{due, g.order<<placeBits | uint64(place)}
	i := len(tree)/2 + int(place)
	tree[i] = t
	for i > 1 {
		o := tree[i^1]
		// The borrow of the subtraction shows which of the two 128-bit numbers is smaller.
		_, less := bits.Sub64(o.turn, t.turn, 0)
		_, less = bits.Sub64(o.due, t.due, less)
		mask := -less // the mask is all ones if the other child wins
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

// begin begins the first actor's turn. The actor keeps its place until set or end is called,
// because no actor can precede it.
func (g *agenda) begin(a *actor) { g.acting = a }

// end ends the turn of an actor. An actor that did not set another time leaves the agenda.
func (g *agenda) end() {
	if a := g.acting; a != nil {
		g.acting = nil
		g.remove(a)
	}
}

func (g *agenda) first() *actor {
	if len(g.tree) == 0 {
		return nil
	}
	return g.actors[g.tree[1].place()]
}
