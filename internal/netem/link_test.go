package netem_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// arrived is a packet at the other end of a link.
type arrived struct {
	at  clock.Time
	tag uint64
	n   int
}

func newLink(tb testing.TB, cfg netem.Config) *netem.Link {
	tb.Helper()
	l, err := netem.New(cfg, sources(3))
	require.NoError(tb, err)
	return l
}

func put(l *netem.Link, now clock.Time, tag uint64, size int) {
	b := make([]byte, size)
	if size >= 8 {
		binary.BigEndian.PutUint64(b, tag)
	}
	l.Input(now, tag, [][]byte{b})
}

// drain advances a link from deadline to deadline until it is empty.
func drain(l *netem.Link, now clock.Time) (list []arrived) {
	for {
		for {
			data, tag, ok := l.Output(now)
			if !ok {
				break
			}
			list = append(list, arrived{now, tag, len(data)})
		}
		next := l.Deadline()
		if next == clock.Never {
			return list
		}
		now = max(now, next)
		l.Advance(now)
	}
}

func TestUnimpairedLink(t *testing.T) {
	l := newLink(t, netem.Config{})
	assert.Equal(t, clock.Never, l.Deadline())
	head, text := []byte("head"), []byte("er and text")
	l.Input(5, 42, [][]byte{head, text})
	head[0] = 'X' // must not change the packet: Input has made a copy
	assert.Equal(t, clock.Time(5), l.Deadline())
	data, tag, ok := l.Output(5)
	require.True(t, ok)
	assert.Equal(t, "header and text", string(data))
	assert.Equal(t, uint64(42), tag)
	_, _, ok = l.Output(5)
	assert.False(t, ok)
	assert.Equal(t, clock.Never, l.Deadline())
}

func TestDelayIsExact(t *testing.T) {
	l := newLink(t, netem.Config{Delay: 88 * time.Millisecond})
	for i := range clock.Time(100) {
		put(l, 1+i*1000, uint64(i), 100)
	}
	for i, a := range drain(l, 1) {
		assert.Equal(t, arrived{1 + clock.Time(i)*1000 + 88_000_000, uint64(i), 100}, a)
	}
}

// A busy link sends exactly at its rate: the n-th packet leaves when all bytes up to its end have
// passed. The time is rounded down to the nanosecond once, not n times.
func TestRateIsExact(t *testing.T) {
	for _, rate := range []int64{1, 9600, 2_640_000, 10_000_000, 12_345_678, 1_000_000_007, 100e9} {
		for _, overhead := range []int{0, 4} {
			l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(rate), Overhead: overhead})
			r := rand.New(rand.NewPCG(1, 1))
			var total uint64
			var want []arrived
			for i := range uint64(200) {
				n := 40 + r.IntN(1461)
				put(l, 1000, i, n)
				total += uint64(n + overhead)
				// cannot overflow, even at one bit per second
				whole := total * 8 / uint64(rate) * 1e9
				part := total * 8 % uint64(rate) * 1e9 / uint64(rate)
				want = append(want, arrived{1000 + clock.Time(whole+part), i, n})
			}
			if rate > 1e10 {
				for i := range want {
					want[i].at = 0 // several packets leave in the same nanosecond
				}
			}
			got := drain(l, 1000)
			if rate > 1e10 {
				assert.Equal(t, total*8*1e9/uint64(rate), uint64(got[199].at-1000))
				for i := range got {
					got[i].at = 0
				}
			}
			assert.Equal(t, want, got, "%d bit/s", rate)
		}
	}
}

func TestIdleServerStartsAtArrival(t *testing.T) {
	l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(8000), Delay: time.Second})
	put(l, 1, 1, 100) // the packets take 100 ms
	put(l, 50_000_001, 2, 100)
	assert.Equal(t, clock.Time(100_000_001), l.Departure())
	list := drain(l, 1)
	assert.Equal(t, clock.Never, l.Departure())
	put(l, 5e9, 3, 100)
	assert.Equal(t, []arrived{
		{1_100_000_001, 1, 100}, {1_200_000_001, 2, 100}, {6_100_000_000, 3, 100},
	}, append(list, drain(l, 5e9)...))
}

func TestDropTailLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limit netem.DropTail
		size  int
		want  int // number of the 100 packets that stay: those that wait, and the one being sent
	}{
		"packets":        {netem.DropTail{Packets: 10}, 1400, 11},
		"bytes":          {netem.DropTail{Bytes: 14_000}, 1400, 11},
		"one byte less":  {netem.DropTail{Bytes: 13_999}, 1400, 10},
		"the smaller":    {netem.DropTail{Packets: 3, Bytes: 14_000}, 1400, 4},
		"the other":      {netem.DropTail{Packets: 30, Bytes: 14_000}, 1400, 11},
		"none":           {netem.DropTail{}, 1400, 100},
		"smaller packet": {netem.DropTail{Bytes: 14_000}, 100, 100},
	} {
		l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(1e6), Queue: tc.limit})
		for i := range uint64(100) {
			put(l, 1, i, tc.size)
		}
		packets, _ := l.Queued()
		assert.Equal(t, tc.want-1, packets, name)
		list := drain(l, 1)
		assert.Len(t, list, tc.want, name)
		for i, a := range list {
			assert.Equal(t, uint64(i), a.tag, "%s: the first packets are kept", name)
		}
		assert.Equal(t, uint64(100-tc.want), l.Counters().QueueDropped, name)
	}
}

