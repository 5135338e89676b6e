package netem_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// ledger counts the events of a link.
type ledger struct {
	t      *testing.T
	l      *netem.Link
	queues bool
	last   clock.Time
	counts map[netem.EventKind]int
	drops  map[netem.Reason]int

	queued, queuedBytes int
	waited              time.Duration // sum of all waits
	area                time.Duration // integral of the queue's length over time
}

func watch(t *testing.T, l *netem.Link) *ledger {
	t.Helper()
	w := &ledger{t: t, l: l, counts: map[netem.EventKind]int{}, drops: map[netem.Reason]int{}}
	l.WatchOpportunities(w.note)
	return w
}

func (w *ledger) note(e *netem.Event) {
	if e.At < w.last {
		require.GreaterOrEqual(w.t, e.At, w.last, "in the order of time")
	}
	w.area += time.Duration(w.queued) * e.At.Sub(w.last)
	w.last = e.At
	w.counts[e.Kind]++
	switch e.Kind {
	case netem.Arrive:
		require.Zero(w.t, e.Sojourn)
		if w.queues {
			w.change(1, e.Size)
		}
	case netem.Serve:
		w.waited += e.Sojourn
		w.change(-1, -e.Size)
	case netem.Drop:
		w.drops[e.Why]++
		if w.queues && e.Why != netem.Model {
			w.waited += e.Sojourn
			w.change(-1, -e.Size)
		}
	case netem.Depart, netem.Mark, netem.Opportunity:
	}
	w.same(e.Packets, e.Bytes)
}

func (w *ledger) same(packets, bytes int) {
	if w.queued != packets || w.queuedBytes != bytes {
		require.Equal(w.t, []int{packets, bytes}, []int{w.queued, w.queuedBytes})
	}
}

// check compares the events with the link's counters and queue.
func (w *ledger) check() {
	packets, bytes := w.l.Queued()
	w.same(packets, bytes)
}

func (w *ledger) change(packets, bytes int) {
	w.queued, w.queuedBytes = w.queued+packets, w.queuedBytes+bytes
}

// The events add up, for every configuration. Arrivals equal departures, drops and queued packets.
// The drops for each reason equal the counters. By Little's law, the sum of all waits equals the
// integral of the queue's length over time.
func TestEventsAddUp(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 6))
		cfg := randomConfig(r)
		l := newLink(t, cfg)
		w := watch(t, l)
		w.queues = cfg.Rate != nil
		now := clock.Time(1)
		for i := range uint64(300) {
			takeAll(l, now)
			l.Input(now, i, [][]byte{randomPacket(r, i)})
			w.check()
			now = now.Add(time.Duration(r.IntN(100_000)))
		}
		drain(l, now)
		c, what := l.Counters(), "seed %d: %+v"
		waiting := 0
		if cfg.Rate != nil {
			waiting, _ = l.Queued()
		}
		dropped := 0
		for _, n := range w.drops {
			dropped += n
		}
		require.Equal(t, int(c.In), w.counts[netem.Arrive], what, seed, cfg)
		serving := 0
		if cfg.Rate != nil {
			require.Equal(t, w.counts[netem.Serve]-w.counts[netem.Depart], boolean(inService(l)), what, seed, cfg)
			serving = boolean(inService(l))
		}
		require.Equal(t, int(c.In),
			w.counts[netem.Depart]+dropped-w.drops[netem.Model]+waiting+serving, what, seed, cfg)
		require.Equal(t, int(c.QueueDropped),
			w.drops[netem.Tail]+w.drops[netem.Head]+w.drops[netem.Early], what, seed, cfg)
		require.Equal(t, int(c.Early), w.drops[netem.Early], what, seed, cfg)
		require.Equal(t, int(c.Policed), w.drops[netem.Excess], what, seed, cfg)
		require.Equal(t, int(c.Lost), w.drops[netem.Model], what, seed, cfg)
		require.Equal(t, int(c.Overflowed), w.drops[netem.Limit], what, seed, cfg)
		require.Equal(t, int(c.Marked), w.counts[netem.Mark], what, seed, cfg)
		if cfg.Rate != nil && waiting == 0 {
			require.Zero(t, w.queued)
			require.Equal(t, w.area, w.waited, what, seed, cfg)
		}
	}
}

