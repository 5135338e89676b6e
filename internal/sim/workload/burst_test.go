package workload_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// latest returns the mean of the largest of n random numbers. Each is the number of tries until the
// first success, with a success rate of one half.
func latest(n int) (mean float64) {
	for k := range 64 {
		mean += 1 - math.Pow(1-math.Pow(.5, float64(k)), float64(n))
	}
	return mean
}

// In the document's table, a window sends 58 packets and a fence 30, in 4 rounds. These are the
// results of one run. On average, a packet takes two tries, which makes 32. In a window, each
// packet is also sent as often as any packet before it, which makes 68. If acknowledgments are also
// lost, each loss costs a round.
func TestTableOfSixteenPackets(t *testing.T) {
	var window float64
	for i := range 16 {
		window += latest(i + 1)
	}
	require.InDelta(t, 68.0, window, .15)
	require.InDelta(t, 5.4, latest(16), .1)
	for _, c := range []struct {
		name            string
		cfg             rcp.Config
		back            float64
		packets, within float64
	}{
		{"fence", rcp.Config{}, 0, 32, .5},
		{"window", rcp.Config{Window: true}, 0, window, 1.5},
		{"fence, acknowledgments lost too", rcp.Config{}, .5, 48.1, 1},
		{"window, acknowledgments lost too", rcp.Config{Window: true}, .5, 83.6, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := trials(150, 2000)
			var packets, rounds float64
			for seed := range uint64(k) {
				n := workload.EchoNetwork{There: .5, Back: c.back}
				r, _, err := n.RunBurst(seed, workload.BurstConfig{RCP: c.cfg})
				require.NoError(t, err)
				require.True(t, r.Finished, "seed %d: %s", seed, r.Failure)
				packets += float64(r.Sent) / float64(k)
				rounds += float64(r.Rounds) / float64(k)
			}
			t.Logf("%.2f packets in %.2f rounds", packets, rounds)
			assert.InDelta(t, c.packets, packets, c.within*math.Sqrt(2000/float64(k)))
			if c.back == 0 {
				assert.InDelta(t, latest(16), rounds, .15)
			}
		})
	}
}

// Without loss, a burst takes as many rounds as it fills fences.
func TestBurstWithoutLoss(t *testing.T) {
	r, _, err := workload.EchoNetwork{}.RunBurst(1, workload.BurstConfig{Packets: 40})
	require.NoError(t, err)
	assert.True(t, r.Finished)
	assert.Equal(t, uint64(40), r.Sent)
	assert.Equal(t, uint64(2), r.Rounds)

	r, _, err = workload.EchoNetwork{Back: 1}.RunBurst(1, workload.BurstConfig{})
	require.NoError(t, err)
	assert.False(t, r.Finished)
	assert.Equal(t, "the RCP peer does not answer: 0 of 16 packets acknowledged", r.Failure)
}
