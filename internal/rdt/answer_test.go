package rdt_test

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// answer returns the packet that the engine sends, if it sends one.
func answer(t *testing.T, e engine) string {
	t.Helper()
	b, ok := e.Output(start, nil)
	require.True(t, ok)
	_, more := e.Output(start, nil)
	require.False(t, more)
	return hex.EncodeToString(b)
}

// The receiver answers every data packet with the next expected number: new packets, duplicates,
// those beyond the window and, once the flow has begun, corrupted ones. If a packet requests an
// echo, the answer is an echo, unless the packet is corrupted or beyond the window.
func TestReceiverAnswers(t *testing.T) {
	cfg := small
	cfg.Push = true
	r, err := rdt.NewReceiver(start, cfg, 1)
	require.NoError(t, err)
	_, ok := r.Output(start, nil)
	require.False(t, ok, "no request where the sender pushes")

	part := func(seq uint32, state uint16) []byte {
		return rdt.Raw{
			Sequence: seq, Stream: 1, State: state, Offset: seq, Stamp: 77, Payload: []byte("x"),
		}.Data(cfg)
	}
	ack := func(seq uint32) string { return hex.EncodeToString(rdt.Raw{Sequence: seq}.Ack(cfg)) }
	echo := func(seq, arrived uint32) string {
		return hex.EncodeToString(rdt.Raw{Sequence: seq, Arrived: arrived, Stamp: 77}.Echo(cfg))
	}
	damaged := part(3, rdt.StateEcho)
	damaged[36] ^= 1

	r.Input(start, damaged)
	_, ok = r.Output(start, nil)
	assert.False(t, ok, "the flow has not begun")
	for i, c := range []struct {
		b    []byte
		want string
	}{
		{part(0, 0), ack(1)},
		{part(0, 0), ack(1)},
		{part(2, rdt.StateEcho), echo(1, 2)},
		{part(2, rdt.StateEcho), echo(1, 2)},
		{damaged, ack(1)},
		{part(65, rdt.StateEcho), ack(1)},
		{part(64, rdt.StateEcho), echo(1, 64)},
		{part(1, rdt.StateEcho), echo(3, 1)},
		{part(0, rdt.StateEcho), echo(3, 0)},
	} {
		r.Input(start, c.b)
		assert.Equal(t, c.want, answer(t, r), "step %d", i)
	}
}

// retransmissions returns the times at which a sender without a receiver sends.
func retransmissions(t *testing.T, cfg rdt.Config) (list []time.Duration) {
	t.Helper()
	s, err := rdt.NewSender(cfg, [][]byte{{}})
	require.NoError(t, err)
	require.NoError(t, s.Serve(0))
	now := start
	for {
		if _, ok := s.Output(now, nil); ok {
			list = append(list, now.Sub(start))
		}
		if s.Done() {
			require.ErrorIs(t, s.Err(), rdt.ErrSilent)
			return list
		}
		now = s.Deadline()
		s.Advance(now)
	}
}

// The fixed timeout is constant. The adaptive one doubles (RFC 6298 §5.5) up to its limit.
func TestRetransmissionTimes(t *testing.T) {
	const s = time.Second
	cfg := rdt.Config{Patience: 12 * s}
	assert.Equal(t, []time.Duration{
		0, s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s, 8 * s, 9 * s,
		10 * s, 11 * s,
	}, retransmissions(t, cfg))
	cfg.Adaptive = true
	cfg.MaxTimeout = 4 * s
	assert.Equal(t, []time.Duration{0, s, 3 * s, 7 * s, 11 * s}, retransmissions(t, cfg))
}

// An idle time of the sender does not count as time without progress.
func TestPauseIsNotSilence(t *testing.T) {
	s, err := rdt.NewSender(small, [][]byte{{}, {}})
	require.NoError(t, err)
	now := start
	for id := range uint16(2) {
		require.NoError(t, s.Serve(id))
		require.False(t, s.Done())
		_, ok := s.Output(now, nil)
		require.True(t, ok)
		s.Advance(now)
		require.NoError(t, s.Err())
		s.Input(now, rdt.Raw{Sequence: uint32(id) + 1}.Ack(small))
		require.True(t, s.Done())
		require.Equal(t, clock.Never, s.Deadline())
		now = now.Add(time.Hour)
	}
}

// The sender does not compress data that would not become shorter.
func TestCompressionOnlyIfShorter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 50_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var sizes [2]uint64
	for i := range sizes {
		s, r := pair(t, rdt.Config{Compress: i == 1}, [][]byte{noise})
		w := newWorld(t, s, r, 1, wire{delay: 1}, wire{delay: 1})
		w.run(func() bool { return s.Done() })
		require.Zero(t, r.Info().Compressed)
		sizes[i] = s.Info().SentBytes
	}
	assert.Equal(t, sizes[0], sizes[1])
}

// InOrder holds an object back until all earlier data has arrived. Packets that arrive in the
// meantime do not change a complete object.
func TestInOrderHoldsCompleteObjects(t *testing.T) {
	cfg := small
	cfg.InOrder = true
	r, err := rdt.NewReceiver(start, cfg, 1, 2)
	require.NoError(t, err)
	for _, p := range []rdt.Raw{
		{Sequence: 0, Stream: 1, Payload: []byte("a")},
		{Sequence: 2, Stream: 1, Offset: 1, State: rdt.StateEnd},
		{Sequence: 4, Stream: 1, Offset: 0, Payload: []byte("b")},
	} {
		r.Input(start, p.Data(cfg))
	}
	assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropFinished])
	_, ok := r.Next()
	require.False(t, ok, "number 1 is missing")
	r.Input(start.Add(5), rdt.Raw{Sequence: 1, Stream: 2, Payload: []byte("c")}.Data(cfg))
	c, ok := r.Next()
	require.True(t, ok)
	assert.Equal(t, rdt.Completion{
		Stream: 1, Data: []byte("a"), Began: start, At: start.Add(5),
	}, c)
	assert.False(t, r.Done())
}

// Acknowledgments leave in the order in which they were made, even if many are queued.
func TestAcknowledgmentsKeepTheirOrder(t *testing.T) {
	r, err := rdt.NewReceiver(start, rdt.Config{Window: 4096}, 1)
	require.NoError(t, err)
	next, out := uint32(0), uint32(0)
	take := func(n int) {
		for range n {
			b, ok := r.Output(start, nil)
			require.True(t, ok)
			out++
			require.Equal(t, rdt.Raw{Sequence: out}.Ack(rdt.Config{}), b)
		}
	}
	for _, n := range []int{10, 14, 40, 200, 3000} {
		for range n {
			r.Input(start, rdt.Raw{
				Sequence: next, Stream: 1, Offset: next, Payload: []byte("x"),
			}.Data(rdt.Config{}))
			next++
		}
		take(n / 2)
	}
	take(int(next - out))
	require.Zero(t, r.Info().Drops.Total())
}
