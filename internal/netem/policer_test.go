package netem_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A policer decides as a bucket with exact fractions does, for packets of all lengths with any
// gaps. After a long enough idle time it is full again.
func TestPolicerIsATokenBucket(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 8))
		p := netem.Policer{
			Rate: netem.BitsPerSecond(1 + r.Int64N(1<<uint(5+seed%40))), Burst: 1500 + r.IntN(100_000),
		}
		l := newLink(t, netem.Config{Policer: &p})
		tokens, most := big.NewRat(int64(p.Burst), 1), big.NewRat(int64(p.Burst), 1)
		now, policed := clock.Time(1), uint64(0)
		for i := range uint64(500) {
			gap := time.Duration(r.Int64N(1 << uint(1+r.IntN(40))))
			if i == 400 {
				gap = 3000 * time.Hour
			}
			now = now.Add(gap)
			tokens.Add(tokens, new(big.Rat).Mul(
				big.NewRat(int64(p.Rate), 8), big.NewRat(int64(gap), int64(time.Second))))
			if tokens.Cmp(most) > 0 {
				tokens.Set(most)
			}
			size := 1 + r.IntN(1500)
			if cost := big.NewRat(int64(size), 1); tokens.Cmp(cost) >= 0 {
				tokens.Sub(tokens, cost)
			} else {
				policed++
			}
			put(l, now, i, size)
			takeAll(l, now)
			require.Equal(t, policed, l.Counters().Policed, "seed %d, packet %d", seed, i)
		}
	}
}

// In any period, the policer passes at most the burst plus what the rate allows, and in the long
// run the rate. Unlike a queue, it delays no packet.
func TestPolicerRate(t *testing.T) {
	p := netem.Policer{Rate: 8_000_000, Burst: 10_000}
	l := newLink(t, netem.Config{Policer: &p})
	now, passed := clock.Time(1), []arrived(nil)
	for i := range uint64(100_000) {
		put(l, now, i, 1000)
		passed = append(passed, takeAll(l, now)...)
		now = now.Add(300 * time.Microsecond) // the load is 3.3 times the rate
	}
	assert.InDelta(t, 30_000+10, len(passed), 1, "30 s at 1000 packets a second, and the burst")
	for i := 0; i+200 < len(passed); i += 97 {
		took := passed[i+200].at.Sub(passed[i].at)
		require.LessOrEqual(t, 201*1000, 10_000+int(took/time.Microsecond), "packet %d", i)
	}
	assert.Equal(t, uint64(100_000-len(passed)), l.Counters().Policed)
}

// RFC 3168 §5: excess packets are marked if their transport is ECN-capable, and dropped if not.
func TestPolicerMarks(t *testing.T) {
	for ecn, marks := range map[byte]bool{0: false, 1: true, 2: true} {
		l := newLink(t, netem.Config{Policer: &netem.Policer{Rate: 8000, Burst: 2500, Mark: true}})
		for range 10 {
			l.Input(1, 0, [][]byte{ipv4(ecn, 1000)})
		}
		c := l.Counters()
		if marks {
			assert.Equal(t, []uint64{8, 0}, []uint64{c.Marked, c.Policed})
			for i := range 10 {
				data, _, ok := l.Output(1)
				require.True(t, ok)
				assert.Equal(t, i >= 2, data[1]&3 == 3)
			}
			continue
		}
		assert.Equal(t, []uint64{0, 8}, []uint64{c.Marked, c.Policed})
		assert.Len(t, takeAll(l, 1), 2)
	}
	for name, bad := range map[string]netem.Policer{
		"no rate": {Burst: 1}, "no burst": {Rate: 1}, "large burst": {Rate: 1, Burst: 1 << 31},
	} {
		_, err := netem.New(netem.Config{Policer: &bad}, sources(1))
		require.ErrorIs(t, err, netem.ErrConfig, name)
	}
}
