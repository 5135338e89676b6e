package workload_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const ms = time.Millisecond

// bound is the longest round trip on the slow path if the reverse queue is empty: both links, a
// full queue, and one packet in each direction that is being sent.
const bound = 176*ms + 26400*8*time.Second/2_435_000 + ms

func addr(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)
}

func runNotebook(
	t *testing.T, n workload.NotebookNetwork, cfg workload.NotebookConfig, s ...workload.Strategy,
) []workload.NotebookResult {
	t.Helper()
	r, _, err := n.Run(1, cfg, s...)
	require.NoError(t, err)
	for i := range r {
		require.True(t, r[i].Finished, r[i].Failure)
		require.LessOrEqual(t, r[i].NewAcks+r[i].DuplicateAcks, r[i].TotalAcks)
		require.LessOrEqual(t, r[i].TotalAcks, int(r[i].Acks))
	}
	return r
}

// After the first round trip, a window that fits in the path and its queue is sent once per round
// trip.
func TestFixedWindowPerRoundTrip(t *testing.T) {
	const d = 10 * time.Second
	for _, w := range []int{1, 30, 250, 300} {
		cfg := workload.NotebookConfig{Duration: d}
		r := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(w))[0]
		t.Logf("W %d: %.0f bytes/s, %v", w, r.Throughput, r.MeanRTT)
		share := (d - r.MeanRTT).Seconds() / d.Seconds()
		assert.InEpsilon(t, float64(w)*80/r.MeanRTT.Seconds()*share, r.Throughput, .015)
		assert.InDelta(t, 176.9, r.MeanRTT.Seconds()*1000, .7)
		assert.GreaterOrEqual(t, r.MinRTT, 176*ms)
		assert.LessOrEqual(t, r.MaxRTT, bound)
		assert.Zero(t, r.DuplicateAcks)
		assert.Zero(t, r.Again)
	}
}

// Overflows of the queue make a fixed window go back at every third duplicate and retransmit the
// whole window, so the path carries nothing else. A TCP with a fixed window, which retransmits only
// lost segments, does not collapse.
func TestGoBackNCollapses(t *testing.T) {
	cfg := workload.NotebookConfig{Duration: 5 * time.Second}
	for _, w := range []int{600, 1000} {
		r := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(w))[0]
		t.Logf("W %d: %.0f bytes/s, %.1f %% duplicates, %d of %d retransmitted", w, r.Throughput,
			r.DuplicatePercent, r.Again, r.Sent)
		assert.Less(t, r.Throughput, 10_000.0, "of 113000 with a window of 250")
		assert.Greater(t, r.DuplicatePercent, 90.0)
		assert.Greater(t, float64(r.Again), .95*float64(r.Sent))
	}
	goodput := map[string]float64{}
	for _, recovery := range []string{"rack", "gbn"} {
		l, err := workload.NotebookNetwork{}.Build(1)
		require.NoError(t, err)
		// 110 kB are more than the 54 kB of a round trip plus the 26 kB of the queue.
		knobs := tcp.Knobs{Recovery: tcp.Recovery{Congestion: "fixed", FixedWindow: 110_000, Strategy: recovery}}
		require.NoError(t, l.Left.Stack().TCP().SetKnobs(knobs))
		left, right := &sim.Bulk{Send: 1 << 30}, &sim.Bulk{}
		_, err = l.Bulk(left, right, 80, 20*time.Second)
		require.NoError(t, err)
		goodput[recovery] = float64(right.Received) / 20
		t.Logf("TCP, %s: %.0f bytes/s", recovery, goodput[recovery])
	}
	assert.Greater(t, goodput["rack"], .6*2_435_000/8)
	assert.Less(t, goodput["gbn"], .5*goodput["rack"])
}

