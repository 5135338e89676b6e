package tcp

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

func TestDeadlinesAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var d deadlines
	conns := make([]*Conn, 50)
	for i := range conns {
		conns[i] = &Conn{}
		conns[i].links.heap = -1
	}
	for range 20000 {
		c := conns[rng.IntN(len(conns))]
		switch rng.IntN(4) {
		case 0:
			d.remove(c)
		case 1:
			d.set(c, clock.Never)
		default:
			d.set(c, clock.Time(1+rng.IntN(1000)))
		}
		first, n := clock.Never, 0
		for _, c := range conns {
			first = clock.Earliest(first, d.of(c))
			if c.links.heap >= 0 {
				n++
				require.Same(t, c, d.heap[c.links.heap].conn)
			}
		}
		require.Equal(t, first, d.first())
		require.Len(t, d.heap, n)
	}
}

func TestReadyList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var r readyConns
	var want []*Conn
	conns := make([]*Conn, 20)
	for i := range conns {
		conns[i] = &Conn{}
	}
	for range 5000 {
		i := rng.IntN(len(conns))
		c := conns[i]
		if !c.links.isReady {
			r.push(c)
			want = append(want, c)
		} else {
			r.remove(c)
			for j, w := range want {
				if w == c {
					want = append(want[:j:j], want[j+1:]...)
					break
				}
			}
		}
		var got []*Conn
		for c := r.by[0].first; c != nil; c = c.links.in[inReady].next {
			got = append(got, c)
		}
		require.Len(t, got, len(want))
		for j := range want {
			require.Same(t, want[j], got[j])
		}
	}
}

// BenchmarkDeadlines measures two changes of a deadline among many others: an acknowledgment that
// postpones it, and a deadline that comes due and is inserted again, which takes one path through
// the heap.
func BenchmarkDeadlines(b *testing.B) {
	for _, count := range []int{100, 100_000} {
		h := &Host{}
		random := rand.New(rand.NewPCG(1, 2))
		conns := make([]Conn, count)
		for i := range conns {
			conns[i].links.heap = -1
			h.deadlines.set(&conns[i], clock.Time(1+random.IntN(1e9)))
		}
		b.Run(fmt.Sprintf("ack/%d", count), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				c := &conns[i%count]
				c.idleAt = 1 << 61
				h.schedule(c)
			}
		})
		b.Run(fmt.Sprintf("due/%d", count), func(b *testing.B) {
			for b.Loop() {
				c, now := h.deadlines.earliest()
				h.deadlines.remove(c)
				h.deadlines.set(c, now.Add(time.Duration(1+random.IntN(1e9))))
			}
		})
	}
}
