package rdt_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

var someObjects = [][]byte{text(1, 20_000), {}, text(2, 1), text(3, 499), text(4, 500), text(5, 7_001)}

// On a path that loses, duplicates and corrupts 30 % of the packets each, and reorders packets, in
// both directions, every object arrives unchanged, with every configuration.
func TestObjectsArriveUnchanged(t *testing.T) {
	seeds := uint64(12)
	if !testenv.Long() {
		seeds = 4
	}
	bad := wire{
		loss: .3, dup: .3, corrupt: .3, delay: 10 * time.Millisecond, jitter: 30 * time.Millisecond,
	}
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				w, _ := transfer(t, cfg, someObjects, seed, bad, bad)
				require.NotZero(t, w.wires[0].lost)
				require.NotZero(t, w.wires[0].damaged)
			}
		})
	}
}

// The receiver counts exactly the corrupted packets: MD5 and CRC-32C detect every flipped bit.
func TestCorruptionIsCountedExactly(t *testing.T) {
	for _, sum := range []rdt.Checksum{rdt.MD5, rdt.CRC32C} {
		cfg := rdt.Config{Checksum: sum, Timeout: 100 * time.Millisecond, Push: true}
		s, r := pair(t, cfg, [][]byte{text(1, 2_000_000)})
		w := newWorld(t, s, r, 7,
			wire{corrupt: .1, delay: time.Millisecond}, wire{corrupt: .1, delay: time.Millisecond})
		w.run(func() bool { return s.Done() && r.Done() && len(w.air) == 0 })
		require.NoError(t, s.Err())
		assert.Equal(t, uint64(w.wires[0].damaged), r.Info().Drops[rdt.DropChecksum], sum)
		assert.Equal(t, uint64(w.wires[1].damaged), s.Info().Drops[rdt.DropChecksum], sum)
		assert.NotZero(t, w.wires[0].damaged)
		assert.Equal(t, r.Info().Drops.Total(),
			r.Info().Drops[rdt.DropChecksum]+r.Info().Drops[rdt.DropRepeated])
	}
}

// Duplicated packets cost nothing: the sender sends no more packets, and the transfer takes no
// longer.
func TestDuplicationCostsNothing(t *testing.T) {
	objects := [][]byte{text(1, 1_000_000)}
	for _, selective := range []bool{false, true} {
		cfg := rdt.Config{Selective: selective}
		line := wire{delay: time.Millisecond, perByte: 100 * time.Nanosecond}
		clean, _ := transfer(t, cfg, objects, 1, line, wire{delay: time.Millisecond})
		line.dup = .1
		doubled, _ := transfer(t, cfg, objects, 1, line, wire{delay: time.Millisecond})
		require.NotZero(t, doubled.wires[0].doubled)
		assert.Equal(t, clean.wires[0].sent, doubled.wires[0].sent)
		assert.Equal(t, clean.now, doubled.now)
	}
}

func TestCompressionIsDeterministicAndShortens(t *testing.T) {
	objects := [][]byte{text(1, 300_000)}
	sizes := map[bool]uint64{}
	for _, zip := range []bool{false, true} {
		s, r := pair(t, rdt.Config{Compress: zip}, objects)
		w := newWorld(t, s, r, 1, wire{delay: 1}, wire{delay: 1})
		w.run(func() bool { return s.Done() })
		sizes[zip] = s.Info().SentBytes
		assert.Equal(t, zip, r.Info().Compressed > 0)
	}
	// The text has 16 different letters, which take 4 bits each. That is half, plus the overhead of
	// the code.
	assert.InDelta(t, .55, float64(sizes[true])/float64(sizes[false]), .08)

	cfg := rdt.Config{Compress: true, Timeout: 50 * time.Millisecond}
	lossy := wire{loss: .2, delay: time.Millisecond}
	one, a := transfer(t, cfg, objects, 3, lossy, lossy)
	two, b := transfer(t, cfg, objects, 3, lossy, lossy)
	assert.Equal(t, a[0].At, b[0].At)
	assert.Equal(t, one.wires[0].sent, two.wires[0].sent)
}

// Sequence numbers pass 2^32 during the transfer.
func TestSequenceNumbersWrap(t *testing.T) {
	for name, cfg := range variants() {
		if cfg.Push {
			continue
		}
		s, err := rdt.NewSender(cfg, someObjects)
		require.NoError(t, err)
		r, err := rdt.NewReceiverFrom(start, cfg, 1<<32-5, numbers(len(someObjects))...)
		require.NoError(t, err)
		bad := wire{loss: .2, delay: time.Millisecond, jitter: 2 * time.Millisecond}
		w := newWorld(t, s, r, 5, bad, bad)
		w.run(func() bool { return s.Done() && r.Done() })
		for _, c := range completions(r) {
			require.NoError(t, c.Err, name)
			require.Equal(t, someObjects[c.Stream], c.Data, name)
		}
		require.NoError(t, s.Err(), name)
	}
}