// The receiver searches all held segments for each new one. After a gap, the receiver is far slower
// than the path, and its buffer is full. In 60 s, the document has 23,377 acknowledgments, 1,277
// bytes/s, and a mean round trip of 973 ms.
func TestHeldSegmentsCostTheReceiverTime(t *testing.T) {
	var r [2]workload.NotebookResult
	for i, held := range []time.Duration{-1, 2 * time.Microsecond} {
		cfg := workload.NotebookConfig{Duration: 10 * time.Second, HeldCost: held}
		r[i] = runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(1000))[0]
		t.Logf("%v for each: %d acknowledgments, %.0f bytes/s", held, r[i].TotalAcks,
			r[i].Throughput)
	}
	assert.Zero(t, r[0].Overflowed)
	assert.NotZero(t, r[1].Overflowed)
	assert.Less(t, r[1].TotalAcks, r[0].TotalAcks/2)
}

// One process receives for all senders. Together they get what a single sender would get, and each
// waits for the others' segments in the buffer.
func TestSendersShareAReceiver(t *testing.T) {
	cfg := workload.NotebookConfig{Duration: 5 * time.Second, ReceiverCost: 2 * time.Millisecond, HeldCost: -1}
	one := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(200))[0]
	assert.InEpsilon(t, 500, float64(one.TotalAcks)/5, .1, "an acknowledgment in 2 ms")
	two := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(200), workload.NewFixedWindow(1))
	assert.InEpsilon(t, one.TotalAcks, two[0].TotalAcks+two[1].TotalAcks, .02)
	assert.Greater(t, two[1].MeanRTT, 350*ms, "behind 200 segments of the other sender")
}

// Congestion avoidance starts with a window of 10, without loss. The round trips have 10, 11, 12
// and more segments, which add up to 10t/R + t²/2R² in a time t. The link and its queue do not
// matter: the run is too short to fill them.
func TestTahoeAsDescribedOnAFastLink(t *testing.T) {
	d := 60 * time.Second
	if testenv.Long() {
		d = 240 * time.Second
	}
	n := workload.NotebookNetwork{Rate: netem.BitsPerSecond(100_420_000), Queue: 1_104_620}
	s := workload.NewTahoe(workload.TahoeConfig{Cwnd: 10, Even: true})
	// A receiver that takes 80 µs for a segment can process 1,357 segments per round trip. The
	// default of 150 µs is too slow.
	r := runNotebook(t, n, workload.NotebookConfig{Duration: d, ReceiverCost: 80 * time.Microsecond}, s)[0]
	rounds := d.Seconds() / r.MeanRTT.Seconds()
	want := 10*rounds + rounds*rounds/2
	t.Logf("%d acknowledgments, want %.0f", r.NewAcks, want)
	assert.InEpsilon(t, want, float64(r.NewAcks), .02)
	assert.Zero(t, r.DuplicateAcks)
	assert.InDelta(t, 176.01, r.MeanRTT.Seconds()*1000, .05)
	assert.InDelta(t, rounds+10, float64(r.MaxCwnd), 3)
}

// The published version differs: the window doubles each round trip until a loss, which occurs in
// the receiver's socket. Then it grows twice as fast as Tahoe's. In 240 s, the document has 649,011
// acknowledgments, .62 % of them duplicates, and a mean round trip of 183.2 ms.
func TestTahoeAsPublishedIsLimitedByItsReceiver(t *testing.T) {
	testenv.NeedNoRace(t)
	n := workload.NotebookNetwork{Rate: netem.BitsPerSecond(100_420_000), Queue: 1_104_620}
	// If the ends take no time, the queue overflows instead.
	free := workload.NotebookConfig{Duration: 3 * time.Second, SenderCost: -1, ReceiverCost: -1}
	r := runNotebook(t, n, free, workload.NewTahoe(workload.TahoeConfig{}))[0]
	assert.Zero(t, r.Overflowed)
	assert.Greater(t, r.MaxCwnd, (1_104_620+2_200_000)/81)
	if !testenv.Long() {
		return
	}
	// This is the preset tahoe-high-published.
	cfg := workload.NotebookConfig{Duration: 240 * time.Second, HeldCost: -1}
	r = runNotebook(t, n, cfg, workload.NewTahoe(workload.TahoeConfig{}))[0]
	t.Logf("%.0f bytes/s, overflowed %d, largest window %d", r.Throughput, r.Overflowed, r.MaxCwnd)
	assert.NotZero(t, r.Overflowed)
	assert.NotZero(t, r.DuplicateAcks)
	assert.Less(t, r.DuplicatePercent, 2.0)
	assert.Less(t, r.MeanRTT, 190*ms, "the queue stays empty")
	assert.Greater(t, r.Throughput, 100_000.0)
	assert.Less(t, r.Throughput, 1_000_000.0, "of 12.5 million")
}

