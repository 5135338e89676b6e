package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkArms transfers the document's objects with a loss of 5 %.
func BenchmarkArms(b *testing.B) {
	for _, name := range []string{"rdt", "rdt, interleaved", "sequential", "parallel"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, _, err := lossy(.05).Run(1, arms[name])
				require.NoError(b, err)
				require.True(b, r.Finished)
				b.ReportMetric(float64(r.Sent+r.ClientSent), "packets/op")
			}
		})
	}
}
