package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// newRouter is a relay that has nothing to say of its own.
func newRouter(tb testing.TB) *relay {
	tb.Helper()
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.2/24"), face("if1", "10.1.0.1/24")},
		Routes:     []stack.Route{route("0.0.0.0/0", "10.1.0.9")},
		Forwarding: true,
	})
	require.NoError(tb, err)
	return &relay{Stack: s, batch: buffer.NewBatch()}
}

// apart are the packets of data, each in memory of its own.
func apart(data []byte, size int) (packets [][]byte) {
	for p := range slices.Chunk(data, size) {
		packets = append(packets, slices.Clone(p))
	}
	return packets
}

// hand gives the router packets, by Relay if it can be, and reports whether it could.
func (r *relay) hand(packets [][]byte, relay bool) bool {
	tr := buffer.Train{Pieces: packets}
	if relay && r.Relay(0, &tr) {
		for k := range tr.Count {
			r.sent = append(r.sent, fmt.Sprint(tr.Iface, tr.NextHop, slices.Concat(tr.Packet(k)...)))
		}
		return true
	}
	r.InputPackets(1, 0, false, packets)
	r.pass(buffer.Frame{}, 1000)
	return false
}

// RFC 1812 §5.2.1: what a router passes on without being asked for it leaves as it would have.
func TestRelayForwardsAsOutputDoes(t *testing.T) {
	rng, relayed := rand.New(rand.NewPCG(7, 1)), 0
	for round := range 300 {
		quick, slow := newRouter(t), newRouter(t)
		loss := []float64{0, 0, 0, 0.3}[rng.IntN(4)]
		quick.SetLoss(1, loss)
		slow.SetLoss(1, loss)
		size := 40 + rng.IntN(100)
		for left := mixture(rng, size, 90); len(left) > 0; {
			n := min(len(left), size*(1+rng.IntN(3)))
			slow.hand(apart(left[:n], size), false)
			if quick.hand(apart(left[:n], size), true) {
				relayed++
			}
			left = left[n:]
		}
		require.Equal(t, slow.sent, quick.sent, "round %d", round)
		require.Equal(t, slow.InterfaceInfos(), quick.InterfaceInfos(), "round %d", round)
	}
	assert.Greater(t, relayed, 500)
}

// Whoever has something to send, or somebody who watches, is not passed over.
func TestRelayWaitsForWhatIsPending(t *testing.T) {
	one := frameOf(1, 100)
	r := newRouter(t)
	assert.False(t, r.hand(apart(one.Data, 100), true), "the first of a flow is looked up")
	assert.True(t, r.hand(apart(one.Data, 100), true))
	assert.False(t, r.hand(apart(frameOf(buffer.MaxTrainPackets+1, 100).Data, 100), true))

	_, err := r.SendTest(1, addr("10.1.0.9"), 0, []byte("first"))
	require.NoError(t, err)
	assert.False(t, r.hand(apart(one.Data, 100), true), "a packet of its own waits")
	assert.True(t, r.hand(apart(one.Data, 100), true))

	r.SetUp(1, 1, false)
	assert.False(t, r.hand(apart(one.Data, 100), true), "the link is down")

	speaks := newRelay(t, false)
	speaks.pass(one, 1000)
	assert.False(t, speaks.hand(apart(one.Data, 100), true), "RIP is asked each time")

	train := buffer.Train{Pieces: apart(one.Data, 100)}
	r = newRouter(t)
	r.pass(one, 1000)
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		assert.True(t, r.Relay(0, &train))
	}))
}