// A link with the same rate in both directions has no room for acknowledgments that are longer than
// the data. They fill the reverse queue, which has no limit, and this queue determines the sender's
// round trips.
func TestAcknowledgmentsFillTheReversePath(t *testing.T) {
	n := workload.NotebookNetwork{Rate: netem.BitsPerSecond(243_500), Queue: 2640}
	cfg := workload.NotebookConfig{Duration: 30 * time.Second, Record: true}
	s := workload.NewTahoe(workload.TahoeConfig{Even: true})
	r := runNotebook(t, n, cfg, s)[0]
	fill := 243_500. / 8 / 97 * r.MinRTT.Seconds() // number of acknowledgments in a round trip
	for _, p := range r.Points {
		if float64(p.Cwnd) < .9*fill {
			require.Less(t, p.RTT, r.MinRTT+20*ms, "at %v", p.At)
		}
	}
	require.Greater(t, float64(r.MaxCwnd), 1.5*fill)
	assert.Zero(t, r.DuplicateAcks, "the forward queue is empty")
	assert.InEpsilon(t, float64(r.MaxCwnd)/fill*r.MinRTT.Seconds(), r.Points[len(r.Points)-1].RTT.Seconds(), .05)
}

// Senders share the path. Two fixed windows slow each other down, one fixed window slows a Tahoe
// down, and two Tahoes share the path fairly.
func TestSendersShareThePath(t *testing.T) {
	testenv.NeedNoRace(t)
	cfg := workload.NotebookConfig{Duration: 5 * time.Second}
	two := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewFixedWindow(1000), workload.NewFixedWindow(1000))
	for _, r := range two {
		assert.Less(t, r.Throughput, 10_000.0)
		assert.Greater(t, r.DuplicatePercent, 90.0)
	}
	mixed := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewTahoe(workload.TahoeConfig{}),
		workload.NewFixedWindow(600))
	t.Logf("Tahoe %d acknowledgments, fixed window %d", mixed[0].TotalAcks, mixed[1].TotalAcks)
	assert.Less(t, mixed[0].TotalAcks, 100)
	assert.Greater(t, mixed[1].TotalAcks, 100*mixed[0].TotalAcks)

	cfg.Duration = 120 * time.Second
	if !testenv.Long() {
		return
	}
	r := runNotebook(t, workload.NotebookNetwork{}, cfg, workload.NewTahoe(workload.TahoeConfig{}),
		workload.NewTahoe(workload.TahoeConfig{}))
	x, y := r[0].Throughput, r[1].Throughput
	t.Logf("two Tahoes: %.0f, %.0f", x, y)
	assert.Greater(t, (x+y)*(x+y)/(2*(x*x+y*y)), .9, "Jain's index")
}

// The acknowledgment after a filled hole carries the time at which the segment first arrived. So
// the measured "round trip" includes the recovery, and is longer than anything on the path takes.
func TestStoredTimestampsMeasureRecoveries(t *testing.T) {
	n := workload.NotebookNetwork{Loss: netem.ListedLoss{200}}
	cfg := workload.NotebookConfig{Duration: 5 * time.Second, Record: true}
	r := runNotebook(t, n, cfg, workload.NewTahoe(workload.TahoeConfig{Even: true}))[0]
	assert.NotZero(t, r.DuplicateAcks)
	assert.NotZero(t, r.Again)
	assert.Greater(t, r.MaxRTT, 300*ms)
	late := 0
	for _, p := range r.Points {
		if p.RTT > 180*ms {
			late++
		}
	}
	assert.Equal(t, 1, late)
	assert.Len(t, r.Points, r.TotalAcks)
	assert.Less(t, r.MinRTT, 177*ms)
}

