package netem_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// overload sends more than a link of 1000 packets a second carries. It starts at the first
// nanosecond and continues for the given time. It returns the times at which the queue dropped or
// marked a packet.
func overload(t *testing.T, cfg netem.Config, packet []byte, d time.Duration) (
	l *netem.Link, drops []time.Duration, out [][]byte,
) {
	t.Helper()
	cfg.Rate = netem.BitsPerSecond(8000 * int64(len(packet)))
	l = newLink(t, cfg)
	const start clock.Time = 1
	before := uint64(0)
	for now := start; now.Sub(start) < d; now = now.Add(500 * time.Microsecond) {
		l.Advance(now)
		for {
			data, _, ok := l.Output(now)
			if !ok {
				break
			}
			out = append(out, append([]byte(nil), data...))
		}
		if c := l.Counters(); c.QueueDropped+c.Marked > before {
			before = c.QueueDropped + c.Marked
			drops = append(drops, now.Sub(start))
		}
		l.Input(now, 0, [][]byte{packet})
	}
	return l, drops, out
}

// RFC 8289 §5.6: while the wait stays above the target, the gap to the next drop is the
// interval over the square root of the number of drops: +100, +70.7, +57.7, +50 ms….
func TestCoDelControlLaw(t *testing.T) {
	_, drops, _ := overload(t, netem.Config{Queue: netem.CoDel{Packets: 1 << 15}},
		make([]byte, 1000), 1200*time.Millisecond)
	require.Greater(t, len(drops), 15)
	// The wait exceeds the target of 5 ms when ten packets have arrived and 5 have left. The first
	// drop is an interval later.
	assert.InDelta(t, 110, float64(drops[0])/1e6, 4)
	due := float64(drops[0]) / 1e6
	for n := 1; n < 15; n++ {
		want := 100 / math.Sqrt(float64(n)) // expected gap in ms
		due += want
		assert.InDelta(t, due, float64(drops[n])/1e6, 1.01, "a late drop does not delay the next")
		gap := float64(drops[n]-drops[n-1]) / 1e6
		assert.InDelta(t, want, gap, 1.01, "a packet leaves each ms: gap %d", n)
	}
}

// RFC 8289 §4.2, §4.3 and §5.2: the defaults are a target of 5 ms and an interval of 100 ms. The
// first drop is an interval after the wait has passed the target.
func TestCoDelTargetAndInterval(t *testing.T) {
	first := func(c netem.CoDel) time.Duration {
		_, drops, _ := overload(t, netem.Config{Queue: c}, make([]byte, 1000), time.Second)
		require.NotEmpty(t, drops)
		return drops[0]
	}
	usual := first(netem.CoDel{})
	assert.Equal(t, usual, first(netem.CoDel{Target: 5 * time.Millisecond, Interval: 100 * time.Millisecond}))
	assert.InDelta(t, 110, float64(usual.Milliseconds()), 5, "ms: 2 of arrival for each of wait, and an interval")
	assert.InDelta(t, 50, float64((usual - first(netem.CoDel{Interval: 50 * time.Millisecond})).Milliseconds()), 2)
	assert.InDelta(t, 10, float64((first(netem.CoDel{Target: 10 * time.Millisecond}) - usual).Milliseconds()), 2)
}

// RFC 8289 §5.6: CoDel does not drop while the wait is below the target or the queue has one
// packet.
func TestCoDelKeepsShortQueues(t *testing.T) {
	cfg := netem.Config{Rate: netem.BitsPerSecond(8_000_000), Queue: netem.CoDel{}}
	l := newLink(t, cfg)
	now := clock.Time(1)
	for range 2000 { // bursts of four packets of 1 ms each: they wait for at most 4 ms
		for range 4 {
			put(l, now, 0, 1000)
		}
		now = now.Add(5 * time.Millisecond)
	}
	assert.Zero(t, l.Counters().QueueDropped)

	slow := cfg
	// The link sends one packet per second, so each packet waits for the one before it.
	slow.Rate = netem.BitsPerSecond(8_000)
	l = newLink(t, slow)
	put(l, now, 0, 1000)
	for range 50 {
		put(l, now, 0, 1000)
		now = now.Add(time.Second)
	}
	assert.Zero(t, l.Counters().QueueDropped)
}

