package examine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// A go-back-N sender with a fixed window of 25 segments fails the checks of congestion control.
// With 64 segments it does not even claim congestion control.
func TestCongestion(t *testing.T) {
	t.Parallel()
	all, err := examine.Checks()
	require.NoError(t, err)
	var checks []*examine.Check
	for _, c := range all {
		if c.Name == "tcp/initial-window" || c.Name == "tcp/congestion-timeout" {
			checks = append(checks, c)
		}
	}
	require.Len(t, checks, 2)
	for _, c := range []struct {
		segments int
		want     examine.Verdict
	}{{25, examine.Fail}, {64, examine.Skipped}} {
		exam := &examine.Exam{Subject: &examine.Self{Knobs: tcp.Knobs{Recovery: tcp.Recovery{
			Strategy: "gbn", Congestion: "fixed", FixedWindow: c.segments * 1000, InitialWindow: c.segments,
		}}}, Checks: checks, Runs: 1}
		r := exam.Run(t.Context())
		for i := range r.Results {
			assert.Equal(t, c.want, r.Results[i].Verdict, "%s with %d segments: %+v",
				r.Results[i].Check.Name, c.segments, r.Results[i].Failure)
		}
	}
}