// inService reports whether a packet is being sent. It never leaves if the trace has ended.
func inService(l *netem.Link) bool {
	inside, _ := l.Inside()
	waiting, _ := l.Queued()
	return inside > waiting
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// With Poisson arrivals and a constant service time, the mean wait is load/(2(1-load)) service
// times (M/D/1, the Pollaczek-Khinchin formula).
func TestMD1Waits(t *testing.T) {
	for _, load := range []float64{0.3, 0.6, 0.8} {
		l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(8_000_000)})
		var waited time.Duration
		served := 0
		l.Watch(func(e *netem.Event) {
			switch e.Kind {
			case netem.Serve:
				waited += e.Sojourn
				served++
			case netem.Depart:
				if e.Size != 1000 || e.Sojourn < time.Millisecond {
					t.Errorf("%+v", e)
				}
			default:
			}
		})
		r, now := rand.New(rand.NewPCG(7, 7)), clock.Time(1)
		const n = 200_000
		for i := range uint64(n) {
			takeAll(l, now)
			put(l, now, i, 1000)
			now = now.Add(time.Duration(r.ExpFloat64() / load * float64(time.Millisecond)))
		}
		drain(l, now)
		require.Equal(t, n, served)
		want := float64(time.Millisecond) * load / (2 * (1 - load))
		assert.InEpsilon(t, want, float64(waited)/n, 0.04, "load %v", load)
	}
}

// A watcher gets each packet's bytes and tag, and can be removed.
func TestWatching(t *testing.T) {
	l := newLink(t, netem.Config{
		Rate: netem.BitsPerSecond(8000), Queue: netem.DropHead{Packets: 1}, Loss: netem.ListedLoss{2},
	})
	var told []netem.Event
	l.Watch(func(e *netem.Event) {
		require.Len(t, e.Data, e.Size)
		e.Data = nil
		told = append(told, *e)
	})
	for i := range uint64(3) {
		put(l, 1, i, 100)
	}
	drain(l, 1)
	const at, done = clock.Time(1), 100 * time.Millisecond
	assert.Equal(t, []netem.Event{
		{At: at, Kind: netem.Arrive, Size: 100, Packets: 1, Bytes: 100},
		{At: at, Kind: netem.Serve, Size: 100},
		{At: at, Kind: netem.Arrive, Size: 100, Tag: 1, Packets: 1, Bytes: 100},
		{At: at, Kind: netem.Arrive, Size: 100, Tag: 2, Packets: 2, Bytes: 200},
		{At: at, Kind: netem.Drop, Why: netem.Head, Size: 100, Tag: 1, Packets: 1, Bytes: 100},
		{At: at.Add(done), Kind: netem.Depart, Size: 100, Sojourn: done, Packets: 1, Bytes: 100},
		{At: at.Add(done), Kind: netem.Serve, Size: 100, Sojourn: done, Tag: 2},
		{At: at.Add(2 * done), Kind: netem.Depart, Size: 100, Sojourn: 2 * done, Tag: 2},
		{At: at.Add(2 * done), Kind: netem.Drop, Why: netem.Model, Size: 100, Sojourn: 2 * done, Tag: 2},
	}, told)
	told = nil
	l.Watch(nil)
	put(l, 1e9, 9, 100)
	drain(l, 1e9)
	assert.Empty(t, told)
}

