package workload_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// arms are all arms, and RDT with other settings.
var arms = map[string]workload.ObjectsConfig{
	"rdt":               {},
	"rdt, interleaved":  {RDT: rdt.Config{Interleave: true, Selective: true}},
	"sequential":        {Arm: workload.Sequential},
	"interleaved":       {Arm: workload.Interleaved},
	"parallel":          {Arm: workload.Parallel},
	"rdt, small first":  {SmallestFirst: true},
	"tcp, small first":  {Arm: workload.Sequential, SmallestFirst: true},
	"rdt, compressed":   {RDT: rdt.Config{Compress: true, Checksum: rdt.CRC32C}},
	"rdt, large chunks": {RDT: rdt.Config{Payload: 10_000, Window: 21}},
}

// line returns a link of 100 Mbit/s and a round trip of a millisecond, with the other settings of
// c.
func line(c netem.Config) workload.ObjectsNetwork {
	c.Rate = netem.BitsPerSecond(100e6)
	c.Delay += ms / 2
	return workload.ObjectsNetwork{Down: c, Up: c}
}

func lossy(p float64) workload.ObjectsNetwork { return line(netem.Config{Loss: netem.UniformLoss(p)}) }

func runObjects(t *testing.T, n workload.ObjectsNetwork, seed uint64, cfg workload.ObjectsConfig) workload.ObjectsResult {
	t.Helper()
	r, _, err := n.Run(seed, cfg)
	require.NoError(t, err)
	require.True(t, r.Finished, "seed %d, %v: %s", seed, cfg.Arm, r.Failure)
	pairs := cfg.Pairs
	if pairs == 0 {
		pairs = 10
	}
	require.Equal(t, 2*pairs, r.Complete)
	require.Equal(t, uint64(pairs*1_009_649), r.Bytes)
	for _, o := range r.Objects {
		require.True(t, o.Complete && o.Verified, "%s", o.Name)
		require.LessOrEqual(t, o.Began, o.Done)
	}
	return r
}

// when returns the mean and the largest completion time of the small objects, and the mean of the
// large ones, as shares of the total time.
func when(r *workload.ObjectsResult) (small, lastSmall, large float64) {
	for _, o := range r.Objects {
		at := o.Done.Seconds() / r.Took.Seconds()
		if o.Size == 9998 {
			small += at / 10
			lastSmall = max(lastSmall, at)
		} else {
			large += at / 10
		}
	}
	return small, lastSmall, large
}

// If objects are sent one after the other, a small object takes .55 of the total time on average.
// If they take turns, all small objects are complete after .020 of it. If the small objects go
// first, they take .005 on average, and the large ones .554. The total time is the same in all
// cases.
func TestOrdersWithoutLoss(t *testing.T) {
	testenv.NeedNoRace(t)
	took := map[string]float64{}
	for name, want := range map[string]struct{ small, last, large, within float64 }{
		"sequential":       {.55, 1, .541, .01},
		"rdt":              {.55, 1, .541, .01},
		"interleaved":      {.020, .020, 1, .01},
		"rdt, interleaved": {.020, .020, 1, .01},
		"tcp, small first": {.0054, .0099, .5545, .01},
		"rdt, small first": {.0054, .0099, .5545, .01},
		"parallel":         {.020, .020, 1, .04},
	} {
		r := runObjects(t, line(netem.Config{}), 1, arms[name])
		small, last, large := when(&r)
		t.Logf("%-17s %.3f s: small %.4f, the last %.4f, large %.3f", name, r.Took.Seconds(),
			small, last, large)
		assert.InDelta(t, want.small, small, want.within, name)
		assert.InDelta(t, want.last, last, want.within, name)
		assert.InDelta(t, want.large, large, want.within+.02, name)
		took[name] = r.Took.Seconds()
	}
	for _, kin := range [][]string{
		{"sequential", "interleaved", "tcp, small first", "parallel"},
		{"rdt", "rdt, interleaved", "rdt, small first"},
	} {
		for _, name := range kin[1:] {
			assert.InEpsilon(t, took[kin[0]], took[name], .02, name)
		}
	}
	// At 100 Mbit/s, 10.1 MB with headers take this time.
	assert.InDelta(t, .84, took["sequential"], .02)
}

