package notebook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/sim/notebook"
)

// BenchmarkTahoe plays a minute of Tahoe, with about four packets for each of its
// acknowledgments' two.
func BenchmarkTahoe(b *testing.B) {
	for b.Loop() {
		cfg := notebook.Config{Duration: time.Minute}
		r, _, err := notebook.Network{}.Run(1, cfg, notebook.NewTahoe(notebook.TahoeConfig{}))
		require.NoError(b, err)
		b.ReportMetric(float64(r[0].Sent+r[0].Acks), "packets/op")
	}
}

// BenchmarkFixedWindow plays a minute of a window that is too large.
func BenchmarkFixedWindow(b *testing.B) {
	for b.Loop() {
		r, _, err := notebook.Network{}.Run(1, notebook.Config{}, notebook.NewFixedWindow(1000))
		require.NoError(b, err)
		b.ReportMetric(float64(r[0].Sent+r[0].Acks), "packets/op")
	}
}
