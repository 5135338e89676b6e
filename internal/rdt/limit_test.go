package rdt_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

var small = rdt.Config{Payload: 100, Window: 64, MaxBytes: 10_000}

// Each case is the effect of one packet on a receiver of object 1.
func TestReceiverDrops(t *testing.T) {
	flipped := rdt.Raw{Stream: 1, Payload: []byte("x")}.Data(small)
	flipped[len(flipped)-1] ^= 1
	for name, c := range map[string]struct {
		b    []byte
		drop rdt.Drop
		err  error // expected error of the object
	}{
		"empty":         {nil, rdt.DropLength, nil},
		"half a header": {make([]byte, 35), rdt.DropLength, nil},
		"too long":      {make([]byte, 36+513), rdt.DropLength, nil},
		"flipped":       {flipped, rdt.DropChecksum, nil},
		"unknown state": {
			rdt.Raw{State: 1 << 9, Payload: []byte("x")}.Data(small), rdt.DropState,
			nil,
		},
		"end with text":  {rdt.Raw{State: 1, Payload: []byte("x")}.Data(small), rdt.DropState, nil},
		"nothing":        {rdt.Raw{Stream: 1}.Data(small), rdt.DropState, nil},
		"absent, no end": {rdt.Raw{State: 8, Payload: []byte("x")}.Data(small), rdt.DropState, nil},
		"compressed end": {rdt.Raw{State: 3}.Data(small), rdt.DropState, nil},
		"acknowledgment": {rdt.Raw{}.Ack(small), rdt.DropKind, nil},
		"echo":           {rdt.Raw{}.Echo(small), rdt.DropKind, nil},
		"request": {
			rdt.Raw{State: 16, Payload: []byte("xx")}.Data(small), rdt.DropKind,
			nil,
		},
		"beyond window": {
			rdt.Raw{Sequence: 64, Payload: []byte("x")}.Data(small), rdt.DropOutside,
			nil,
		},
		"before window": {
			rdt.Raw{Sequence: 1<<32 - 1, Payload: []byte("x")}.Data(small), rdt.DropRepeated,
			nil,
		},
		"unasked": {
			rdt.Raw{Stream: 2, Payload: []byte("x")}.Data(small), rdt.DropStream,
			nil,
		},
		"far offset": {
			rdt.Raw{Stream: 1, Offset: 1<<32 - 1, Payload: []byte("x")}.Data(small), rdt.DropOffset,
			rdt.ErrMalformed,
		},
		"just too far": {
			rdt.Raw{Stream: 1, Offset: 6401, Payload: []byte("x")}.Data(small), rdt.DropOffset,
			rdt.ErrMalformed,
		},
		"at offset limit": {
			rdt.Raw{Stream: 1, Offset: 6400, Payload: []byte("x")}.Data(small), 0, nil,
		},
		"no zlib": {
			rdt.Raw{Stream: 1, State: 2, Payload: []byte("xyz")}.Data(small),
			rdt.DropCompression, rdt.ErrMalformed,
		},
		"data after it": {
			rdt.Raw{
				Stream: 1, State: 2,
				Payload: append(bytes.Clone(rdt.Compress(make([]byte, 50))), 0),
			}.Data(small),
			rdt.DropCompression, rdt.ErrMalformed,
		},
		"cut short": {
			rdt.Raw{Stream: 1, State: 2, Payload: rdt.Compress(make([]byte, 50))[:9]}.Data(small),
			rdt.DropCompression, rdt.ErrMalformed,
		},
		"empty, compressed": {
			rdt.Raw{Stream: 1, State: 2, Payload: rdt.Compress(nil)}.Data(small),
			rdt.DropCompression, rdt.ErrMalformed,
		},
		"a bomb": {
			rdt.Raw{Stream: 1, State: 2, Payload: rdt.Compress(make([]byte, 50_000))}.Data(small),
			rdt.DropCompression, rdt.ErrMalformed,
		},
		"absent": {rdt.Raw{Stream: 1, State: 9}.Data(small), 0, rdt.ErrAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rdt.NewReceiver(start, small, 1)
			require.NoError(t, err)
			r.Input(start, c.b)
			drops := r.Info().Drops
			if c.drop != 0 {
				assert.Equal(t, uint64(1), drops[c.drop], "%v", drops)
			}
			assert.Equal(t, c.drop != 0, drops.Total() == 1)
			list := completions(r)
			if c.err == nil {
				require.Empty(t, list)
				return
			}
			require.Len(t, list, 1)
			require.ErrorIs(t, list[0].Err, c.err)
		})
	}
}

