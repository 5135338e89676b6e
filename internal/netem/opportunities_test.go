package netem_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

const ms = time.Millisecond

// millis converts milliseconds, as in mahimahi's files, to times.
func millis(list ...int) []time.Duration {
	at := make([]time.Duration, len(list))
	for i, n := range list {
		at[i] = time.Duration(n) * ms
	}
	return at
}

// poisson returns a trace of opportunities that are independent of each other.
func poisson(seed uint64, n int, mean time.Duration) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 5))
	list, at := make([]time.Duration, n), 0.0
	for i := range list {
		at += r.ExpFloat64() * float64(mean)
		list[i] = time.Duration(at).Truncate(ms)
	}
	return list
}

// mahimahi is a literal model of mahimahi's link: in every millisecond, first the opportunities one
// after the other, and then the arrivals. Sizes include the 4 bytes of a TUN device.
type mahimahi struct {
	trace         []time.Duration
	once          bool
	packets, size int // limits of the queue; 0: no limit

	next    int
	base    time.Duration
	over    bool
	queue   []mmPacket
	queued  int
	transit mmPacket
	left    int // bytes of transit that are not sent yet
	out     []arrived
	dropped int
	burned  int
}

type mmPacket struct {
	tag  uint64
	size int
}

// deliver handles everything that is due at or before a time.
func (m *mahimahi) deliver(until time.Duration) {
	for !m.over && m.base+m.trace[m.next] <= until {
		at := m.base + m.trace[m.next]
		m.burned++
		if m.next++; m.next == len(m.trace) {
			m.next, m.base, m.over = 0, m.base+m.trace[len(m.trace)-1], m.once
		}
		for room := 1504; room > 0; {
			if m.left == 0 {
				if len(m.queue) == 0 {
					break
				}
				m.transit, m.queue = m.queue[0], m.queue[1:]
				m.left = m.transit.size
				m.queued -= m.transit.size
			}
			sent := min(room, m.left)
			room, m.left = room-sent, m.left-sent
			if m.left == 0 {
				m.out = append(m.out, arrived{clock.Time(at), m.transit.tag, m.transit.size - 4})
			}
		}
	}
}

func (m *mahimahi) arrive(at time.Duration, tag uint64, size int) {
	m.deliver(at)
	if m.packets > 0 && len(m.queue) >= m.packets || m.size > 0 && m.queued+size+4 > m.size {
		m.dropped++
		return
	}
	m.queue = append(m.queue, mmPacket{tag, size + 4})
	m.queued += size + 4
}

// A link with Opportunities behaves as mahimahi's, packet for packet and to the nanosecond. The
// cases are several small packets in one opportunity, a packet in several opportunities, unused
// opportunities, laps, limits that exclude the packet in transit, and deliveries before arrivals.
func TestOpportunitiesMatchMahimahi(t *testing.T) {
	for name, trace := range map[string][]time.Duration{
		"12 Mbit/s":       millis(1),
		"108 Mbit/s":      millis(1, 1, 1, 1, 1, 1, 1, 1, 1),
		"the man page's":  millis(0, 1, 2, 3, 4, 5),
		"ten every 200":   millis(200, 200, 200, 200, 200, 200, 200, 200, 200, 200),
		"zeros at a seam": millis(0, 0, 3, 7, 7),
		"Poisson":         poisson(1, 3000, 3*ms),
	} {
		seeds := uint64(3)
		if !testenv.Long() {
			seeds = 1
		}
		for _, limit := range []netem.DropTail{{}, {Packets: 1}, {Packets: 20}, {Bytes: 3000}} {
			for _, once := range []bool{false, true} {
				for seed := range seeds {
					m := &mahimahi{
						trace: trace, once: once, packets: limit.Packets, size: limit.Bytes,
					}
					compareWithMahimahi(t, m, limit, seed, fmt.Sprint(name, limit, once, seed))
				}
			}
		}
	}
}

