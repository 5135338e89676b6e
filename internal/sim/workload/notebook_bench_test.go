package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// BenchmarkTahoe simulates a minute of Tahoe.
func BenchmarkTahoe(b *testing.B) {
	for b.Loop() {
		cfg := workload.NotebookConfig{Duration: time.Minute}
		r, _, err := workload.NotebookNetwork{}.Run(1, cfg, workload.NewTahoe(workload.TahoeConfig{}))
		require.NoError(b, err)
		b.ReportMetric(float64(r[0].Sent+r[0].Acks), "packets/op")
	}
}

// BenchmarkFixedWindow simulates a minute of a window that is too large.
func BenchmarkFixedWindow(b *testing.B) {
	for b.Loop() {
		r, _, err := workload.NotebookNetwork{}.Run(1, workload.NotebookConfig{}, workload.NewFixedWindow(1000))
		require.NoError(b, err)
		b.ReportMetric(float64(r[0].Sent+r[0].Acks), "packets/op")
	}
}
