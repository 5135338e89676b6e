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

// Without loss, each write is one segment, whatever the loss recovery. There are few pure
// acknowledgments, because the echo carries the acknowledgments.
func TestClientOverTCP(t *testing.T) {
	for _, recovery := range tcp.Recoveries() {
		r := overTCP(t, 1, 0, recovery)
		require.True(t, r.Finished, r.Failure)
		assert.Equal(t, uint64(1000), r.Data)
		assert.Zero(t, r.Again)
		assert.Less(t, r.Acks, uint64(100))
		assert.InDelta(t, 10.5, r.Took.Seconds(), .5)
	}
}

// After a loss, TCP waits for the RTO, at least 200 ms, and then sends the data written meanwhile
// in full segments. So with more loss there are fewer segments, and the transfer takes longer. At
// 10 % loss it takes hardly more time. At 30 % it often does not finish, but RCP does, because it
// retransmits every 10 ms.
func TestLossOverTCP(t *testing.T) {
	// In a few worlds two SYNs are lost, and the window begins with one segment.
	const most, few = 20, 5
	seconds := func(p float64, worlds uint64, recovery string) (sum float64, finished int) {
		for seed := range worlds {
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
		return sum / float64(worlds), finished
	}
	for _, recovery := range []string{"rack", "newreno", "gbn"} {
		light, all := seconds(.1, most, recovery)
		assert.Equal(t, most, all, recovery)
		assert.InDelta(t, 12, light, 2, recovery)
		heavy, some := seconds(.3, few, recovery)
		assert.Less(t, some, few, recovery)
		assert.Greater(t, heavy, 4*light, recovery)
	}
	_, selective := seconds(.2, few, "rack")
	_, cumulative := seconds(.2, few, "gbn")
	assert.Greater(t, selective, cumulative, "selective acknowledgments are faster")
}
