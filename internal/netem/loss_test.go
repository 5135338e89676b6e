package netem_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// draws returns the decisions of a loss model for n packets.
func draws(l netem.Loss, seed uint64, n int) []bool {
	model := l.Start(0, netem.Streams(seed)("loss"))
	out := make([]bool, n)
	for i := range out {
		out[i] = model(1, 1400)
	}
	return out
}

func count(lost []bool) (n int) {
	for _, l := range lost {
		if l {
			n++
		}
	}
	return n
}

// within checks a number of successes against a binomial distribution: within four standard
// deviations, which a correct model exceeds once in 16,000 tries.
func within(t *testing.T, got, n int, p float64, what string) {
	t.Helper()
	sd := math.Sqrt(float64(n) * p * (1 - p))
	assert.InDelta(t, float64(n)*p, float64(got), 4*sd, "%s: %d of %d at %v", what, got, n, p)
}

func TestUniformLossIsBinomial(t *testing.T) {
	const n = 100_000
	for _, p := range []float64{0, 0.001, 0.02, 0.3, 0.5, 1} {
		lost := draws(netem.UniformLoss(p), 11, n)
		within(t, count(lost), n, p, "lost")
		// Losses are independent: a loss follows a loss as often as it follows an arrival.
		pairs, followed := 0, count(lost[:n-1])
		for i := 1; i < n; i++ {
			if lost[i] && lost[i-1] {
				pairs++
			}
		}
		within(t, pairs, followed, p, "lost after a loss")
	}
}

func TestPeriodicLossIsExact(t *testing.T) {
	for _, p := range []netem.PeriodicLoss{
		{Every: 1}, {Every: 7}, {Every: 100, First: 40}, {Every: 100, First: 140}, {Every: 5, First: 1},
	} {
		first := p.First
		if first == 0 {
			first = p.Every
		}
		for i, lost := range draws(p, 1, 1000) {
			n := uint64(i) + 1
			assert.Equal(t, n >= first && (n-first)%p.Every == 0, lost, "%+v packet %d", p, n)
		}
	}
}

func TestListedLoss(t *testing.T) {
	want := map[int]bool{1: true, 17: true, 18: true, 40: true}
	for i, lost := range draws(netem.ListedLoss{40, 17, 18, 1, 17}, 1, 60) {
		assert.Equal(t, want[i+1], lost, "packet %d", i+1)
	}
}

// The mean loss is (p(1-h)+r(1-k))/(p+r), and the bad state lasts 1/r packets.
func TestGilbertElliott(t *testing.T) {
	const n = 1_000_000
	for _, g := range []netem.GilbertElliott{
		{P: 0.01, R: 0.25, Bad: 1},
		{P: 0.05, R: 0.2, Good: 0.01, Bad: 0.7},
		netem.Bursts(0.02, 5),
	} {
		lost := draws(g, 5, n)
		// Successive packets are correlated: the variance is larger than a binomial's by
		// (1+λ)/(1-λ) at most, where λ = 1-p-r is the chain's memory.
		lambda := 1 - g.P - g.R
		sd := math.Sqrt(n * g.Mean() * (1 - g.Mean()) * (1 + lambda) / (1 - lambda))
		assert.InDelta(t, n*g.Mean(), float64(count(lost)), 4*sd, "%+v", g)
		if g.Bad != 1 || g.Good != 0 {
			continue
		}
		bursts, length := 0, 0
		for i, l := range lost {
			if l {
				length++
				if i == 0 || !lost[i-1] {
					bursts++
				}
			}
		}
		// A geometric length of mean 1/r has the variance (1-r)/r².
		sd = math.Sqrt((1-g.R)/(g.R*g.R)) / math.Sqrt(float64(bursts))
		assert.InDelta(t, 1/g.R, float64(length)/float64(bursts), 4*sd, "burst of %+v", g)
	}
	b := netem.Bursts(0.02, 5)
	assert.InDelta(t, 0.02, b.Mean(), 1e-12)
	assert.InDelta(t, 0.2, b.R, 1e-12)
}

// The draws of one part do not shift those of another: experiments that differ in one part see the
// same losses.
func TestStreamsAreIndependent(t *testing.T) {
	survivors := func(cfg netem.Config) (tags []uint64) {
		cfg.Loss = netem.UniformLoss(0.3)
		l, err := netem.New(cfg, netem.Streams(9))
		require.NoError(t, err)
		seen := map[uint64]bool{}
		for i := range uint64(500) {
			l.Input(1, i, [][]byte{make([]byte, 60)})
			for {
				_, tag, ok := l.Output(1 << 40)
				if !ok {
					break
				}
				if !seen[tag] {
					seen[tag] = true
					tags = append(tags, tag)
				}
			}
		}
		return tags
	}
	plain := survivors(netem.Config{})
	assert.Equal(t, plain, survivors(netem.Config{
		Duplicate: 0.5, Truncate: 0.2, Corrupt: netem.Corrupt{Share: 0.5},
	}))
	assert.NotEqual(t, netem.Streams(1)("loss").Uint64(), netem.Streams(1)("jitter").Uint64())
	b, c := netem.Streams(1)("loss"), netem.Streams(2)("loss")
	first := netem.Streams(1)("loss").Uint64()
	assert.Equal(t, first, b.Uint64())
	assert.NotEqual(t, first, c.Uint64())
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]netem.Config{
		"share above one":       {Duplicate: 1.1},
		"share below zero":      {Truncate: -0.1},
		"share not a number":    {Corrupt: netem.Corrupt{Share: math.NaN()}},
		"reorder share":         {Reorder: netem.Reorder{Share: 2}},
		"loss share":            {Loss: netem.UniformLoss(7)},
		"period zero":           {Loss: netem.PeriodicLoss{}},
		"packet zero":           {Loss: netem.ListedLoss{3, 0}},
		"chain without exit":    {Loss: netem.GilbertElliott{Bad: 1}},
		"impossible chain":      {Loss: netem.GilbertElliott{P: 3, R: 1}},
		"no rate":               {Rate: netem.BitsPerSecond(0)},
		"queue without a rate":  {Queue: netem.DropTail{Packets: 5}},
		"negative queue":        {Rate: netem.BitsPerSecond(1), Queue: netem.DropTail{Bytes: -1}},
		"negative delay":        {Delay: -1},
		"negative jitter":       {Jitter: netem.UniformJitter(-1)},
		"jitter of two hours":   {Jitter: netem.NormalJitter(7.2e12)},
		"negative number":       {Corrupt: netem.Corrupt{Bits: -1}},
		"negative bound":        {MaxPackets: -1},
		"negative late arrival": {Reorder: netem.Reorder{Late: -1}},
	} {
		_, err := netem.New(cfg, netem.Streams(1))
		assert.ErrorIs(t, err, netem.ErrConfig, name)
	}
}

func sources(seed uint64) func(string) *rand.Rand { return netem.Streams(seed) }
