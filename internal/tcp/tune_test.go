package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBuffersFollowTheTransfer checks that both buffers grow from a size too small for the path
// until they fill it, but not beyond their limits.
func TestBuffersFollowTheTransfer(t *testing.T) {
	wi := wire{delay: 20 * time.Millisecond, bytesPerSec: 50e6}
	w := newWorld(t, 1, wi, Config{})
	a, b := w.connect()
	recv, send := b.Info().RcvBuf, b.Info().SndBuf
	require.Equal(t, []int{256 << 10, 256 << 10}, []int{recv, send})
	s := newStream(a, b, 60<<20)
	start := w.now
	edge := uint64(0)
	w.every = func() {
		if b.rcv.edge < edge {
			require.Fail(t, "RFC 9293 §3.8.6: a window's edge moved back")
		}
		edge = b.rcv.edge
	}
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	took := w.now.Sub(start).Seconds()
	recv = b.Info().RcvBuf
	send = a.Info().SndBuf
	t.Logf("%.1f MB/s, receive buffer %d, send buffer %d, %+v", 60*1.048576/took, recv, send,
		b.rcv.tune)
	assert.Greater(t, recv, 2_000_000, "the bandwidth-delay product of 40 ms at 50 MB/s")
	assert.Greater(t, send, 2_000_000)
	assert.LessOrEqual(t, recv, 6<<20)
	assert.LessOrEqual(t, send, 4<<20)
	assert.Greater(t, 60*1.048576/took, 35.0)
	assert.Equal(t, recv, b.Info().RcvBuf)
	assert.NotZero(t, b.Info().RcvRTT)
	assert.NotZero(t, b.Info().RcvSpace)
}

// A window that only fills queues is bounded. A window that fills a path is not.
func TestReceiveBufferOfANearPeerIsSmaller(t *testing.T) {
	for delay, want := range map[time.Duration]int{
		100 * time.Microsecond: 1 << 20, 5 * time.Millisecond: 6 << 20,
	} {
		w := newWorld(t, 1, wire{delay: delay}, Config{Buffers: Buffers{RecvNear: 1 << 20}})
		a, b := w.connect()
		require.True(t, w.transfer(time.Minute, newStream(a, b, 40<<20)))
		recv := b.Info().RcvBuf
		assert.Equal(t, want, recv, delay)
	}
}

// TestBuffersOfASlowReaderKeepTheirSize checks that the receive buffer does not grow if the
// application does not read.
func TestBuffersOfASlowReaderKeepTheirSize(t *testing.T) {
	w := newWorld(t, 1, wire{delay: 20 * time.Millisecond}, Config{})
	a, b := w.connect()
	s := newStream(a, b, 1<<20)
	s.maxRead, s.lazy = 200, 0.9
	w.transfer(2*time.Second, s)
	recv := b.Info().RcvBuf
	assert.Equal(t, 256<<10, recv)
}

func TestSetBuffersKeepTheirSize(t *testing.T) {
	w := newWorld(t, 1, wire{delay: 20 * time.Millisecond}, Config{
		Buffers: Buffers{Recv: 100_000, Send: 90_000},
	})
	a, b := w.connect()
	s := newStream(a, b, 4<<20)
	require.True(t, w.transfer(time.Minute, s))
	recv := b.Info().RcvBuf
	send := a.Info().SndBuf
	assert.Equal(t, []int{100_000, 90_000}, []int{recv, send})
	assert.NotZero(t, a.Info().RwndLimited+a.Info().SndbufLimited)
}

// TestBusyTime checks Linux's chronographs. An idle connection is not busy. A connection whose peer
// closes its window is limited by that window.
func TestBusyTime(t *testing.T) {
	s := opened(t, Config{})
	s.wait(time.Second)
	i := s.c.Info()
	assert.Zero(t, i.BusyTime)
	s.write(1000)
	s.expect(PSH|ACK, 1, 1, 1000)
	s.now = s.now.Add(100 * time.Millisecond)
	s.sendWindow(ACK, 1, 1001, 0, 0)
	s.collect()
	assert.Equal(t, 100*time.Millisecond, s.c.Info().BusyTime)
	s.wait(time.Second)
	s.write(1000)
	s.collect()
	assert.Equal(t, LimitPersist.String(), s.c.Info().Limited)
	s.wait(3 * time.Second)
	s.out = nil
	s.sendWindow(ACK, 1, 1001, 0, 65535)
	s.collect()
	i = s.c.Info()
	assert.Equal(t, 3*time.Second, i.RwndLimited)
	assert.Equal(t, 3100*time.Millisecond, i.BusyTime)
	assert.Zero(t, i.SndbufLimited)
}

// TestInfoOfTimeouts checks total_rto, total_rto_recoveries and total_rto_time.
func TestInfoOfTimeouts(t *testing.T) {
	s := opened(t, Config{})
	s.write(1000)
	s.collect()
	s.wait(time.Second)
	i := s.c.Info()
	assert.Equal(t, uint64(2), i.TotalRTO)
	assert.Equal(t, uint64(1), i.TotalRTORecoveries)
	assert.Equal(t, 2, i.Backoff)
	assert.Equal(t, 2, i.Retransmits)
	assert.Equal(t, 1, i.Retrans)
	assert.Zero(t, i.TotalRTOTime)
	s.send(ACK, 1, 1001, 0)
	i = s.c.Info()
	assert.Positive(t, i.TotalRTOTime)
	assert.Less(t, i.TotalRTOTime, time.Second)
	assert.Zero(t, i.Retransmits)
	s.send(ACK, 2000, 1001, 500)
	assert.Equal(t, uint64(1), s.c.Info().RcvOOOPack)
	assert.Equal(t, 1360, s.c.Info().AdvMSS)
}
