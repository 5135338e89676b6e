package netem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// tc-netem(8): a packet waits for a slot, and leaves with all packets that have arrived by then.
func TestSlotsCollectPackets(t *testing.T) {
	l := newLink(t, netem.Config{Rate: netem.Slots{Min: 10 * ms}})
	for i := range uint64(9) {
		put(l, clock.Time(1).Add(time.Duration(i)*ms), i, 1000)
	}
	slot := clock.Time(1).Add(10 * ms)
	assert.Equal(t, slot, l.Deadline())
	put(l, slot, 9, 1000) // the slot is over
	list := drain(l, slot)
	require.Len(t, list, 10)
	for i, a := range list {
		want := slot
		if i == 9 {
			want = slot.Add(10 * ms)
		}
		assert.Equal(t, arrived{want, uint64(i), 1000}, a)
	}
}

// A slot ends with the packet that reaches its limit. Under load, each slot sends its limit.
func TestSlotsAreBounded(t *testing.T) {
	for _, c := range []struct {
		slots netem.Slots
		each  int
		mean  int64
	}{
		{netem.Slots{Min: 5 * ms, Packets: 4}, 4, 9_600_000},
		{netem.Slots{Min: 5 * ms, Bytes: 3001}, 4, 4_801_600},
		{netem.Slots{Min: 5 * ms, Bytes: 3000, Packets: 9}, 3, 4_800_000},
		{netem.Slots{Min: 4 * ms, Max: 6 * ms, Packets: 4}, 4, 9_600_000},
		{netem.Slots{Min: 5 * ms, Jitter: netem.NormalJitter(ms), Packets: 4}, 4, 9_600_000},
		{netem.Slots{Min: 5 * ms}, 4000, 1 << 50},
	} {
		l := newLink(t, netem.Config{Rate: c.slots})
		for i := range uint64(4000) {
			put(l, 1, i, 1000)
		}
		list := drain(l, 1)
		require.Len(t, list, 4000)
		for i := 1; i < len(list); i++ {
			gap := list[i].at.Sub(list[i-1].at)
			if i%c.each != 0 {
				require.Zero(t, gap, "%+v packet %d", c.slots, i)
				continue
			}
			if c.slots.Jitter == nil {
				require.GreaterOrEqual(t, gap, c.slots.Min)
				require.LessOrEqual(t, gap, max(c.slots.Min, c.slots.Max))
			}
		}
		if c.each < 4000 {
			want := float64(4000/c.each) * float64(5*ms)
			assert.InEpsilon(t, want, float64(list[3999].at), 0.02, "%+v", c.slots)
		}
		assert.Equal(t, c.mean, c.slots.MeanRate(), "%+v", c.slots)
	}
	for _, bad := range []netem.Slots{{Min: -1}, {Max: -1}, {Packets: -1}, {Jitter: netem.UniformJitter(-1)}} {
		require.ErrorIs(t, bad.Validate(), netem.ErrConfig)
	}
}

// In tc-netem(8)'s example `rate 5kbit 20 100 5`, a packet of 1000 bytes with an overhead of 20
// bytes needs eleven cells of 105 bytes.
func TestCells(t *testing.T) {
	l := newLink(t, netem.Config{
		Rate: netem.Cells{Rate: 5000, Size: 100, Overhead: 5}, Overhead: 20,
	})
	put(l, 1, 1, 1000)
	put(l, 1, 2, 80)
	list := drain(l, 1)
	assert.Equal(t, clock.Time(1).Add(11*105*8*time.Second/5000), list[0].at)
	assert.Equal(t, clock.Time(1).Add(12*105*8*time.Second/5000), list[1].at)
	assert.Equal(t, int64(4761), netem.Cells{Rate: 5000, Size: 100, Overhead: 5}.MeanRate())
	for _, bad := range []netem.Cells{{}, {Rate: 1}, {Rate: 1, Size: 1 << 20}, {Rate: 1, Size: 1, Overhead: -1}} {
		require.ErrorIs(t, bad.Validate(), netem.ErrConfig)
	}
}
