package recovery

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestSentQueueAgainstModel compares the queue with a slice after random operations.
func TestSentQueueAgainstModel(t *testing.T) {
	type model struct {
		id     uint32
		seq    uint64
		place  place
		sentAt clock.Time
		again  bool
	}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := sentQueue{first: ^uint32(30), next: ^uint32(30)} // ids wrap too
		var all []model
		now, seq := clock.Time(1), uint64(1000)
		for range 400 {
			now++
			switch op := rng.IntN(10); {
			case op < 4 || len(all) == 0:
				q.push(now, seq, 10, 0)
				all = append(all, model{q.next - 1, seq, inFlight, now, false})
				seq += 10
			case op == 4:
				q.pop()
				all = all[1:]
			default:
				m := &all[rng.IntN(len(all))]
				rec := q.at(m.id)
				switch {
				case m.place == sacked:
				case op < 7:
					q.move(m.id, rec, lost)
					m.place = lost
				case op == 7:
					q.resent(now, m.id, rec)
					m.place, m.sentAt, m.again = inFlight, now, true
				case op == 8:
					q.move(m.id, rec, sacked)
					m.place = sacked
				case op == 9:
					q.restore()
					for i := range all {
						if all[i].place == lost {
							all[i].place = inFlight
						}
					}
				}
			}
			var bytes, count [numPlaces]int
			again := 0
			var lows []uint32
			for _, m := range all {
				if r := q.at(m.id); m.seq != r.seq || m.place != r.place {
					t.Fatalf("seed %d: %+v, want %+v", seed, r, m)
				}
				bytes[m.place] += 10
				count[m.place]++
				if m.again && m.place == inFlight {
					again++
				}
				if m.place == lost {
					lows = append(lows, m.id)
				}
			}
			require.Equal(t, bytes, q.bytes)
			require.Equal(t, count, q.count)
			require.Equal(t, again, q.retransmitted)
			require.Equal(t, lows, ids(&q, lost), "lost segments are in sequence order, seed %d", seed)
			last := clock.Never
			for _, id := range ids(&q, inFlight) {
				if q.at(id).sentAt < last {
					t.Fatalf("seed %d: the flight is not in order of transmission", seed)
				}
				last = q.at(id).sentAt
			}
			probe := 990 + uint64(rng.IntN(int(seq)-980))
			want := q.next
			for i := len(all) - 1; i >= 0 && all[i].seq >= probe; i-- {
				want = all[i].id
			}
			require.Equal(t, want, q.find(probe))
		}
	}
}

func ids(q *sentQueue, p place) []uint32 {
	var out []uint32
	l := q.lists[p]
	for id, n := l.head, l.n; n > 0; n-- {
		out = append(out, id)
		id = q.at(id).next
	}
	return out
}
