package simulation

import (
	"testing"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// BenchmarkRun simulates cells, and reports how many packets it simulates per second. Each packet
// crosses three links, but counts once.
func BenchmarkRun(b *testing.B) {
	fast := func(cc string, flows int) *plan.Cell {
		c := cell(cc, 250)
		c.Path.Down.Rate, c.Path.Up.Rate = netem.BitsPerSecond(100e6), netem.BitsPerSecond(100e6)
		c.HostJitter = 120 * time.Microsecond
		for range flows - 1 {
			addFlow(c, cc)
		}
		c.Duration = 10 * time.Second
		return c
	}
	for _, m := range []struct {
		name   string
		cell   *plan.Cell
		record bool
	}{
		{"reno", fast("reno", 1), false},
		{"cubic", fast("cubic", 1), false},
		{"bbr", fast("bbr", 1), false},
		{"ten flows", fast("cubic", 10), false},
		{"thousand flows", fast("reno", 1000), false},
		{"recorded", fast("cubic", 1), true},
	} {
		b.Run(m.name, func(b *testing.B) {
			packets := 0.0
			b.ReportAllocs()
			for b.Loop() {
				got, _, err := Run(m.cell, 0, Options{Record: m.record})
				if err != nil {
					b.Fatal(err)
				}
				packets += got.Whole[result.Packets]
			}
			b.ReportMetric(packets/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