// A watcher can be set late, and remains when the link's configuration changes.
func TestWatcherSurvivesChanges(t *testing.T) {
	l := newLink(t, netem.Config{})
	put(l, 1e6, 1, 100)
	takeAll(l, 1e6)
	var at []clock.Time
	l.WatchOpportunities(func(e *netem.Event) {
		if e.Kind == netem.Opportunity {
			at = append(at, e.At)
		}
	})
	cfg := netem.Config{Rate: netem.Opportunities{At: millis(1)}}
	require.NoError(t, l.Change(10e6, cfg, sources(1)))
	l.Advance(13_500_000)
	assert.Equal(t, []clock.Time{11e6, 12e6, 13e6}, at)
	require.NoError(t, l.Change(15e6, netem.Config{}, sources(1)))
	l.Advance(20e6)
	assert.Len(t, at, 5)
}

func TestWatchingAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]netem.Config{
		"rate":          {Rate: netem.BitsPerSecond(1e9), Queue: netem.CoDel{Packets: 50}},
		"opportunities": {Rate: netem.Opportunities{At: poisson(1, 1000, ms)}, Queue: netem.DropTail{Packets: 9}},
		"fq_codel":      {Rate: netem.BitsPerSecond(1e8), Queue: netem.FQCoDel{Packets: 50}},
		"pie":           {Rate: netem.BitsPerSecond(1e8), Queue: netem.PIE{Packets: 50}},
		"red":           {Rate: netem.BitsPerSecond(1e8), Queue: netem.RED{Bytes: 50_000}},
		"schedule": {Rate: netem.Schedule{
			Steps: []netem.Step{{0, 1e8}, {ms, 2e8}}, Every: 3 * ms,
		}, Queue: netem.DropHead{Time: 10 * ms}},
		"others": {
			Policer: &netem.Policer{Rate: 1e8, Burst: 5000}, Jitter: netem.RandomJitter{Size: ms, Shape: "paretonormal"},
			Loss: netem.OnOff{On: ms, Off: ms, Poisson: true},
		},
	} {
		l, events := newLink(t, cfg), 0
		l.WatchOpportunities(func(*netem.Event) { events++ })
		now, packet := clock.Time(1), [][]byte{ipv4(1, 1400)}
		turn := func() {
			for range 100 {
				l.Input(now, 0, packet)
				now = now.Add(20 * time.Microsecond)
				l.Advance(now)
				for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
				}
			}
		}
		for range 20 {
			turn()
		}
		assert.Zero(t, testing.AllocsPerRun(50, turn), name)
		assert.Positive(t, events)
	}
}

// A watcher also sees packets that are dropped on arrival.
func TestWatcherSeesDropsOnArrival(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  netem.Config
		why  netem.Reason
		want []netem.EventKind
	}{
		{"model", netem.Config{Loss: netem.PeriodicLoss{Every: 1}}, netem.Model, []netem.EventKind{netem.Arrive, netem.Depart, netem.Drop}},
		{"limit", netem.Config{MaxBytes: 1}, netem.Limit, []netem.EventKind{netem.Arrive, netem.Drop}},
		{"policer", netem.Config{Policer: &netem.Policer{Rate: 8, Burst: 1}}, netem.Excess, []netem.EventKind{netem.Arrive, netem.Drop}},
		{
			"model behind a server",
			netem.Config{Rate: netem.BitsPerSecond(8e9), Loss: netem.PeriodicLoss{Every: 1}},
			netem.Model,
			[]netem.EventKind{netem.Arrive, netem.Serve, netem.Depart, netem.Drop},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := netem.New(c.cfg, netem.Streams(1))
			require.NoError(t, err)
			var seen []netem.EventKind
			l.Watch(func(e *netem.Event) {
				seen = append(seen, e.Kind)
				assert.Equal(t, "abcd", string(e.Data), "event %d", e.Kind)
				assert.Equal(t, 4, e.Size)
				assert.Equal(t, uint64(7), e.Tag)
				if e.Kind == netem.Drop {
					assert.Equal(t, c.why, e.Why)
				}
			})
			l.Input(1, 7, [][]byte{[]byte("ab"), []byte("cd")})
			l.Advance(clock.Time(time.Second))
			assert.Equal(t, c.want, seen)
			inside, _ := l.Inside()
			assert.Zero(t, inside)
		})
	}
}
