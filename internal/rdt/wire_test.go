package rdt_test

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// engine is either end of a flow.
type engine interface {
	Input(now clock.Time, b []byte)
	Output(now clock.Time, b []byte) ([]byte, bool)
	Deadline() clock.Time
	Advance(now clock.Time)
}

// wire is one direction of a path, in virtual time.
type wire struct {
	loss, dup, corrupt float64
	delay, jitter      time.Duration // a packet takes delay plus up to jitter, so packets are reordered
	perByte            time.Duration // serialization time of a byte; 0: none
	drop               func(n int, b []byte) bool
	random             *rand.Rand
	free               clock.Time // when the next packet can be transmitted

	sent, lost, doubled, damaged int
}

type arrival struct {
	at    clock.Time
	order int
	to    int
	b     []byte
}

type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// world is a sender, a receiver and the link from each of them to the other.
type world struct {
	t     *testing.T
	now   clock.Time
	ends  [2]engine
	wires [2]*wire
	air   arrivals
	order int
	after func() // called after each event
}

const start = clock.Time(1e9)

func newWorld(t *testing.T, s *rdt.Sender, r *rdt.Receiver, seed uint64, there, back wire) *world {
	t.Helper()
	there.random = rand.New(rand.NewPCG(seed, 1))
	back.random = rand.New(rand.NewPCG(seed, 2))
	w := &world{t: t, now: start, after: func() {}}
	w.ends = [2]engine{s, r}
	w.wires = [2]*wire{&there, &back}
	return w
}

func (w *world) put(from int, b []byte) {
	l := w.wires[from]
	l.sent++
	at := max(w.now, l.free).Add(l.perByte * time.Duration(len(b)))
	l.free = at
	if l.loss > 0 && l.random.Float64() < l.loss || l.drop != nil && l.drop(l.sent, b) {
		l.lost++
		return
	}
	copies := 1
	if l.dup > 0 && l.random.Float64() < l.dup {
		l.doubled++
		copies = 2
	}
	for range copies {
		c := bytes.Clone(b)
		if l.corrupt > 0 && l.random.Float64() < l.corrupt {
			l.damaged++
			c[l.random.IntN(len(c))] ^= 1 << l.random.IntN(8)
		}
		due := at.Add(l.delay)
		if l.jitter > 0 {
			due = due.Add(time.Duration(l.random.Int64N(int64(l.jitter))))
		}
		w.order++
		heap.Push(&w.air, arrival{due, w.order, 1 - from, c})
	}
}

// run advances the time until stop returns true or no event is left.
func (w *world) run(stop func() bool) {
	w.t.Helper()
	for range 5_000_000 {
		due := clock.Never
		for i, e := range w.ends {
			for l := w.wires[i]; l.free <= w.now; {
				b, ok := e.Output(w.now, nil)
				if !ok {
					break
				}
				w.put(i, b)
			}
			if w.wires[i].free > w.now {
				due = clock.Earliest(due, w.wires[i].free)
			}
			due = clock.Earliest(due, e.Deadline())
		}
		w.after()
		if stop() {
			return
		}
		if len(w.air) > 0 {
			due = clock.Earliest(due, w.air[0].at)
		}
		if due == clock.Never {
			return
		}
		w.now = max(w.now, due) // a shortened timeout may have expired already
		for _, e := range w.ends {
			if e.Deadline().Due(w.now) {
				e.Advance(w.now)
				require.False(w.t, e.Deadline().Due(w.now), "Advance left its deadline")
			}
		}
		for len(w.air) > 0 && w.air[0].at <= w.now {
			a := heap.Pop(&w.air).(arrival)
			w.ends[a.to].Input(w.now, a.b)
		}
	}
	w.t.Fatal("the transfer does not end")
}

// text returns n compressible bytes.
func text(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 99))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnop"[random.IntN(16)]
	}
	return b
}

func numbers(n int) (list []uint16) {
	for i := range n {
		list = append(list, uint16(i))
	}
	return list
}

// pair returns the two ends of a flow for these objects.
func pair(t *testing.T, cfg rdt.Config, objects [][]byte) (*rdt.Sender, *rdt.Receiver) {
	t.Helper()
	s, err := rdt.NewSender(cfg, objects)
	require.NoError(t, err)
	r, err := rdt.NewReceiver(start, cfg, numbers(len(objects))...)
	require.NoError(t, err)
	if cfg.Push {
		require.NoError(t, s.Serve(numbers(len(objects))...))
	}
	return s, r
}

// transfer transfers the objects completely and checks them.
func transfer(
	t *testing.T, cfg rdt.Config, objects [][]byte, seed uint64, there, back wire,
) (*world, []rdt.Completion) {
	t.Helper()
	s, r := pair(t, cfg, objects)
	w := newWorld(t, s, r, seed, there, back)
	w.run(func() bool { return s.Done() && r.Done() })
	require.NoError(t, s.Err(), "seed %d", seed)
	list := completions(r)
	require.Len(t, list, len(objects), "seed %d", seed)
	for _, c := range list {
		require.NoError(t, c.Err, "seed %d, object %d", seed, c.Stream)
		require.True(t, bytes.Equal(objects[c.Stream], c.Data), "seed %d, object %d", seed, c.Stream)
	}
	require.Zero(t, r.Info().Held)
	return w, list
}

func completions(r *rdt.Receiver) (list []rdt.Completion) {
	for c, ok := r.Next(); ok; c, ok = r.Next() {
		list = append(list, c)
	}
	return list
}

// variants returns different configurations of a flow.
func variants() map[string]rdt.Config {
	list := map[string]rdt.Config{}
	for i := range 32 {
		c := rdt.Config{
			Payload: 500, Window: 60, Timeout: 200 * time.Millisecond,
			Selective: i&1 != 0, Adaptive: i&2 != 0, Interleave: i&4 != 0,
			Compress: i&8 != 0, Push: i&16 != 0, Checksum: rdt.Checksum(i & 1),
		}
		list[fmt.Sprintf("sel%t-adapt%t-inter%t-zip%t-push%t",
			c.Selective, c.Adaptive, c.Interleave, c.Compress, c.Push)] = c
	}
	return list
}