func compareWithMahimahi(
	t *testing.T, m *mahimahi, limit netem.DropTail, seed uint64, what string,
) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 9))
	const origin = clock.Time(time.Second)
	l := newLink(t, netem.Config{
		Rate: netem.Opportunities{At: m.trace, Once: m.once}, Queue: limit, Origin: origin,
	})
	told, departed := 0, []arrived(nil)
	l.WatchOpportunities(func(e *netem.Event) {
		switch e.Kind {
		case netem.Opportunity:
			told++
			require.Equal(t, 1504, e.Size)
		case netem.Depart:
			departed = append(departed, arrived{e.At - origin, e.Tag, e.Size})
			require.Equal(t, 4+e.Size, len(e.Data)+4)
		default:
		}
	})
	var out []arrived
	at := time.Duration(0)
	take := func() {
		for data, tag, ok := l.Output(origin.Add(at)); ok; data, tag, ok = l.Output(origin.Add(at)) {
			out = append(out, arrived{clock.Time(at), tag, len(data)})
		}
	}
	for i := range uint64(2000) {
		size := 20 + r.IntN(1481)
		if seed == 0 {
			size = 77 // a datagram of the notebook costs 81 bytes
		}
		l.Advance(origin.Add(at))
		take()
		put(l, origin.Add(at), i, size)
		m.arrive(at, i, size)
		require.Equal(t, m.dropped, int(l.Counters().QueueDropped), what)
		if r.IntN(3) == 0 {
			at += time.Duration(r.IntN(8)) * ms
		}
	}
	for range 200 {
		at += time.Duration(r.IntN(200)) * ms
		l.Advance(origin.Add(at))
		take()
		m.deliver(at)
	}
	require.Equal(t, m.out, departed, what)
	require.Len(t, out, len(m.out), what)
	require.Equal(t, m.burned, told, "%s: every opportunity is reported, used or not", what)
	inside, _ := l.Inside()
	waiting := len(m.queue)
	if m.left > 0 {
		waiting++
	}
	require.Equal(t, waiting, inside, what)
}

// A packet that arrives at the time of an opportunity is too late for it, and leaves with the next
// one.
func TestArrivalAtAnOpportunityMissesIt(t *testing.T) {
	l := newLink(t, netem.Config{Rate: netem.Opportunities{At: millis(5, 5, 10)}, Origin: 1000})
	put(l, 1000+5e6, 1, 1500)
	assert.Equal(t, clock.Time(1000+10e6), l.Deadline())
	l.Advance(1000 + 10e6)
	put(l, 1000+12e6, 2, 1500)
	put(l, 1000+12e6, 3, 1501) // one byte leaves with the opportunity after that
	assert.Equal(t, []arrived{
		{1000 + 12e6, 1, 1500}, {1000 + 15e6, 2, 1500}, {1000 + 20e6, 3, 1501},
	}, drain(l, 1000+12e6))
	assert.Equal(t, clock.Never, l.Departure(), "no packet waits")

	put(l, 1000+26e6, 9, 1500)
	require.Len(t, takeAll(l, 1000+30e6), 1)
	assert.Equal(t, clock.Never, l.Deadline(), "nothing is due")
	put(l, 1000+31e6, 4, 1500)
	require.NoError(t, l.Change(1000+32e6, netem.Config{Rate: netem.BitsPerSecond(12e6)}, sources(1)))
	assert.Equal(t, []arrived{{1000 + 33e6, 4, 1500}}, drain(l, 1000+32e6))
	assert.Equal(t, clock.Never, l.Departure(), "no schedule is kept")
}

