package tcp

import (
	"math/rand/v2"
	"testing"

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
			first = clock.Earliest(first, c.links.due)
			if c.links.heap >= 0 {
				n++
				require.Same(t, c, d.heap[c.links.heap])
			}
		}
		require.Equal(t, first, d.first())
		require.Len(t, d.heap, n)
	}
}

func TestReadyList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var l readyList
	var want []*Conn
	conns := make([]*Conn, 20)
	for i := range conns {
		conns[i] = &Conn{}
	}
	for range 5000 {
		i := rng.IntN(len(conns))
		c := conns[i]
		if !c.links.isReady {
			l.push(c)
			want = append(want, c)
		} else {
			l.remove(c)
			for j, w := range want {
				if w == c {
					want = append(want[:j:j], want[j+1:]...)
					break
				}
			}
		}
		var got []*Conn
		for c := l.first; c != nil; c = c.links.ready.next {
			got = append(got, c)
		}
		require.Len(t, got, len(want))
		for j := range want {
			require.Same(t, want[j], got[j])
		}
	}
}
