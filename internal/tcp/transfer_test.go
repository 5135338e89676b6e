package tcp

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var seeds = flag.Int("seeds", 0, "seeds for the random worlds; 0: some hundred")

// course is the course nodes' configuration, with a minimum RTO of a millisecond.
func course() Config {
	return Config{Knobs: Knobs{
		Recovery: Recovery{RTOMin: time.Millisecond, RTOMax: 5 * time.Second, RTOInitial: 50 * time.Millisecond},
	}}
}

func TestTransferClean(t *testing.T) {
	w := newWorld(t, 1, wire{delay: 100 * time.Microsecond, merge: true}, course())
	a, b := w.connect()
	s := newStream(a, b, 4<<20)
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	i := a.Info()
	assert.Equal(t, uint64(4<<20), s.read)
	assert.Zero(t, i.TotalRetrans, "no loss, so no retransmission")
	assert.Zero(t, i.TotalRTO)
	assert.Zero(t, i.TailProbes)
	_ = b.CloseWrite(w.now)
	require.True(t, w.until(time.Second, func() bool { return b.State() == StateClosed }))
	assert.Equal(t, StateTimeWait, a.State())
	w.run(2 * time.Minute)
	assert.Equal(t, StateClosed, a.State())
	for _, h := range w.hosts {
		assert.Zero(t, h.numConns())
		assert.Zero(t, h.TimeWaits())
		assert.Zero(t, h.Deadline())
	}
}

// TestReorderingIsNotLoss checks that reordering by less than a round trip costs next to no
// throughput once RACK has detected it.
func TestReorderingIsNotLoss(t *testing.T) {
	w := newWorld(t, 3, wire{
		delay: time.Millisecond, reorder: 0.05, bytesPerSec: 50e6,
	}, course())
	a, b := w.connect()
	s := newStream(a, b, 8<<20)
	start := w.now
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	i := a.Info()
	t.Logf("%.1f MB/s, %d segments, %d retransmits, %d recoveries, %d duplicates, reordering %d times",
		float64(s.size)/1e6/w.now.Sub(start).Seconds(), i.DataSegsOut, i.TotalRetrans,
		i.FastRecoveries, i.DSACKDups, i.ReordSeen)
	assert.NotZero(t, i.ReordSeen)
	assert.Zero(t, i.TotalRTO)
	assert.Less(t, i.TotalRetrans, i.DataSegsOut/20)
}

var whole = flag.Bool("long", false, "move more than 4 GB across the wrap")

// TestWrap transfers a stream across the end of the sequence space: 64 MiB, or with -long the 5 GB
// of document 004.
func TestWrap(t *testing.T) {
	size := uint64(64 << 20)
	cfg := Config{Sequence: func(Tuple) uint32 { return ^uint32(20 << 20) }}
	if *whole {
		size, cfg.Sequence = 5_000_000_000, nil
	}
	p := newPipe(t, cfg)
	var written, read uint64
	buf := make([]byte, 64<<10)
	for read < size {
		n := min(uint64(len(buf)), size-written, uint64(p.a.Tx().Free()))
		fill(buf[:n], written)
		written += uint64(p.a.Tx().Write(buf[:n]))
		p.a.Wrote(p.now)
		p.exchange()
		p.drain()
		for {
			k := p.b.Rx().Read(buf)
			if k == 0 {
				break
			}
			require.NoError(t, check(buf[:k], read))
			read += uint64(k)
			p.b.Consumed(p.now)
		}
	}
	require.Equal(t, size, p.a.Info().BytesAcked)
	require.Zero(t, p.a.Info().TotalRetrans)
}

func TestTransferLossy(t *testing.T) {
	for _, loss := range []float64{0.02, 0.1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			w := newWorld(t, 1, wire{delay: 75 * time.Microsecond, loss: loss, merge: true}, course())
			a, b := w.connect()
			s := newStream(a, b, 20<<20)
			start := w.now
			require.True(t, w.transfer(10*time.Minute, s), "%+v", a.Info())
			d := w.now.Sub(start)
			i := a.Info()
			t.Logf("%.1f MB/s, %d segments, %d retransmits, %d lost again, %d recoveries, %d RTOs, %d probes, srtt %v rto %v",
				float64(s.size)/1e6/d.Seconds(), i.DataSegsOut, i.TotalRetrans, i.LostRetransmits, i.FastRecoveries, i.TotalRTO, i.TailProbes, i.RTT, i.RTO)
		})
	}
}
