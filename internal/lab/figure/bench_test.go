package figure

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// long returns a run of 240 s with about three hundred thousand packets.
func long() *result.Record { return synthesize(240*time.Second, 15, 60_000, "reno") }

func BenchmarkReport(b *testing.B) {
	rec := long()
	b.ReportAllocs()
	for b.Loop() {
		var page bytes.Buffer
		r := &Report{Name: "long", Sections: []Section{{Plots: Plots(rec)}}}
		require.NoError(b, r.Write(&page))
		b.ReportMetric(float64(page.Len()), "bytes/page")
	}
}

func BenchmarkPNG(b *testing.B) {
	plots := Plots(long())
	b.ReportAllocs()
	for i := range plots {
		b.Run(plots[i].Name, func(b *testing.B) {
			for b.Loop() {
				var picture bytes.Buffer
				require.NoError(b, plots[i].Write(&picture, "png", Style{}))
			}
		})
	}
}
