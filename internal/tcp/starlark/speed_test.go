package starlark_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// BenchmarkAck measures an acknowledgment in slow start and in congestion avoidance, with Tahoe as
// a script and built in.
func BenchmarkAck(b *testing.B) {
	builtin, err := congestion.Find(nil, "tahoe")
	require.NoError(b, err)
	for _, bc := range []struct {
		name     string
		create   congestion.Make
		ssthresh int
	}{
		{"script/slow-start", must(b, tutorial(b, "tahoe.star")).New, 1 << 30},
		{"script/avoidance", must(b, tutorial(b, "tahoe.star")).New, 1400},
		{"builtin/slow-start", builtin, 1 << 30},
		{"builtin/avoidance", builtin, 1400},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := bc.create(congestion.Config{
				MSS: 1400, InitialWindow: 14000, MaxWindow: 1 << 30, Ssthresh: bc.ssthresh,
			})
			a := congestion.Ack{
				Now: 1, Delivered: 2800, Prior: 28000, InFlight: 25200, MSS: 1400,
				RTT: 10 * time.Millisecond, CwndLimited: true,
			}
			b.ReportAllocs()
			for b.Loop() {
				a.Now += clock.Time(time.Millisecond)
				c.OnAck(&a)
			}
		})
	}
}