// A complete receiver answers retransmitted packets, because its last acknowledgments may have been
// lost. Then it closes.
func TestReceiverLingers(t *testing.T) {
	cfg := rdt.Config{Timeout: 100 * time.Millisecond}
	s, r := pair(t, cfg, [][]byte{text(1, 100)})
	back := wire{delay: time.Millisecond}
	// loses the four packets after the first, which is the request
	back.drop = func(n int, _ []byte) bool { return n > 1 && n < 6 }
	w := newWorld(t, s, r, 1, wire{delay: time.Millisecond}, back)
	w.run(func() bool { return s.Done() && r.Closed() })
	require.NoError(t, s.Err())
	assert.True(t, r.Done())
	assert.True(t, r.Closed())
	assert.Equal(t, start.Add(202*time.Millisecond+800*time.Millisecond), w.now,
		"8 timeouts after the last arrival, which was the third transmission's")
	r.Input(w.now, []byte("anything"))
	assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropClosed])
}

// If a path loses everything, the flow stops after Patience, with an error for each incomplete
// object.
func TestTotalLossEndsTheFlow(t *testing.T) {
	cfg := rdt.Config{Patience: 5 * time.Second}
	objects := [][]byte{text(1, 5000), text(2, 5000)}
	t.Run("from the beginning", func(t *testing.T) {
		s, r := pair(t, cfg, objects)
		w := newWorld(t, s, r, 1, wire{}, wire{loss: 1})
		w.run(func() bool { return r.Closed() })
		assert.Equal(t, start.Add(5*time.Second), w.now)
		require.ErrorIs(t, r.Err(), rdt.ErrSilent)
		list := completions(r)
		require.Len(t, list, 2)
		for _, c := range list {
			require.ErrorIs(t, c.Err, rdt.ErrSilent)
			assert.Nil(t, c.Data)
		}
		assert.Equal(t, uint64(5), r.Info().Requests)
		assert.False(t, s.Done())
	})
	t.Run("in the middle", func(t *testing.T) {
		s, r := pair(t, cfg, objects)
		there := wire{delay: time.Millisecond}
		there.drop = func(n int, _ []byte) bool { return n > 6 }
		w := newWorld(t, s, r, 1, there, wire{delay: time.Millisecond})
		w.run(func() bool { return r.Closed() && s.Done() })
		require.ErrorIs(t, r.Err(), rdt.ErrSilent)
		require.ErrorIs(t, s.Err(), rdt.ErrSilent)
		list := completions(r)
		require.Len(t, list, 2)
		require.NoError(t, list[0].Err)
		assert.Equal(t, objects[0], list[0].Data)
		require.ErrorIs(t, list[1].Err, rdt.ErrSilent)
		assert.Zero(t, r.Info().Held)
		s.Input(w.now, nil)
		assert.Equal(t, uint64(1), s.Info().Drops[rdt.DropClosed])
		_, ok := s.Output(w.now, nil)
		assert.False(t, ok)
	})
}

func TestObjectsThatDoNotExist(t *testing.T) {
	s, err := rdt.NewSender(rdt.Config{}, [][]byte{nil, text(1, 3000)})
	require.NoError(t, err)
	r, err := rdt.NewReceiver(start, rdt.Config{}, 0, 1, 700)
	require.NoError(t, err)
	w := newWorld(t, s, r, 1, wire{delay: 1}, wire{delay: 1})
	w.run(func() bool { return s.Done() && r.Done() })
	require.NoError(t, s.Err())
	ended := map[uint16]error{}
	for _, c := range completions(r) {
		ended[c.Stream] = c.Err
	}
	require.Len(t, ended, 3)
	require.ErrorIs(t, ended[0], rdt.ErrAbsent)
	require.NoError(t, ended[1])
	require.ErrorIs(t, ended[700], rdt.ErrAbsent)
	assert.Equal(t, 2, r.Info().Failed)
}

// If the link is full, the owner does not call Output, and nothing is lost.
func TestBackPressure(t *testing.T) {
	cfg := rdt.Config{Timeout: 40 * time.Millisecond, Window: 2000}
	slow := wire{delay: time.Millisecond, perByte: 20 * time.Microsecond}
	w, list := transfer(t, cfg, [][]byte{text(1, 100_000)}, 1, slow, wire{delay: time.Millisecond})
	assert.Equal(t, 77, w.wires[0].sent, "76 chunks and an end, none of them twice")
	assert.Less(t, clock.Time(0), list[0].At)
}
