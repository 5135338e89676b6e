package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func overTCP(t *testing.T, seed uint64, p float64, recovery string) workload.EchoResult {
	t.Helper()
	n := workload.EchoNetwork{There: p, Back: p, TCP: tcp.Config{Knobs: tcp.Knobs{Recovery: tcp.Recovery{Strategy: recovery}}}}
	r, _, err := n.RunTCP(seed, workload.EchoConfig{})
	require.NoError(t, err)
	require.Equal(t, r.Sent, r.Data+r.Acks)
	return r
}

// Without loss each write is a segment, and what TCP does about losses makes no difference:
// beside the data there is hardly an acknowledgment, for the echo carries it.
func TestTheSameClientOverTCP(t *testing.T) {
	for _, recovery := range tcp.Recoveries() {
		r := overTCP(t, 1, 0, recovery)
		require.True(t, r.Finished, r.Failure)
		assert.Equal(t, uint64(1000), r.Data)
		assert.Zero(t, r.Again)
		assert.Less(t, r.Acks, uint64(100))
		assert.InDelta(t, 10.5, r.Took.Seconds(), .5)
	}
}

// A loss makes TCP wait for a time-out of a round trip's estimate, at least 200 ms, and what
// is written meanwhile leaves in full segments: so the more is lost, the fewer segments there
// are, and the longer it takes. It finishes at 10 % in hardly more time, and far from always
// at 30 %, where RCP does: resending every 10 ms is what that costs and buys.
func TestLossOverTCP(t *testing.T) {
	seconds := func(p float64, recovery string) (sum float64, finished int) {
		for seed := range uint64(5) {
			r := overTCP(t, seed, p, recovery)
			if r.Finished {
				finished++
				assert.Less(t, r.Packets(), uint64(1000))
				assert.NotZero(t, r.Again)
			} else {
				assert.Contains(t, r.Failure, "of 1000 writes")
			}
			sum += min(r.Took, 2*time.Minute).Seconds()
		}
		return sum / 5, finished
	}
	for _, recovery := range []string{"rack", "newreno", "gbn"} {
		light, all := seconds(.1, recovery)
		assert.Equal(t, 5, all, recovery)
		assert.InDelta(t, 12, light, 2, recovery)
		heavy, some := seconds(.3, recovery)
		assert.Less(t, some, 5, recovery)
		assert.Greater(t, heavy, 4*light, recovery)
	}
	_, selective := seconds(.2, "rack")
	_, cumulative := seconds(.2, "gbn")
	assert.Greater(t, selective, cumulative, "who hears which segments arrived is done sooner")
}
