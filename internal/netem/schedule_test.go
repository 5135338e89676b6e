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

// A schedule with one rate, or with the same rate twice, equals a constant rate, to the nanosecond.
func TestScheduleWithOneRate(t *testing.T) {
	for _, rate := range []netem.BitsPerSecond{9600, 12_345_678, 1_000_000_007} {
		var lists [3][]arrived
		for k, r := range []netem.Rate{
			rate,
			netem.Schedule{Steps: []netem.Step{{0, rate}}},
			netem.Schedule{Steps: []netem.Step{{0, rate}, {700_001, rate}}, Every: 1_000_003},
		} {
			l, random := newLink(t, netem.Config{Rate: r}), rand.New(rand.NewPCG(3, 3))
			now := clock.Time(1)
			for i := range uint64(300) {
				put(l, now, i, 1+random.IntN(1500))
				now = now.Add(time.Duration(random.IntN(200_000)))
				lists[k] = append(lists[k], takeAll(l, now)...)
			}
			lists[k] = append(lists[k], drain(l, now)...)
		}
		assert.Equal(t, lists[0], lists[1], "%d bit/s", rate)
		assert.Equal(t, lists[0], lists[2], "%d bit/s", rate)
	}
}

func takeAll(l *netem.Link, now clock.Time) (list []arrived) {
	l.Advance(now)
	for data, tag, ok := l.Output(now); ok; data, tag, ok = l.Output(now) {
		list = append(list, arrived{now, tag, len(data)})
	}
	return list
}

// integral returns how much a schedule sends until a time, computed from the definition. The unit
// is the amount that one bit per second sends in a nanosecond.
func integral(s netem.Schedule, until time.Duration) (work int64) {
	for lap := time.Duration(0); ; lap += s.Every {
		for i, step := range s.Steps {
			end := until
			switch {
			case i+1 < len(s.Steps):
				end = min(end, lap+s.Steps[i+1].At)
			case s.Every > 0:
				end = min(end, lap+s.Every)
			}
			if from := lap + step.At; end > from {
				work += int64(step.Rate) * int64(end-from)
			}
		}
		if s.Every == 0 || lap+s.Every >= until {
			return work
		}
	}
}

// A busy link has sent, at each departure, exactly the bits given by the integral of the rate over
// time: no step, outage or lap gains or loses a bit.
func TestScheduleMatchesItsIntegral(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := netem.Schedule{Steps: []netem.Step{{0, netem.BitsPerSecond(1 + r.Int64N(1e7))}}}
		for range r.IntN(6) {
			last := s.Steps[len(s.Steps)-1].At
			rate := netem.BitsPerSecond(max(0, r.Int64N(2e7)-5e6))
			s.Steps = append(s.Steps, netem.Step{At: last + 1 + time.Duration(r.IntN(5e6)), Rate: rate})
		}
		s.Every = s.Steps[len(s.Steps)-1].At + 1 + time.Duration(r.IntN(5e6))
		if seed%3 == 0 {
			s.Every, s.Steps[len(s.Steps)-1].Rate = 0, 1e6
		}
		const origin = 5000
		l := newLink(t, netem.Config{Rate: s, Origin: origin})
		sizes := map[uint64]int64{}
		for i := range uint64(200) {
			n := 40 + r.IntN(1461)
			sizes[i] = int64(n)
			put(l, origin, i, n)
		}
		var due int64
		list := drain(l, origin)
		require.Len(t, list, 200)
		for _, a := range list {
			due += 8e9 * sizes[a.tag]
			at := a.at.Sub(origin)
			// The packet leaves in the nanosecond in which its last bit is sent.
			require.LessOrEqual(t, integral(s, at), due, "seed %d: not late", seed)
			if integral(s, at+1) > integral(s, at) {
				require.Greater(t, integral(s, at+1), due, "seed %d: not early", seed)
			}
		}
	}
}

func TestScheduleThatStops(t *testing.T) {
	l := newLink(t, netem.Config{Rate: netem.Schedule{
		Steps: []netem.Step{{0, 8_000_000}, {10 * ms, 0}},
	}, Origin: 1})
	for i := range uint64(20) {
		put(l, 1, i, 1000) // each packet takes 1 ms
	}
	list := drain(l, 1)
	assert.Len(t, list, 10)
	assert.Equal(t, clock.Time(1).Add(10*ms), list[9].at)
	assert.Equal(t, clock.Never, l.Deadline())
	assert.Equal(t, clock.Never, l.Departure())
	l.Advance(1 << 60)
	inside, _ := l.Inside()
	assert.Equal(t, 10, inside, "the rest waits forever")
}

// These are steps of RFC 8867 §5.1. The rate changes while a packet of 12 kbit is sent: 5.4 kbit
// leave at 1 Mbit/s, and the rest at 2.5 Mbit/s.
func TestRateStepDuringAPacket(t *testing.T) {
	l := newLink(t, netem.Config{Rate: netem.Schedule{Steps: []netem.Step{
		{0, 1e6}, {40 * time.Second, 25e5}, {60 * time.Second, 6e5}, {80 * time.Second, 1e6},
	}}, Origin: 1})
	now := clock.Time(1).Add(40*time.Second - 5400*time.Microsecond)
	put(l, now, 1, 1500)
	assert.Equal(t, clock.Time(1).Add(40*time.Second+2640*time.Microsecond), drain(l, now)[0].at)
}

func TestBadRates(t *testing.T) {
	for name, r := range map[string]netem.Rate{
		"no steps":         netem.Schedule{},
		"late beginning":   netem.Schedule{Steps: []netem.Step{{1, 1}}},
		"negative rate":    netem.Schedule{Steps: []netem.Step{{0, -1}}},
		"never any":        netem.Schedule{Steps: []netem.Step{{0, 0}, {5, 0}}},
		"out of order":     netem.Schedule{Steps: []netem.Step{{0, 1}, {5, 2}, {5, 1}}},
		"again too soon":   netem.Schedule{Steps: []netem.Step{{0, 1}, {5, 2}}, Every: 5},
		"too fast":         netem.BitsPerSecond(1 << 60),
		"no opportunities": netem.Opportunities{},
		"no length":        netem.Opportunities{At: millis(0, 0)},
		"before 0":         netem.Opportunities{At: millis(-1, 5)},
		"disorder":         netem.Opportunities{At: millis(1, 5, 4)},
	} {
		_, err := netem.New(netem.Config{Rate: r}, netem.Streams(1))
		assert.ErrorIs(t, err, netem.ErrConfig, name)
	}
}
