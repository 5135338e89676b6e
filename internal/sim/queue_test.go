package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The queue returns the actor that is due first, and of several at one time the actor that was
// scheduled first. Actors are added, removed and rescheduled at random.
func TestEventQueueOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var g eventQueue
	actors := make([]actor, 70)
	turns, turn := make([]int, len(actors)), 0
	set := func(i int, due clock.Time) {
		if due != actors[i].due || g.acting == &actors[i] {
			turn++
			turns[i] = turn
		}
		g.set(&actors[i], due)
	}
	for round := range 20_000 {
		i := r.IntN(1 + min(len(actors)-1, round/50))
		set(i, clock.Time(r.IntN(40))) // some of the times are never
		var want *actor
		for k := range actors {
			a := &actors[k]
			if a.due != clock.Never && (want == nil || a.due < want.due ||
				a.due == want.due && turns[k] < turns[want.index(actors)]) {
				want = a
			}
		}
		require.Same(t, want, g.first(), "round %d", round)
		if want == nil || r.IntN(3) > 0 {
			continue
		}
		g.begin(want)
		if r.IntN(4) > 0 {
			set(want.index(actors), want.due+clock.Time(r.IntN(5)))
		}
		set(r.IntN(len(actors)), clock.Time(1+r.IntN(40)))
		g.end()
	}
}

func (a *actor) index(all []actor) int {
	for i := range all {
		if a == &all[i] {
			return i
		}
	}
	return -1
}

// BenchmarkEventQueue reschedules the first actor in worlds with few and with many hosts.
func BenchmarkEventQueue(b *testing.B) {
	for _, c := range []struct {
		name   string
		actors int
	}{{"a dumbbell's", 28}, {"of a thousand hosts", 3000}} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			var g eventQueue
			all := make([]actor, c.actors)
			for i := range all {
				g.set(&all[i], clock.Time(1+r.Uint64N(20_000)))
			}
			var later [4096]clock.Time
			for i := range later {
				later[i] = clock.Time(1 + r.Uint64N(20_000))
			}
			for n := 0; b.Loop(); n++ {
				a := g.first()
				g.begin(a)
				g.set(a, a.due+later[n%len(later)])
				g.end()
			}
		})
	}
}