// Every arm delivers every object, whatever the document's faults do to its packets.
func TestEveryArmWithEveryFault(t *testing.T) {
	for condition, n := range map[string]workload.ObjectsNetwork{
		"nothing":    {},
		"loss":       lossy(.05),
		"duplicates": line(netem.Config{Duplicate: .1}),
		"corruption": line(netem.Config{Corrupt: netem.Corrupt{Share: .05}}),
		"delay": line(netem.Config{
			Delay: 100 * ms, Jitter: netem.UniformJitter(20 * ms), Overtaking: true,
		}),
		"reordering": line(netem.Config{Reorder: netem.Reorder{Share: .1, Late: 5 * ms}}),
	} {
		for name, cfg := range arms {
			t.Run(condition+"/"+name, func(t *testing.T) {
				if condition != "loss" {
					testenv.NeedNoRace(t)
				}
				cfg.Pairs = 1
				r := runObjects(t, n, 1, cfg)
				assert.GreaterOrEqual(t, r.Data, r.Again)
				assert.GreaterOrEqual(t, r.Sent, r.Data)
				assert.NotZero(t, r.ClientSent)
				if !cfg.RDT.Compress {
					assert.GreaterOrEqual(t, r.SentBytes, r.Bytes)
				} else {
					assert.Less(t, r.SentBytes/r.Sent, uint64(1100), "of 1349")
				}
			})
		}
	}
}

// A duplicated packet costs nothing if the link is as fast as the server.
func TestDuplicatesCostNothing(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, name := range []string{"rdt", "rdt, interleaved", "sequential"} {
		cfg := arms[name]
		cfg.Pairs = 3
		clean := runObjects(t, line(netem.Config{}), 1, cfg)
		for _, p := range []float64{.05, .1} {
			r := runObjects(t, line(netem.Config{Duplicate: p}), 1, cfg)
			assert.InEpsilon(t, clean.Took.Seconds(), r.Took.Seconds(), .02, "%s, %g", name, p)
		}
	}
}

// Selective repeat sends N/(1-p) packets, with a variance of Np/(1-p)². If acknowledgments are lost
// at the same rate, it sends N/(1-p)², because each acknowledgment names only one packet. With the
// document's cumulative acknowledgments, the server sends much data that has already arrived.
func TestPacketsOfSelectiveRepeat(t *testing.T) {
	testenv.NeedNoRace(t)
	const n = 10*755 + 10*8 + 20 // chunks of 1325 bytes, and an end for each object
	selective := workload.ObjectsConfig{Cost: -1, RDT: rdt.Config{Selective: true}}
	shares := []float64{.1}
	if testenv.Long() {
		shares = []float64{.05, .1, .15}
	}
	for _, p := range shares {
		for seed := range uint64(len(shares)) {
			oneWay := line(netem.Config{})
			oneWay.Down.Loss = netem.UniformLoss(p)
			r := runObjects(t, oneWay, seed, selective)
			require.Equal(t, uint64(n), r.Data-r.Again)
			sigma := math.Sqrt(n*p) / (1 - p)
			assert.InDelta(t, n/(1-p), float64(r.Sent), 4*sigma, "p %g, seed %d", p, seed)

			r = runObjects(t, lossy(p), seed, selective)
			assert.InDelta(t, n/(1-p)/(1-p), float64(r.Sent), 6*sigma, "p %g, seed %d", p, seed)
			document := runObjects(t, lossy(p), seed, workload.ObjectsConfig{Cost: -1})
			assert.Greater(t, document.Again, 2*r.Again)
			assert.Greater(t, document.Took, r.Took)
		}
	}
}

// The checksums of UDP and TCP detect a flipped bit before RDT does. So corruption equals loss, and
// no corrupted data arrives. The document assumed that its MD5 detects it, and that this makes
// corruption cheaper than loss.
func TestCorruptionEqualsLoss(t *testing.T) {
	testenv.NeedNoRace(t)
	const p = .05
	corrupting := line(netem.Config{})
	corrupting.Down.Corrupt = netem.Corrupt{Share: p}
	for _, name := range []string{"rdt", "rdt, interleaved", "sequential"} {
		r := runObjects(t, corrupting, 1, arms[name])
		assert.Zero(t, r.Damaged)
		assert.NotZero(t, r.Again)
	}
	r := runObjects(t, corrupting, 1, workload.ObjectsConfig{RDT: rdt.Config{Selective: true}})
	assert.InDelta(t, 7650/(1-p), float64(r.Sent), 4*math.Sqrt(7650*p)/(1-p))
}