// RFC 8289 §5.5: CoDel stops dropping at the first packet that has waited for less than the target.
// If it starts again soon, it continues near its last drop rate.
func TestCoDelResumesItsDropRate(t *testing.T) {
	l, drops, _ := overload(t, netem.Config{Queue: netem.CoDel{Packets: 1 << 15}},
		make([]byte, 1000), time.Second)
	first := len(drops)
	require.Greater(t, first, 10)
	now := clock.Time(1).Add(time.Second)
	for queued, _ := l.Queued(); queued > 0; queued, _ = l.Queued() {
		now = now.Add(time.Millisecond)
		l.Advance(now)
		_, _, _ = l.Output(now)
	}
	before := l.Counters().QueueDropped
	begin := now
	var again []clock.Time
	for now.Sub(begin) < 300*time.Millisecond {
		put(l, now, 0, 1000)
		if c := l.Counters().QueueDropped; c > before {
			before = c
			again = append(again, now)
		}
		now = now.Add(500 * time.Microsecond)
	}
	require.Greater(t, len(again), 2)
	assert.Less(t, again[1].Sub(again[0]), 40*time.Millisecond, "less than an interval")
}

func TestCoDelHoldsItsTarget(t *testing.T) {
	// The source halves its rate at each drop, as Reno does.
	l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(8_000_000), Queue: netem.CoDel{}})
	now, rate, dropped := clock.Time(1), 1100.0, uint64(0)
	var waits []float64
	for now.Sub(1) < 60*time.Second {
		put(l, now, 0, 1000)
		for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
			continue
		}
		if c := l.Counters().QueueDropped; c > dropped {
			dropped = c
			rate /= 2
		}
		rate += 0.5
		n, _ := l.Queued()
		waits = append(waits, float64(n))
		now = now.Add(time.Duration(float64(time.Second) / rate))
	}
	mean := 0.0
	for _, w := range waits {
		mean += w / float64(len(waits))
	}
	assert.Less(t, mean, 25.0, "ms; a drop-tail queue of 1000 packets stays full")
	assert.NotZero(t, dropped)
}

// ipv4 returns a packet with an ECN codepoint in its IPv4 header (RFC 3168 §5).
func ipv4(ecn byte, size int) []byte {
	b := make([]byte, size)
	copy(b, []byte{0x45, ecn, byte(size >> 8), byte(size), 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	sum := checksum.Checksum(b[:20])
	b[10], b[11] = byte(sum>>8), byte(sum)
	return b
}

// RFC 3168 §5: CoDel marks ECN-capable packets, with a correct header checksum, and drops others.
func TestCoDelMarks(t *testing.T) {
	for ecn, marks := range map[byte]bool{0: false, 1: true, 2: true, 3: true} {
		queue := netem.CoDel{Packets: 1 << 15, ECN: true}
		l, when, out := overload(t, netem.Config{Queue: queue}, ipv4(ecn, 1000), time.Second)
		c := l.Counters()
		require.NotEmpty(t, when)
		if !marks {
			assert.Zero(t, c.Marked)
			assert.NotZero(t, c.QueueDropped)
			continue
		}
		assert.Zero(t, c.QueueDropped, "ECN %d", ecn)
		assert.NotZero(t, c.Marked)
		ce := uint64(0)
		for _, b := range out {
			require.True(t, checksum.Verify(b[:20], 0))
			if b[1] == 3 {
				ce++
			}
		}
		if ecn != 3 {
			assert.InDelta(t, float64(c.Marked), float64(ce), 1, "one packet may be in flight")
		}
	}
}

func TestCoDelTailDrop(t *testing.T) {
	l, _, _ := overload(t, netem.Config{Queue: netem.CoDel{Packets: 20}}, make([]byte, 1000),
		200*time.Millisecond)
	n, _ := l.Queued()
	assert.LessOrEqual(t, n, 20)
	assert.Greater(t, l.Counters().QueueDropped, uint64(100))
}
