package simulation

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// SenderStats summarizes a sender's round-trip times, and its congestion window over time. For a
// sender with several connections, it has the round-trip times of all of them, and no window.
type SenderStats struct {
	rtt     Histogram
	conn    int            // connection of the last sample
	samples uint64         // number of round-trip samples of that connection
	others  map[int]uint64 // number of samples of the other connections

	cwnd                int
	cwndLeast, cwndMost int
	cwndSince           clock.Time // start of the current window; Never: there is no window yet
	cwndArea            float64    // integral of the window in bytes times nanoseconds
	cwndTime            time.Duration
}

// AddSample adds a sample of one of the sender's connections, by number, and reports whether the
// sample has a new round-trip measurement.
func (v *SenderStats) AddSample(conn int, s *tcp.Info) (fresh bool) {
	if conn != v.conn {
		v.switchTo(conn)
	}
	if fresh = s.RTTSamples != v.samples; fresh {
		v.samples = s.RTTSamples
		v.rtt.Add(s.LatestRTT)
	}
	if v.others != nil {
		return fresh
	}
	first := v.cwndSince == clock.Never
	if s.SndCwnd != v.cwnd || first {
		v.settle(s.Time)
		v.cwnd, v.cwndSince = s.SndCwnd, s.Time
		if first {
			v.cwndLeast = s.SndCwnd
		}
		v.cwndLeast, v.cwndMost = min(v.cwndLeast, s.SndCwnd), max(v.cwndMost, s.SndCwnd)
	}
	return fresh
}

// switchTo switches to the samples of another connection.
func (v *SenderStats) switchTo(conn int) {
	if v.others == nil && (v.samples > 0 || v.cwndSince != clock.Never) {
		v.others = map[int]uint64{}
	}
	if v.others != nil {
		v.others[v.conn] = v.samples
		v.samples = v.others[conn]
	}
	v.conn = conn
}

func (v *SenderStats) settle(now clock.Time) {
	if v.cwndSince == clock.Never {
		return
	}
	d := now.Sub(v.cwndSince)
	v.cwndArea += float64(float64(v.cwnd) * float64(d))
	v.cwndTime += d
	v.cwndSince = now
}

// EndWarmup resets the statistics, but keeps the current window.
func (v *SenderStats) EndWarmup(now clock.Time) {
	v.settle(now)
	v.rtt, v.cwndArea, v.cwndTime = Histogram{}, 0, 0
	v.cwndLeast, v.cwndMost = v.cwnd, v.cwnd
}

// Cwnd returns the last congestion window, in bytes.
func (v *SenderStats) Cwnd() int { return v.cwnd }

// Result adds the results up to an instant.
func (v *SenderStats) Result(until clock.Time, to result.Values) {
	if h := &v.rtt; h.Count > 0 {
		to[result.RTTMean] = h.Mean().Seconds()
		to[result.RTTMin] = h.Min.Seconds()
		to[result.RTTMax] = h.Max.Seconds()
		to[result.RTTP50] = h.Percentile(.50).Seconds()
		to[result.RTTP95] = h.Percentile(.95).Seconds()
		to[result.RTTP99] = h.Percentile(.99).Seconds()
	}
	if v.cwndSince == clock.Never || v.others != nil {
		return
	}
	if until > v.cwndSince {
		v.settle(until)
	}
	if v.cwndTime > 0 {
		to[result.CwndMean] = v.cwndArea / float64(v.cwndTime)
	}
	to[result.CwndMin] = float64(v.cwndLeast)
	to[result.CwndMax] = float64(v.cwndMost)
}