// On a path without delay most of TCP's time is timeouts, which grow faster than the loss. RDT
// repairs most gaps at once, because its sender still has window left when it learns of a gap. The
// document measured 2.6 s and 15.1 s for TCP, and 1.7 s for RDT at 5 % loss. If sending takes no
// time, most gaps are repaired only by a timeout of a second.
func TestLossByArm(t *testing.T) {
	testenv.NeedNoRace(t)
	seeds := uint64(4)
	if testenv.Long() {
		seeds = 10
	}
	mean := func(p float64, cfg workload.ObjectsConfig) (s float64) {
		wire := netem.Config{Delay: 25 * time.Microsecond, Loss: netem.UniformLoss(p)}
		for seed := range seeds {
			r := runObjects(t, workload.ObjectsNetwork{Down: wire, Up: wire}, seed, cfg)
			s += r.Took.Seconds() / float64(seeds)
		}
		return s
	}
	five, ten := mean(.05, arms["sequential"]), mean(.1, arms["sequential"])
	rdtFive, rdtTen := mean(.05, arms["rdt"]), mean(.1, arms["rdt"])
	atOnce := mean(.05, workload.ObjectsConfig{Cost: -1})
	t.Logf("at 5 %% and 10 %%: TCP %.2f and %.2f s, RDT %.2f and %.2f s, at once %.2f s", five, ten,
		rdtFive, rdtTen, atOnce)
	assert.Greater(t, ten/five, 2.0)
	assert.Less(t, rdtFive, five)
	assert.Less(t, rdtTen, ten)
	assert.Greater(t, atOnce, 2*rdtFive)
}

// If objects take turns on one stream, one lost packet delays all data after it by a round trip. On
// separate streams, and with RDT, it delays only its own object.
func TestHeadOfLineBlocking(t *testing.T) {
	testenv.NeedNoRace(t)
	late := func(name string) (small int) {
		cfg := arms[name]
		cfg.Cost = -1
		n := line(netem.Config{Delay: 50 * ms})
		n.TCP.Recovery.Congestion = "none" // a loss must not reduce the window
		n.TCP.Buffers.Recv, n.TCP.Buffers.Send = 4<<20, 4<<20
		clean := runObjects(t, n, 1, cfg)
		n.Down.Loss = netem.ListedLoss{100}
		r := runObjects(t, n, 1, cfg)
		for i := range r.Objects {
			o, was := &r.Objects[i], &clean.Objects[i]
			if o.Size == 9998 && o.Done > was.Done+50*ms {
				small++
			}
		}
		t.Logf("%s: %d small objects are late, all are there after %v, and %v without the loss",
			name, small, r.Took, clean.Took)
		return small
	}
	assert.Equal(t, 10, late("interleaved"))
	assert.LessOrEqual(t, late("parallel"), 1)
	assert.LessOrEqual(t, late("rdt, interleaved"), 1)
}

// On a long path, TCP takes a round trip to begin, and then doubles its window of ten segments in
// each round trip.
func TestDelayByRoundTrips(t *testing.T) {
	n := workload.ObjectsNetwork{Down: netem.Config{Delay: 50 * ms}, Up: netem.Config{Delay: 50 * ms}}
	r := runObjects(t, n, 1, arms["sequential"])
	segments := 10_096_810. / 1348
	least := 1 + math.Ceil(math.Log2(segments/10+1))
	assert.GreaterOrEqual(t, r.Took.Seconds(), .1*least)
	assert.Less(t, r.Took.Seconds(), .1*(least+8), "buffers grow, too")
	// The document's window of 1120 packets leaves in each round trip.
	r = runObjects(t, n, 1, workload.ObjectsConfig{Cost: -1})
	assert.Equal(t, 700*ms, r.Took, "7650 packets are seven windows, after a request")
}

