package netem_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// No packet vanishes: each packet and each copy was delivered, was dropped for a reason, or is in
// the link. The results do not depend on how often Advance is called.
func TestConservation(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := randomConfig(r)
		eager, lazy := newLink(t, cfg), newLink(t, cfg)
		now := clock.Time(1)
		var sum, sumLazy uint64
		for i := range uint64(400) {
			b := randomPacket(r, i)
			for next := eager.Deadline(); next.Due(now); next = eager.Deadline() {
				eager.Advance(next)
				for data, _, ok := eager.Output(next); ok; data, _, ok = eager.Output(next) {
					sum += uint64(len(data))
				}
			}
			eager.Input(now, i, [][]byte{b})
			lazy.Advance(now)
			for data, _, ok := lazy.Output(now); ok; data, _, ok = lazy.Output(now) {
				sumLazy += uint64(len(data))
			}
			lazy.Input(now, i, [][]byte{b})
			for _, l := range []*netem.Link{eager, lazy} {
				c, inside := l.Counters(), 0
				inside, _ = l.Inside()
				got := c.Out + c.Lost + c.QueueDropped + c.Policed + c.Overflowed + uint64(inside)
				// Calling require each time would double the test's duration.
				if got != c.In+c.Duplicated {
					t.Fatalf("%d of %d packets, seed %d %+v", got, c.In+c.Duplicated, seed, cfg)
				}
				if cfg.MaxPackets > 0 && inside > cfg.MaxPackets {
					t.Fatalf("%d packets, more than %d", inside, cfg.MaxPackets)
				}
			}
			now = now.Add(time.Duration(r.IntN(100_000)))
		}
		a, b := drain(eager, now), drain(lazy, now)
		if cfg.MaxPackets == 0 { // the limit counts packets until Output returns them
			require.Equal(t, b, a, "seed %d %+v", seed, cfg)
			require.Equal(t, lazy.Counters(), eager.Counters(), "seed %d %+v", seed, cfg)
			require.Equal(t, sumLazy, sum)
		}
		if o, ends := cfg.Rate.(netem.Opportunities); ends && o.Once {
			continue // a packet after the end of a trace waits forever
		}
		packets, size := eager.Inside()
		require.Zero(t, packets+size, "seed %d: the link must end empty", seed)
	}
}

// FuzzLink drives a link with a random configuration: each byte of the input is a packet, a change
// of the link, or a step in time. No packet may vanish.
func FuzzLink(f *testing.F) {
	f.Add(uint64(1), []byte("a link of one kind, and then of another"))
	f.Add(uint64(77), []byte{0, 255, 3, 3, 3, 240, 9, 9, 250, 1, 2, 251, 4})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		r := rand.New(rand.NewPCG(seed, 3))
		l := newLink(t, randomConfig(r))
		now, last := clock.Time(1), clock.Never
		l.Watch(func(e *netem.Event) {
			require.GreaterOrEqual(t, e.At, last)
			last = e.At
		})
		for i, b := range script[:min(len(script), 2000)] {
			switch {
			case b >= 250:
				require.NoError(t, l.Change(now, randomConfig(r), sources(seed)))
			case b >= 240:
				now = now.Add(time.Duration(b-239) * time.Second)
				l.Advance(now)
			case b >= 230:
				l.Clear()
			case b >= 200:
				takeAll(l, now)
			default:
				l.Input(now, uint64(i), [][]byte{randomPacket(r, uint64(b))})
				now = now.Add(time.Duration(b) * time.Microsecond)
			}
			c := l.Counters()
			inside, bytes := l.Inside()
			require.Equal(t, c.In+c.Duplicated,
				c.Out+c.Lost+c.QueueDropped+c.Policed+c.Overflowed+uint64(inside))
			require.True(t, inside >= 0 && bytes >= 0 && (inside > 0 || bytes == 0))
			waiting, _ := l.Queued()
			require.LessOrEqual(t, waiting, inside)
			if next := l.Departure(); next != clock.Never {
				require.LessOrEqual(t, l.Deadline(), next.Add(time.Hour))
			}
		}
	})
}
