package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestSquareRootLaw checks Reno against the square root law (Mathis et al. 1997). When every
// thousandth segment is lost on a link of finite rate, Reno halves its window once per loss, and
// its mean window is 1.2247/√p segments with every recovery strategy. Go-back-N retransmits half a
// window per loss, which lowers its goodput but not its window. When the duplicate acknowledgments
// of its retransmissions started further recoveries (RFC 6582 §4.1), 39 losses caused 1211
// recoveries, and the factor was 0.43.
func TestSquareRootLaw(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, recovery := range Recoveries() {
		cfg := Config{}
		cfg.Knobs = Knobs{Recovery: Recovery{Congestion: "reno", Strategy: recovery}}
		w := newWorld(t, 1, wire{delay: 5 * time.Millisecond, bytesPerSec: 12.5e6}, cfg)
		a, b := w.connect()
		data, losses := 0, uint64(0)
		w.tap = func(from int, _ Header, n int) bool {
			if from == 1 || n == 0 {
				return false
			}
			if data++; data%1000 != 0 {
				return false
			}
			losses++
			return true
		}
		begin, last, cwnd, area := w.now.Add(3*time.Second), clock.Never, 0, 0.0
		a.SetProbe(func(p *Info) {
			if last != clock.Never && p.Time > begin {
				area += float64(cwnd) * p.Time.Sub(last).Seconds()
			}
			last, cwnd = max(p.Time, begin), p.SndCwnd
		})
		s := newStream(a, b, 1<<62)
		s.keepOpen = true
		w.transfer(13*time.Second, s)
		i := a.Info()
		require.Greater(t, losses, uint64(30), recovery)
		assert.InDelta(t, losses, i.FastRecoveries+i.TotalRTO, 2, "reductions with %s", recovery)
		law := area / last.Sub(begin).Seconds() / float64(i.SndMSS) * sqrt(.001)
		assert.InDelta(t, 1.2247, law, .07, "W√p with %s", recovery)
		t.Logf("%s: W√p %.3f, %d losses, %d recoveries, %d timeouts, %d of %d retransmitted",
			recovery, law, losses, i.FastRecoveries, i.TotalRTO, i.TotalRetrans, i.DataSegsOut)
	}
}
