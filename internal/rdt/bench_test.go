package rdt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rdt"
)

// BenchmarkFlow measures a packet and its acknowledgment through both engines.
func BenchmarkFlow(b *testing.B) {
	for _, sum := range []rdt.Checksum{rdt.MD5, rdt.CRC32C} {
		b.Run(sum.String(), func(b *testing.B) {
			cfg := rdt.Config{Selective: true, Push: true, Checksum: sum}
			objects := [][]byte{text(1, 1325*1000)}
			b.SetBytes(1325)
			b.ReportAllocs()
			var s *rdt.Sender
			var r *rdt.Receiver
			var err error
			data, ack := make([]byte, 0, 1500), make([]byte, 0, 100)
			now := start
			for i := range b.N {
				if i%1000 == 0 {
					s, err = rdt.NewSender(cfg, objects)
					require.NoError(b, err)
					r, err = rdt.NewReceiver(now, cfg, 0)
					require.NoError(b, err)
					require.NoError(b, s.Serve(0))
				}
				now++
				data, _ = s.Output(now, data[:0])
				r.Input(now, data)
				ack, _ = r.Output(now, ack[:0])
				s.Input(now, ack)
			}
		})
	}
}