// The link has a queue of one packet in front of mahimahi's trace, which Pantheon calls a policer.
// All opportunities of a millisecond occur at once, so with any trace only the first of several
// packets in one millisecond passes. A packet that is partly sent has left the queue.
func TestOnePacketQueueBeforeATrace(t *testing.T) {
	for _, each := range []int{1, 5, 9} {
		at := make([]time.Duration, each)
		for i := range at {
			at[i] = ms
		}
		l := newLink(t, netem.Config{
			Rate: netem.Opportunities{At: at}, Queue: netem.DropTail{Packets: 1}, Origin: 1,
		})
		for i := range uint64(40) { // four packets in each of ten milliseconds
			now := clock.Time(1).Add(time.Duration(i) * ms / 4)
			l.Advance(now)
			put(l, now, i, 1500)
		}
		var tags []uint64
		for _, a := range takeAll(l, clock.Time(1).Add(20*ms)) {
			tags = append(tags, a.tag)
		}
		assert.Equal(t, []uint64{0, 4, 8, 12, 16, 20, 24, 28, 32, 36}, tags, each)
		assert.Equal(t, uint64(30), l.Counters().QueueDropped, each)
	}
	l := newLink(t, netem.Config{
		Rate: netem.Opportunities{At: millis(1)}, Queue: netem.DropTail{Packets: 1}, Origin: 1,
	})
	put(l, 1, 1, 1501)
	l.Advance(clock.Time(1).Add(ms)) // all but the last byte is sent
	put(l, clock.Time(1).Add(ms), 2, 1000)
	put(l, clock.Time(1).Add(ms), 3, 1000)
	assert.Equal(t, uint64(1), l.Counters().QueueDropped)
	assert.Len(t, drain(l, clock.Time(1).Add(ms)), 2)
}

// A trace's mean rate is lines × 12000 bits over the last time, even where the trace's name says
// otherwise.
func TestMeanRates(t *testing.T) {
	for _, c := range []struct {
		rate netem.Rate
		want int64
	}{
		{netem.BitsPerSecond(5), 5},
		{netem.Opportunities{At: millis(1)}, 12_000_000},
		{netem.Opportunities{At: millis(0, 1, 2, 3, 4, 5)}, 14_400_000},
		{netem.Opportunities{At: millis(100)}, 120_000},
		{netem.Opportunities{At: millis(200, 200, 200, 200, 200, 200, 200, 200, 200, 200)}, 600_000},
		{netem.Schedule{Steps: []netem.Step{{0, 1e6}, {40 * time.Second, 3e6}}}, 3_000_000},
		{netem.Schedule{Steps: []netem.Step{{0, 1e6}, {40 * time.Second, 0}}}, 1_000_000},
		{netem.Schedule{
			Steps: []netem.Step{{0, 1e6}, {40 * time.Second, 3e6}}, Every: 50 * time.Second,
		}, 1_400_000},
	} {
		assert.Equal(t, c.want, c.rate.MeanRate(), "%+v", c.rate)
	}
}

// A link that was idle for a year, or whose clock started long ago, is at the right position in its
// trace.
func TestLongIdleOpportunities(t *testing.T) {
	trace := poisson(3, 1000, 2*ms)
	period := trace[999]
	const year = 365 * 24 * time.Hour
	laps := year - year%period
	for _, idle := range []time.Duration{year, laps, laps + trace[500], period, 3*period - 1} {
		l := newLink(t, netem.Config{Rate: netem.Opportunities{At: trace}})
		put(l, clock.Time(1).Add(ms), 1, 1500)
		drain(l, clock.Time(1).Add(ms))
		put(l, clock.Time(idle), 2, 1500)
		got := drain(l, clock.Time(idle))[0].at
		want := idle - idle%period // start of the link's current lap
		for i := 0; want+trace[i] <= idle; {
			if i++; i == len(trace) {
				i, want = 0, want+period
			}
			if want+trace[i] > idle {
				want += trace[i]
				break
			}
		}
		assert.Equal(t, clock.Time(want), got, idle)
	}
}

// BenchmarkOpportunities compares traces of different lengths. A long one should cost no more than
// a short one, and packets should allocate nothing.
func BenchmarkOpportunities(b *testing.B) {
	for _, n := range []int{1, 10_000, 2_000_000} {
		trace := make([]time.Duration, n)
		for i := range trace {
			trace[i] = time.Duration(i+1) * 100 * time.Microsecond
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLink(b, netem.Config{
				Rate: netem.Opportunities{At: trace}, Queue: netem.DropTail{Packets: 100},
			})
			pieces := [][]byte{make([]byte, 40), make([]byte, 1360)}
			now := clock.Time(1)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(90 * time.Microsecond)
				l.Input(now, 0, pieces)
				for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
				}
			}
		})
	}
}