// A client whose reads take time reads 1024 bytes at a time. This explains the time of founding
// document 003's TCP without faults, 0.248 s: each of 9860 reads takes 25 µs.
func TestReadsTakeTime(t *testing.T) {
	r := runObjects(t, workload.ObjectsNetwork{}, 1, workload.ObjectsConfig{
		Arm: workload.Sequential, ReadCost: 25 * time.Microsecond,
	})
	assert.InEpsilon(t, 0.248, r.Took.Seconds(), .02)
}

func TestBufferForTheWindow(t *testing.T) {
	testenv.NeedNoRace(t)
	r := runObjects(t, workload.ObjectsNetwork{}, 1, workload.ObjectsConfig{Cost: -1})
	assert.Zero(t, r.Overflowed)
	assert.Zero(t, r.Again)
	r = runObjects(t, workload.ObjectsNetwork{}, 1, workload.ObjectsConfig{Cost: -1, Buffer: 64 << 10})
	assert.NotZero(t, r.Overflowed)
	assert.NotZero(t, r.Again)
}

func TestObjectsSeeds(t *testing.T) {
	testenv.NeedNoRace(t)
	for name, cfg := range arms {
		n := lossy(.1)
		cfg.Pairs = 1
		one, hash, err := n.Run(1, cfg)
		require.NoError(t, err)
		again, same, err := n.Run(1, cfg)
		require.NoError(t, err)
		assert.Equal(t, one, again, name)
		assert.Equal(t, hash, same, name)
		_, other, err := n.Run(2, cfg)
		require.NoError(t, err)
		assert.NotEqual(t, hash, other, name)
	}
}

// If a transfer cannot finish, the result has the reason: silence, or the time limit.
func TestUnfinishedObjects(t *testing.T) {
	hole := workload.ObjectsNetwork{Down: netem.Config{Loss: netem.UniformLoss(1)}}
	hole.TCP.Retries.Syn = 2
	short := lossy(.1)
	short.Limit = 500 * ms
	for _, arm := range []workload.Arm{
		workload.RDT, workload.Sequential, workload.Interleaved, workload.Parallel,
	} {
		t.Run(fmt.Sprint(arm), func(t *testing.T) {
			cfg := workload.ObjectsConfig{Arm: arm, Pairs: 2}
			r, _, err := hole.Run(1, cfg)
			require.NoError(t, err)
			assert.False(t, r.Finished)
			assert.Regexp(t, "(does not answer|timed out).*: 0 of 4 objects", r.Failure)
			assert.Less(t, r.Took, 5*time.Minute)

			cfg.Pairs = 0
			r, _, err = short.Run(1, cfg)
			require.NoError(t, err)
			assert.False(t, r.Finished)
			assert.Equal(t, fmt.Sprintf("not finished: %d of 20 objects", r.Complete), r.Failure)
			assert.Less(t, r.Complete, 20)
			assert.Len(t, r.Objects, 20)
			assert.Equal(t, 500*ms, r.Took)
		})
	}
}

func TestInvalidObjectsConfigs(t *testing.T) {
	for _, c := range []workload.ObjectsConfig{
		{Arm: 9},
		{Pairs: -1},
		{Pairs: 1000},
		{Small: -1},
		{Large: 1 << 30},
		{Chunk: 1 << 17},
		{Buffer: -1},
	} {
		_, _, err := workload.ObjectsNetwork{}.Run(1, c)
		assert.ErrorIs(t, err, workload.ErrObjectsConfig, "%+v", c)
		assert.ErrorContains(t, err, "must be", "%+v", c)
	}
	_, _, err := workload.ObjectsNetwork{}.Run(1, workload.ObjectsConfig{RDT: rdt.Config{Window: -1}})
	assert.ErrorIs(t, err, rdt.ErrConfig)
	l, err := workload.ObjectsNetwork{}.Build(1)
	require.NoError(t, err)
	for _, arm := range []workload.Arm{workload.RDT, workload.Sequential} {
		for _, want := range []bool{true, false} {
			_, err = workload.AttachObjects(l.Left, l.Right, l.Address(7), workload.ObjectsConfig{Arm: arm})
			assert.Equal(t, want, err == nil, "%v", arm)
		}
	}
	assert.Equal(t, "unknown arm", workload.Arm(9).String())
}