// Chunks that contradict each other fail only their own object.
func TestContradictions(t *testing.T) {
	part := func(seq, offset uint32, n int) rdt.Raw {
		return rdt.Raw{Stream: 1, Sequence: seq, Offset: offset, Payload: make([]byte, n)}
	}
	end := func(seq, offset uint32) rdt.Raw {
		return rdt.Raw{Stream: 1, Sequence: seq, Offset: offset, State: rdt.StateEnd}
	}
	for name, list := range map[string][]rdt.Raw{
		"two ends":                {end(0, 10), end(1, 20)},
		"an end before data":      {part(0, 0, 100), end(1, 50)},
		"data after the end":      {end(0, 50), part(1, 40, 20)},
		"more data than the size": {end(0, 50), part(1, 0, 40), part(2, 0, 40)},
		"overlaps, then ended":    {part(0, 0, 40), part(1, 0, 40), end(2, 50)},
	} {
		r, err := rdt.NewReceiver(start, small, 1, 2)
		require.NoError(t, err)
		for _, p := range list {
			r.Input(start, p.Data(small))
		}
		got := completions(r)
		require.Len(t, got, 1, name)
		require.ErrorIs(t, got[0].Err, rdt.ErrMalformed, name)
		assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropOffset], name)
		assert.Zero(t, r.Info().Held, name)
		assert.False(t, r.Done(), name)
		r.Input(start, part(9, 0, 10).Data(small))
		assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropFinished], name)
	}
}

// An object of more than MaxBytes fails. Objects that the owner has read no longer count.
func TestReceiverMemoryIsBounded(t *testing.T) {
	objects := [][]byte{text(1, 9000), text(2, 9000), text(3, 10_001)}
	s, r := pair(t, small, objects)
	w := newWorld(t, s, r, 1, wire{delay: 1, perByte: 1}, wire{delay: 1})
	var list []rdt.Completion
	w.after = func() {
		assert.LessOrEqual(t, r.Info().Held, small.MaxBytes)
		list = append(list, completions(r)...)
	}
	w.run(func() bool { return s.Done() && r.Done() })
	require.Len(t, list, 3)
	require.NoError(t, list[0].Err)
	require.NoError(t, list[1].Err)
	require.ErrorIs(t, list[2].Err, rdt.ErrTooLarge)
	assert.Equal(t, uint64(1), r.Info().Drops[rdt.DropMemory])
}

func TestQueuedAcknowledgmentsAreBounded(t *testing.T) {
	r, err := rdt.NewReceiver(start, small, 1)
	require.NoError(t, err)
	b := rdt.Raw{Stream: 1, Payload: []byte("x")}.Data(small)
	for range rdt.MaxAcks + 100 {
		r.Input(start, b)
	}
	assert.Equal(t, uint64(100), r.Info().Drops[rdt.DropAckQueue])
	n := 0
	for _, ok := r.Output(start, nil); ok; _, ok = r.Output(start, nil) {
		n++
	}
	assert.Equal(t, rdt.MaxAcks, n)
}

