package tcp

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// fewer returns how many of n runs a short test makes.
func fewer(n int) int {
	if !testenv.Long() {
		return (n + 4) / 5
	}
	return n
}

// shorter returns how many of n bytes a short test transfers: a quarter, which is enough to see
// losses.
func shorter(n uint64) uint64 {
	if !testenv.Long() {
		return n / 4
	}
	return n
}

// TestRandomWorlds moves random data in both directions at once over a link, with options, buffers
// and applications chosen by the seed. Every byte must arrive once and in order, and both hosts
// must end up empty.
func TestRandomWorlds(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = fewer(1200)
	}
	for seed := range uint64(n) {
		if !randomWorld(t, seed) {
			t.Fatalf("seed %d failed", seed)
		}
	}
}

func randomConfig(r *rand.Rand) Config {
	cfg := course()
	pick := func(p float64) bool { return r.Float64() < p }
	cfg.OptionsOff = pick(0.2)
	cfg.NoDelay = pick(0.3)
	cfg.Retries.Data, cfg.Retries.Syn, cfg.Retries.Fin = 60, 60, 60
	cfg.Recovery.RTOMax = 200 * time.Millisecond
	cfg.MSL = 5 * time.Second // longer than any run of lost acknowledgments
	cfg.TrainSegments = 1 + r.IntN(44)
	cfg.Recovery.InitialWindow = 1 + r.IntN(20)
	sizes := []int{100, 1000, 5000, 20000, 65535, 200000, 1 << 20}
	cfg.Buffers.Recv = sizes[r.IntN(len(sizes))]
	cfg.Buffers.Send = sizes[r.IntN(len(sizes))]
	cfg.Recovery.Congestion = Algorithms()[r.IntN(len(Algorithms()))]
	cfg.Recovery.Pacing = pick(0.2)
	cfg.NoTimestamps, cfg.NoSACK, cfg.NoWindowScale = pick(0.3), pick(0.2), pick(0.2)
	cfg.ECN = ECNMode(r.IntN(int(numECNModes)))
	if pick(0.5) {
		// The sequence numbers wrap somewhere in the stream.
		near := -uint32(r.IntN(100000))
		cfg.Sequence = func(Tuple) uint32 { return near }
	}
	return cfg
}

func randomWire(r *rand.Rand) wire {
	wi := wire{
		delay: time.Duration(1+r.IntN(400)) * time.Microsecond,
		merge: r.IntN(3) > 0,
		mtu:   []int{100, 576, 1400, 1400, 9000}[r.IntN(5)],
	}
	switch r.IntN(5) {
	case 0:
	case 1:
		wi.loss = 0.02
	case 2:
		wi.loss, wi.dup, wi.reorder = r.Float64()*0.1, r.Float64()*0.1, r.Float64()*0.2
	case 3:
		wi.loss, wi.dup, wi.reorder = r.Float64()*0.3, r.Float64()*0.3, r.Float64()*0.3
	case 4:
		wi.jitter = wi.delay
		wi.corrupt = 0.05
	}
	if r.IntN(3) == 0 {
		wi.mark = r.Float64() * r.Float64()
	}
	if r.IntN(3) == 0 {
		wi.bytesPerSec = 1e6 * float64(1+r.IntN(100))
	}
	return wi
}

// changeRoutes changes the route during the transfer: to a smaller MTU, to no route, and back.
func (w *world) changeRoutes(r *rand.Rand) {
	at := w.now
	w.every = func() {
		if w.now < at {
			return
		}
		at = w.now.Add(time.Duration(r.IntN(20000)) * time.Microsecond)
		w.down = !w.down && r.IntN(3) == 0
		if r.IntN(4) == 0 && w.wire.mtu > 200 {
			w.wire.mtu -= r.IntN(w.wire.mtu / 8)
		}
		for _, h := range w.hosts {
			h.Rerouted()
		}
	}
}

func randomWorld(t *testing.T, seed uint64) bool {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	cfg := randomConfig(r)
	wi := randomWire(r)
	cfg.Recovery.Strategy = []string{"rack", "sack", "rack", "newreno", "gbn"}[seed%5]
	w := newWorld(t, seed, wi, cfg)
	w.verify = seed%7 == 0
	if seed%3 == 0 { // free the idle state at every pause
		w.hosts[0].idleTime, w.hosts[1].idleTime = 0, 0
	}
	a, b := w.connect()
	if a.State() == StateClosed {
		return assert.Fail(t, "no handshake", "seed %d: %v", seed, a.Err())
	}
	most := 300000
	if wi.mtu == 100 || cfg.Buffers.Recv <= 1000 || cfg.Buffers.Send <= 1000 {
		most = 20000
	}
	ab, ba := newStream(a, b, uint64(r.IntN(most))), newStream(b, a, uint64(r.IntN(most)))
	for _, s := range []*stream{ab, ba} {
		s.maxWrite, s.maxRead = 1+r.IntN(60000), 1+r.IntN(60000)
		s.lazy = r.Float64() * 0.9
	}
	what := func() string {
		return fmt.Sprintf("seed %d, wire %+v, config %+v\n%d/%d %d/%d at %v\na %+v\nb %+v", seed, wi,
			cfg, ab.read, ab.size, ba.read, ba.size, w.now, a.Info(), b.Info())
	}
	if r.IntN(4) == 0 {
		w.changeRoutes(r)
	}
	if !w.transfer(30*time.Minute, ab, ba) {
		return assert.Fail(t, "stalled", what())
	}
	closed := func() bool { return w.hosts[0].numConns()+w.hosts[1].numConns() == 0 }
	if !w.until(20*time.Minute, closed) {
		return assert.Fail(t, "does not close", what())
	}
	w.run(time.Minute)
	ok := assert.NoError(t, a.Err(), what()) && assert.NoError(t, b.Err(), what())
	for _, h := range w.hosts {
		ok = ok && assert.Zero(t, h.TimeWaits(), what()) && assert.Zero(t, h.Deadline(), what())
	}
	require.LessOrEqual(t, a.Info().BytesAcked, ab.size)
	return ok
}