func TestNotebookSeeds(t *testing.T) {
	cfg := workload.NotebookConfig{Duration: 5 * time.Second}
	n := workload.NotebookNetwork{Loss: netem.UniformLoss(.01)}
	play := func(seed uint64) ([]workload.NotebookResult, uint64) {
		r, hash, err := n.Run(seed, cfg, workload.NewTahoe(workload.TahoeConfig{}))
		require.NoError(t, err)
		return r, hash
	}
	one, hash := play(1)
	again, same := play(1)
	assert.Equal(t, one, again)
	assert.Equal(t, hash, same)
	_, other := play(2)
	assert.NotEqual(t, hash, other)
}

// Lost handshake packets are repeated, and data counts as an answer. If a peer never answers, the
// other end gives up.
func TestHandshakes(t *testing.T) {
	cfg := workload.NotebookConfig{Duration: 3 * time.Second}
	n := workload.NotebookNetwork{Loss: netem.ListedLoss{1}} // loses the answer
	r := runNotebook(t, n, cfg, workload.NewFixedWindow(4))[0]
	assert.InEpsilon(t, 4*80/.1767, r.Throughput, .1)

	l, err := workload.NotebookNetwork{}.Build(1)
	require.NoError(t, err)
	sim.End{Host: l.Right}.Cut(true)
	a, err := new(workload.Process).Attach(l.Left, l.Right, addr(5000), workload.NewFixedWindow(4), cfg)
	require.NoError(t, err)
	l.At(l.Now().Add(2500*ms), func(clock.Time) { sim.End{Host: l.Right}.Cut(false) })
	require.Equal(t, "not started", a.Result().Failure)
	require.True(t, l.RunUntil(time.Minute, a.Done))
	assert.True(t, a.Result().Finished)
	assert.Equal(t, 3*time.Second+88*ms+3*time.Second, l.Elapsed().Round(ms))

	l, err = workload.NotebookNetwork{}.Build(1)
	require.NoError(t, err)
	sim.End{Host: l.Right}.Cut(true)
	a, err = new(workload.Process).Attach(l.Left, l.Right, addr(5000), workload.NewFixedWindow(4), cfg)
	require.NoError(t, err)
	require.True(t, l.RunUntil(time.Minute, a.Done))
	assert.Equal(t, "no handshake", a.Result().Failure)
	assert.False(t, a.Result().Finished)
	assert.Equal(t, 10*time.Second, l.Elapsed())
}

func TestInvalidNotebookConfigs(t *testing.T) {
	for _, c := range []workload.NotebookConfig{
		{Duration: -1}, {SenderCost: time.Minute}, {Buffer: -1}, {Window: 1},
	} {
		_, _, err := workload.NotebookNetwork{}.Run(1, c, workload.NewFixedWindow(1))
		assert.ErrorIs(t, err, workload.ErrNotebookConfig, "%+v", c)
		assert.ErrorContains(t, err, "must be", "%+v", c)
	}
	for _, s := range []workload.Strategy{
		workload.NewFixedWindow(0), workload.NewTahoe(workload.TahoeConfig{Cwnd: -1}),
		workload.NewTahoe(workload.TahoeConfig{Ssthresh: -1}),
	} {
		_, _, err := workload.NotebookNetwork{}.Run(1, workload.NotebookConfig{}, s)
		assert.ErrorIs(t, err, workload.ErrNotebookConfig)
		assert.ErrorContains(t, err, "must be")
	}
	l, err := workload.NotebookNetwork{}.Build(1)
	require.NoError(t, err)
	for i, want := range []bool{true, false} {
		_, err = new(workload.Process).Attach(l.Left, l.Right, addr(5000), workload.NewFixedWindow(1),
			workload.NotebookConfig{})
		assert.Equal(t, want, err == nil, "attempt %d", i)
	}
}