func TestLinkBounds(t *testing.T) {
	l := newLink(t, netem.Config{Delay: time.Second, MaxPackets: 10})
	for i := range uint64(30) {
		put(l, 1, i, 1400)
	}
	packets, size := l.Inside()
	assert.Equal(t, []int{10, 14_000}, []int{packets, size})
	assert.Equal(t, uint64(20), l.Counters().Overflowed)
	assert.Len(t, drain(l, 1), 10)

	l = newLink(t, netem.Config{Delay: time.Second, MaxBytes: 3000, Duplicate: 1})
	put(l, 1, 1, 1400)
	put(l, 1, 2, 1400) // the first packet's duplicate takes the room
	packets, size = l.Inside()
	assert.Equal(t, []int{2, 2800}, []int{packets, size})
}

func TestInputTrainEqualsInput(t *testing.T) {
	cfg := netem.Config{Loss: netem.UniformLoss(0.2), Duplicate: 0.2, Delay: time.Millisecond}
	one, other := newLink(t, cfg), newLink(t, cfg)
	batch := buffer.NewBatch()
	text := make([]byte, 5000)
	for i := range text {
		text[i] = byte(i * 7)
	}
	for at := 0; at < len(text); at += 1000 {
		n := min(1000, len(text)-at)
		if at == 4000 {
			n = 700 // size of the last packet
		}
		head := batch.Scratch(40)
		head[0] = byte(at / 1000)
		batch.Begin(0, netip.AddrFrom4([4]byte{}), 40+n, false)
		batch.Add(head)
		batch.Add(text[at : at+300])
		batch.Add(text[at+300 : at+n])
	}
	train := batch.Trains()[0]
	require.Equal(t, 5, train.Count)
	for range 20 {
		one.InputTrain(1, 9, &train)
		for i := range train.Count {
			other.Input(1, 9, train.Packet(i))
		}
	}
	for {
		a, tag, ok := one.Output(1 << 40)
		b, _, okB := other.Output(1 << 40)
		require.Equal(t, okB, ok)
		if !ok {
			break
		}
		require.Equal(t, b, a)
		require.Equal(t, uint64(9), tag)
	}
	assert.Equal(t, other.Counters(), one.Counters())
}

func TestOutputIsValidUntilTheNextCall(t *testing.T) {
	l := newLink(t, netem.Config{})
	for i := range uint64(4) {
		put(l, 1, i, 9)
	}
	var lent [][]byte
	for data, _, ok := l.Output(1); ok; data, _, ok = l.Output(1) {
		lent = append(lent, data)
	}
	for i, data := range lent {
		want := binary.BigEndian.AppendUint64(nil, uint64(i))
		assert.Equal(t, append(want, 0), data)
	}
	put(l, 2, 77, 9)
	data, _, _ := l.Output(2)
	reused := false
	for _, old := range lent {
		reused = reused || bytes.Equal(old, data)
	}
	assert.True(t, reused, "the memory is reused")
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]netem.Config{
		"delay": {Delay: time.Millisecond},
		"all": {
			Delay: time.Millisecond, Jitter: netem.NormalJitter(time.Millisecond), Overtaking: true,
			Rate: netem.BitsPerSecond(1e9), Queue: netem.DropTail{Packets: 100},
			Loss: netem.Bursts(0.05, 3), Duplicate: 0.1, Truncate: 0.1,
			Corrupt: netem.Corrupt{Share: 0.1, Bits: 2},
			Reorder: netem.Reorder{Share: 0.1, Late: time.Millisecond},
		},
	} {
		l := newLink(t, cfg)
		now := clock.Time(1)
		pieces := [][]byte{make([]byte, 40), make([]byte, 1360)}
		turn := func() {
			for range 100 {
				l.Input(now, 0, pieces)
			}
			for range 100 {
				now = now.Add(50 * time.Microsecond)
				l.Advance(now)
				for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
				}
			}
		}
		for range 20 {
			turn()
		}
		assert.Zero(t, testing.AllocsPerRun(50, turn), name)
	}
}

func BenchmarkLink(b *testing.B) {
	for _, bc := range []struct {
		name string
		cfg  netem.Config
	}{
		{"nothing", netem.Config{}},
		{"delay", netem.Config{Delay: time.Millisecond}},
		{"rate", netem.Config{Delay: time.Millisecond, Rate: netem.BitsPerSecond(10e9)}},
		{"jitter", netem.Config{Delay: time.Millisecond, Jitter: netem.NormalJitter(1e5)}},
	} {
		b.Run(fmt.Sprint(bc.name), func(b *testing.B) {
			l := newLink(b, bc.cfg)
			now := clock.Time(1)
			pieces := [][]byte{make([]byte, 40), make([]byte, 1360)}
			b.ReportAllocs()
			b.SetBytes(1400)
			for b.Loop() {
				now += 1200
				l.Input(now, 0, pieces)
				for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
				}
			}
		})
	}
}
