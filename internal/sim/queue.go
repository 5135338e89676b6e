package sim

import (
	"math"
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// actor is anything that acts at a scheduled time.
type actor struct {
	acts  interface{ act(now clock.Time) }
	due   clock.Time // time of the next action; Never: the actor is not in the event queue
	place uint32     // index of the actor's leaf
}

// eventQueue finds the actor that is due first by a tournament tree: the actors are the leaves, and
// each inner node has the earlier of its two children. A change updates the nodes up to the root.
// The results of the comparisons are random, so the code avoids branches that depend on them.
type eventQueue struct {
	tree   []key    // root 1, children of i at 2i and 2i+1; the second half are leaves
	actors []*actor // actors by place
	free   []uint32 // places that are not in use
	order  uint64
	acting *actor // actor that is running; it is nearly always scheduled again
}

// key orders the actors: by the instant at which they are due, and then by turn, the order in which
// they were scheduled. The last bits of the turn are the actor's place.
type key struct{ due, turn uint64 }

func (t key) place() uint32 { return uint32(t.turn & (maxPlaces - 1)) }

// idle is the instant of a free place. It is later than any other.
const idle = math.MaxUint64

// maxPlaces leaves room for 2^40 turns, which last for days.
const (
	placeBits = 24
	maxPlaces = 1 << placeBits
)

// minPlaces is the initial number of places. It is a power of two.
const minPlaces = 16

// set schedules a at due, or removes it if due is clock.Never. An actor whose time does not change
// keeps its position among the actors that are due at the same time.
func (q *eventQueue) set(a *actor, due clock.Time) {
	if a == q.acting {
		q.acting = nil
	} else if due == a.due {
		return
	}
	if due == clock.Never {
		q.remove(a)
		return
	}
	if a.due == clock.Never {
		q.place(a)
	}
	q.order++
	a.due = due
	q.play(a.place, uint64(due))
}

func (q *eventQueue) place(a *actor) {
	if len(q.free) == 0 {
		q.grow()
	}
	last := len(q.free) - 1
	a.place, q.free = q.free[last], q.free[:last]
	q.actors[a.place] = a
}

func (q *eventQueue) remove(a *actor) {
	q.play(a.place, idle)
	q.actors[a.place] = nil
	q.free = append(q.free, a.place)
	a.due = clock.Never
}

// play gives a place an instant and the latest turn. Then it updates the inner nodes up to the
// root.
func (q *eventQueue) play(place uint32, due uint64) {
	tree := q.tree
	t := key{due, q.order<<placeBits | uint64(place)}
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

func (q *eventQueue) grow() {
	was := len(q.tree) / 2
	n := max(minPlaces, 2*was)
	if n > maxPlaces {
		panic("BUG: sim: too many actors")
	}
	leaves := q.tree[was:]
	q.tree = make([]key, 2*n)
	q.actors = append(q.actors, make([]*actor, n-len(q.actors))...)
	for i := n - 1; i >= was; i-- {
		q.tree[n+i] = key{idle, uint64(i)}
		q.free = append(q.free, uint32(i))
	}
	copy(q.tree[n:], leaves)
	for i := n - 1; i > 0; i-- {
		a, b := q.tree[2*i], q.tree[2*i+1]
		if b.due < a.due || b.due == a.due && b.turn < a.turn {
			a = b
		}
		q.tree[i] = a
	}
}

// begin marks the first actor as running. It keeps its place until set or end is called, because no
// other actor can be due before it.
func (q *eventQueue) begin(a *actor) { q.acting = a }

// end removes the running actor from the queue, unless it was scheduled again.
func (q *eventQueue) end() {
	if a := q.acting; a != nil {
		q.acting = nil
		q.remove(a)
	}
}

func (q *eventQueue) first() *actor {
	if len(q.tree) == 0 {
		return nil
	}
	return q.actors[q.tree[1].place()]
}