// Each case is the effect of one packet on a sender of two packets, numbers 5 and 6.
func TestSenderDrops(t *testing.T) {
	request := rdt.Raw{Sequence: 5, State: rdt.StateRequest, Payload: []byte{0, 0}}
	for name, c := range map[string]struct {
		b    []byte
		drop rdt.Drop
	}{
		"empty":     {nil, rdt.DropLength},
		"no digest": {make([]byte, 20), rdt.DropChecksum},
		"data":      {rdt.Raw{Payload: []byte("x")}.Data(small), rdt.DropKind},
		"half a number": {
			rdt.Raw{State: 16, Payload: []byte{0, 0, 0}}.Data(small),
			rdt.DropRequest,
		},
		"no number":         {rdt.Raw{State: 16}.Data(small), rdt.DropRequest},
		"old":               {rdt.Raw{Sequence: 4}.Ack(small), rdt.DropOldAck},
		"wild":              {rdt.Raw{Sequence: 8}.Ack(small), rdt.DropWildAck},
		"wild echo":         {rdt.Raw{Sequence: 8, Arrived: 5}.Echo(small), rdt.DropWildAck},
		"all":               {rdt.Raw{Sequence: 7}.Ack(small), 0},
		"nothing":           {rdt.Raw{Sequence: 5}.Ack(small), 0},
		"of nothing sent":   {rdt.Raw{Sequence: 5, Arrived: 99, Stamp: -1}.Echo(small), 0},
		"a made-up stamp":   {rdt.Raw{Sequence: 5, Arrived: 6, Stamp: 1}.Echo(small), 0},
		"the request again": {request.Data(small), 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small
			cfg.Selective, cfg.Adaptive = true, true
			s, err := rdt.NewSender(cfg, [][]byte{[]byte("text")})
			require.NoError(t, err)
			s.Input(start, request.Data(small))
			for _, ok := s.Output(start, nil); ok; _, ok = s.Output(start, nil) {
			}
			require.Equal(t, 2, s.Info().InFlight)
			s.Input(start.Add(time.Second), c.b)
			drops := s.Info().Drops
			assert.Equal(t, c.drop != 0, drops.Total() == 1, "%v", drops)
			assert.True(t, c.drop == 0 || drops[c.drop] == 1, "%v", drops)
			assert.Equal(t, name == "all", s.Done())
			assert.Zero(t, s.Info().SRTT, "no packet gives a round-trip sample")
		})
	}
}

// A sender gives up on a receiver that acknowledges every packet selectively but never advances.
func TestSenderGivesUpWithoutProgress(t *testing.T) {
	cfg := small
	cfg.Selective = true
	s, err := rdt.NewSender(cfg, [][]byte{text(1, 50_000)})
	require.NoError(t, err)
	require.NoError(t, s.Serve(0))
	now := start
	for !s.Done() {
		for b, ok := s.Output(now, nil); ok; b, ok = s.Output(now, nil) {
			seq := uint32(b[3]) | uint32(b[2])<<8
			s.Input(now, rdt.Raw{Arrived: seq, Stamp: now}.Echo(cfg))
		}
		require.LessOrEqual(t, s.Info().InFlight, cfg.Window)
		require.NotEqual(t, clock.Never, s.Deadline())
		now = s.Deadline()
		s.Advance(now)
	}
	require.ErrorIs(t, s.Err(), rdt.ErrSilent)
	assert.Equal(t, start.Add(30*time.Second), now)
}

// The data path allocates only the memory of the objects.
func TestDataPathAllocatesNothing(t *testing.T) {
	for _, selective := range []bool{false, true} {
		cfg := rdt.Config{Selective: selective, Push: true, Window: 16}
		s, r := pair(t, cfg, [][]byte{bytes.Repeat([]byte("tide"), 4<<20)})
		data, ack := make([]byte, 0, 1500), make([]byte, 0, 100)
		now := start
		step := func() {
			now = now.Add(time.Millisecond)
			data, _ = s.Output(now, data[:0])
			r.Input(now, data)
			ack, _ = r.Output(now, ack[:0])
			s.Input(now, ack)
		}
		step()
		assert.Zero(t, testing.AllocsPerRun(5000, step))
		assert.Equal(t, uint64(5002), s.Info().Acks)
		assert.Zero(t, s.Info().Resent)
	}
}
