package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestRFC5681_3_1_LossWindowOfANarrowedPath: a time-out on a path that has just become narrower
// sends one segment that fits it, not all of a segment of before (RFC 5681 §3.1).
func TestRFC5681_3_1_LossWindowOfANarrowedPath(t *testing.T) {
	for name, o := range map[string]Options{"SACK": fullOptions, "plain": {MSS: 1000}} {
		s := flight(t, 4, o, Config{})
		s.path.MTU = 440
		s.h.Rerouted()
		s.quiet()
		i := s.c.Info()
		assert.Equal(t, 400, i.SendMSS, name)
		assert.Equal(t, 12, i.Unacked, "of 1000 bytes each are 400, 400 and 200, while they are in flight")
		assert.Equal(t, 4000, i.Pipe)
		s.c.rec.at.probe = clock.Never
		s.wait(250 * time.Millisecond)
		require.Equal(t, uint64(1), s.c.Info().Timeouts)
		s.expect(ACK, 1, 1, 400)
		s.quiet()
		assert.Equal(t, 400, s.c.Info().Cwnd)
		s.send(ACK, 1, 401, 0)
		s.expect(ACK, 401, 1, 400)
		s.expect(ACK, 801, 1, 400)
		s.send(ACK, 1, 4001, 0) // and all of it was only late
		s.quiet()
		assert.Zero(t, s.c.Info().Unacked)
		assert.Zero(t, s.c.rec.pipe())
	}
}

// TestRecutAgainstBooks cuts queues of every kind and looks at all that they say of themselves.
func TestRecutAgainstBooks(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		q := sentQueue{first: ^uint32(9), next: ^uint32(9)}
		now, seq := clock.Time(1), uint64(1000)
		var starts []uint64
		for range 1 + rng.IntN(40) {
			now++
			starts = append(starts, seq)
			n := 1 + rng.IntN(1000)
			q.push(now, seq, n, 0)
			seq += uint64(n)
		}
		q.push(now, seq, 700, recFIN)
		for id := q.first; id != q.next; id++ {
			now++
			switch rng.IntN(5) {
			case 0:
				q.move(id, q.at(id), lost)
			case 1:
				q.move(id, q.at(id), sacked)
			case 2:
				q.resent(now, id, q.at(id))
			}
		}
		bytes, mss := q.bytes, 50+rng.IntN(900)
		was := map[uint32]uint64{q.next: 0}
		for i, s := range starts {
			was[q.first+uint32(i)] = s
		}
		end := q.next
		move := q.recut(mss)
		for id, s := range was {
			if id == end {
				require.Equal(t, q.next, move(id))
				continue
			}
			piece := q.at(move(id))
			require.LessOrEqual(t, piece.seq, s, "seed %d", seed)
			require.Greater(t, piece.end(), s, "seed %d", seed)
			if piece.place != lost {
				require.Equal(t, piece.seq, s, "seed %d", seed)
			}
		}
		audit(t, &q, mss, 1000, seq+700)
		for id := q.first; id+1 != q.next; id++ {
			r, next := q.at(id), q.at(id+1)
			if r.place == lost && next.place == lost {
				require.Equal(t, mss, r.text(), "seed %d: a short piece before another", seed)
			}
		}
		require.Equal(t, bytes, q.bytes)
	}
}

// audit checks a queue's books against its records.
func audit(t *testing.T, q *sentQueue, mss int, from, to uint64) {
	t.Helper()
	var bytes, count [numPlaces]int
	again := 0
	for id := q.first; id != q.next; id++ {
		r := q.at(id)
		require.Equal(t, from, r.seq)
		from = r.end()
		bytes[r.place] += int(r.size)
		count[r.place]++
		if r.place == inFlight && r.flags&recAgain != 0 {
			again++
		}
		if r.place != sacked {
			require.LessOrEqual(t, r.text(), mss)
		}
		require.Equal(t, id == q.next-1, r.flags&recFIN != 0)
	}
	require.Equal(t, to, from)
	require.Equal(t, bytes, q.bytes)
	require.Equal(t, count, q.count)
	require.Equal(t, again, q.again)
	require.Len(t, ids(q, lost), count[lost])
	flight := ids(q, inFlight)
	require.Len(t, flight, count[inFlight])
	for i := 1; i < len(flight); i++ {
		a, b := q.at(flight[i-1]), q.at(flight[i])
		require.True(t, a.sentAt < b.sentAt || a.sentAt == b.sentAt && a.seq < b.seq)
	}
	lows := ids(q, lost)
	for i := 1; i < len(lows); i++ {
		require.Less(t, q.at(lows[i-1]).seq, q.at(lows[i]).seq)
	}
}
