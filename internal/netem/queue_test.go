package netem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// A drop-head queue keeps the newest packets: the first is being sent, and of the others the last
// remain.
func TestDropHeadKeepsTheNewest(t *testing.T) {
	for name, limit := range map[string]netem.DropHead{
		"packets": {Packets: 10}, "bytes": {Bytes: 14_999}, "time": {Time: 112 * ms}, "all": {10, 15_000, time.Second},
	} {
		l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(1e6), Queue: limit})
		for i := range uint64(100) {
			put(l, 1, i, 1400)
		}
		list := drain(l, 1)
		require.Len(t, list, 11, name)
		assert.Equal(t, uint64(0), list[0].tag, name)
		for i, a := range list[1:] {
			assert.Equal(t, uint64(90+i), a.tag, name)
		}
		assert.Equal(t, uint64(89), l.Counters().QueueDropped, name)
	}
	l := newLink(t, netem.Config{Rate: netem.BitsPerSecond(1e6), Queue: netem.DropHead{Bytes: 100}})
	put(l, 1, 1, 50)
	put(l, 1, 2, 101)
	packets, _ := l.Queued()
	assert.Zero(t, packets, "a packet longer than the queue")
}

// A limit in time is what the server sends in that time at its mean rate, with overhead.
func TestQueuesBoundedInTime(t *testing.T) {
	for _, c := range []struct {
		cfg  netem.Config
		want int // number of waiting packets of 1000 bytes
	}{
		{netem.Config{Rate: netem.BitsPerSecond(8e6)}, 20},
		{netem.Config{Rate: netem.BitsPerSecond(8e6), Overhead: 250}, 16},
		{netem.Config{Rate: netem.BitsPerSecond(7_999_999)}, 19},
		{netem.Config{Rate: netem.Opportunities{At: millis(1)}}, 30},
		{netem.Config{Rate: netem.Schedule{
			Steps: []netem.Step{{0, 12e6}, {time.Second, 4e6}}, Every: 2 * time.Second,
		}}, 20},
	} {
		c.cfg.Queue = netem.DropTail{Time: 20 * ms}
		if _, turns := c.cfg.Rate.(netem.Opportunities); turns {
			c.want-- // each packet costs 4 bytes more
		}
		l := newLink(t, c.cfg)
		for i := range uint64(100) {
			put(l, 1, i, 1000)
		}
		packets, _ := l.Queued()
		assert.Equal(t, c.want, packets, "%+v", c.cfg)
	}
	_, err := netem.New(netem.Config{
		Rate: netem.BitsPerSecond(1), Queue: netem.DropTail{Time: 2 * time.Hour},
	}, sources(1))
	require.ErrorIs(t, err, netem.ErrConfig)
}

// mahimahi's queue counts the 4 bytes of each packet's TUN header.
func TestMahimahiByteCount(t *testing.T) {
	l := newLink(t, netem.Config{
		Rate: netem.Opportunities{At: millis(1000)}, Queue: netem.DropTail{Bytes: 3 * 1504},
	})
	for i := range uint64(10) {
		put(l, 1, i, 1500)
	}
	packets, bytes := l.Queued()
	assert.Equal(t, []int{3, 4500}, []int{packets, bytes})
}

// BenchmarkQueue measures the time per packet of each queue, under a load of 1.25. With two hundred
// flows, FQ-CoDel searches two hundred queues for the longest.
func BenchmarkQueue(b *testing.B) {
	for name, q := range map[string]netem.Discipline{
		"droptail": netem.DropTail{Packets: 100}, "drophead": netem.DropHead{Packets: 100},
		"red": netem.RED{Bytes: 140_000, ECN: true}, "codel": netem.CoDel{ECN: true},
		"pie": netem.PIE{ECN: true}, "fq_codel": netem.FQCoDel{Packets: 400},
	} {
		b.Run(name, func(b *testing.B) {
			l := newLink(b, netem.Config{Rate: netem.BitsPerSecond(1e9), Queue: q})
			flows := make([][][]byte, 200)
			for i := range flows {
				flows[i] = [][]byte{ipv4(0, 1400)}
				flows[i][0][21] = byte(i)
			}
			now, i := clock.Time(1), 0
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(9 * time.Microsecond)
				l.Input(now, 0, flows[i%len(flows)])
				i++
				for _, _, ok := l.Output(now); ok; _, _, ok = l.Output(now) {
				}
			}
		})
	}
}
