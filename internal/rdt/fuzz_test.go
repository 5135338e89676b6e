package rdt_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rdt"
)

// A program for the fuzzer is a list of steps of 12 bytes: the operation, its amount, and the
// fields of a packet with a valid checksum.
const stepLen = 12

type step struct {
	what, n byte
	raw     rdt.Raw
	rest    []byte
}

// near converts small numbers to sequence numbers or offsets near a limit.
func near(b []byte) uint32 { return uint32(int32(int16(binary.BigEndian.Uint16(b)))) }

func program(data []byte, do func(s *step)) {
	for len(data) >= stepLen {
		s := step{what: data[0], n: data[1], rest: data[stepLen:]}
		s.raw = rdt.Raw{
			Sequence: near(data[2:]), Stream: uint16(data[4] % 4), State: uint16(data[5]),
			Offset: near(data[6:]), Arrived: near(data[8:]),
			Stamp: start + clock.Time(int16(binary.BigEndian.Uint16(data[10:]))),
		}
		data = data[stepLen:]
		do(&s)
	}
}

var fuzzed = rdt.Config{
	Payload: 40, Window: 16, Timeout: time.Millisecond, MinTimeout: time.Microsecond,
	MaxBytes: 500, Patience: time.Second, Checksum: rdt.CRC32C,
}

// steps makes a seed of the corpus.
func steps(list ...[stepLen]byte) (b []byte) {
	for _, s := range list {
		b = append(b, s[:]...)
	}
	return b
}

func FuzzReceiver(f *testing.F) {
	f.Add([]byte("raw bytes, taken as they are"))
	f.Add(steps([stepLen]byte{0, 10, 0, 0, 1}, [stepLen]byte{0, 0, 0, 1, 1, 1, 0, 10}))
	f.Add(steps([stepLen]byte{1, 10, 0, 0, 1, 6}, [stepLen]byte{0, 0, 0, 1, 1, 5, 0, 10}))
	f.Add(steps([stepLen]byte{0, 9, 0, 5, 0, 0, 2, 128}, [stepLen]byte{3, 200}, [stepLen]byte{4}))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := fuzzed
		cfg.InOrder = len(data)%2 == 1
		r, err := rdt.NewReceiver(start, cfg, 0, 1, 2)
		require.NoError(t, err)
		now, ended := start, map[uint16]bool{}
		r.Input(now, data)
		program(data, func(s *step) {
			s.raw.Payload = s.rest[:min(len(s.rest), int(s.n%48))]
			switch s.what % 5 {
			case 0:
				r.Input(now, s.raw.Data(cfg))
			case 1:
				s.raw.Payload = rdt.Compress(s.raw.Payload)
				r.Input(now, s.raw.Data(cfg))
			case 2:
				r.Input(now, s.raw.Echo(cfg))
			case 3:
				now = now.Add(time.Duration(s.n) * 10 * time.Millisecond)
				r.Advance(now)
				require.False(t, r.Deadline().Due(now))
			case 4:
				drain(t, r, now, len(data)+2)
			}
			require.LessOrEqual(t, r.Info().Held, cfg.MaxBytes)
			require.GreaterOrEqual(t, r.Info().Held, 0)
		})
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			require.False(t, ended[c.Stream], "ended twice")
			ended[c.Stream] = true
		}
		require.Equal(t, r.Done(), len(ended) == 3)
	})
}

func FuzzSender(f *testing.F) {
	f.Add([]byte("raw bytes, taken as they are"))
	f.Add(steps([stepLen]byte{3, 3}, [stepLen]byte{4, 9}, [stepLen]byte{1, 0, 0, 1},
		[stepLen]byte{1, 0, 0, 1}, [stepLen]byte{1, 0, 0, 1}, [stepLen]byte{1, 0, 0, 1}))
	f.Add(steps([stepLen]byte{3, 3}, [stepLen]byte{4, 9}, [stepLen]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 5},
		[stepLen]byte{5, 200}, [stepLen]byte{4, 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := fuzzed
		cfg.Selective, cfg.Adaptive = len(data)&1 != 0, len(data)&2 != 0
		cfg.Interleave, cfg.Compress = len(data)&4 != 0, len(data)&8 != 0
		s, err := rdt.NewSender(cfg, [][]byte{text(1, 300), nil, text(2, 500)})
		require.NoError(t, err)
		now := start
		s.Input(now, data)
		program(data, func(p *step) {
			switch p.what % 6 {
			case 0:
				s.Input(now, p.raw.Ack(cfg))
			case 1:
				s.Input(now, rdt.Raw{Sequence: p.raw.Sequence & 31}.Ack(cfg))
			case 2:
				s.Input(now, p.raw.Echo(cfg))
			case 3:
				p.raw.State = rdt.StateRequest
				p.raw.Payload = p.rest[:min(len(p.rest), int(p.n%16))]
				s.Input(now, p.raw.Data(cfg))
			case 4:
				drain(t, s, now, 2*cfg.Window)
			case 5:
				now = now.Add(time.Duration(p.n) * 100 * time.Microsecond)
				s.Advance(now)
				if s.Err() == nil && s.Info().InFlight > 0 {
					require.NotEqual(t, clock.Never, s.Deadline())
				}
				require.False(t, s.Deadline().Due(now))
			}
			require.LessOrEqual(t, s.Info().InFlight, cfg.Window)
			require.Positive(t, s.Info().Timeout)
		})
	})
}

// drain takes all packets that the engine can send now. It fails if there are more than most.
func drain(t *testing.T, e engine, now clock.Time, most int) {
	t.Helper()
	for n := 0; ; n++ {
		b, ok := e.Output(now, nil)
		if !ok {
			return
		}
		require.NotEmpty(t, b)
		require.LessOrEqual(t, n, most, "it sends forever")
	}
}
