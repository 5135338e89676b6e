package congestion

import "time"

// The constants of RFC 9406 §4.3.
const (
	minRTTThresh     = 4 * time.Millisecond
	maxRTTThresh     = 16 * time.Millisecond
	minRTTDivisor    = 8
	rttSamples       = 8
	cssGrowthDivisor = 4
	cssRounds        = 5
	ackLimit         = 8 // L, in segments
)

// hystart is HyStart++, RFC 9406: a slow start that ends when round trips get longer, before the
// queue that makes them longer overflows. Zero limit: no limit.
type hystart struct {
	limit int // segments that one acknowledgment counts for at most
	// The shortest round trip of the last round and of this one, and how many samples this has.
	last, current time.Duration
	samples       int
	baseline      time.Duration // the shortest as conservative slow start began
	css           bool          // in conservative slow start
	rounds        int           // of it, the one in which it began included
	done          bool          // it has ended for good: the first slow start only
}

func newHystart(cfg *Config) hystart {
	h := hystart{done: cfg.Ssthresh != 0}
	if !cfg.Paced {
		// RFC 9406 §4.3 gives a sender that is not paced L = 8, so that an acknowledgment of
		// many segments does not let out a large burst. Where a train is sent as one, a burst is
		// a train.
		h.limit = max(ackLimit, cfg.Burst)
	}
	return h
}

// grow returns the bytes by which an acknowledgment of n bytes grows the window (RFC 9406 §4.2).
func (h *hystart) grow(n, mss int) int {
	if h.limit > 0 {
		n = min(n, h.limit*mss)
	}
	if h.css {
		n /= cssGrowthDivisor
	}
	return n
}

// observe takes an acknowledgment's round trip, and reports whether slow start is over.
func (h *hystart) observe(a *Ack) bool {
	if a.RTT > 0 {
		if h.current == 0 || a.RTT < h.current {
			h.current = a.RTT
		}
		h.samples++
	}
	if h.samples >= rttSamples {
		h.judge()
	}
	if !a.Round {
		return false
	}
	h.last, h.current, h.samples = h.current, 0, 0
	if h.css {
		h.rounds++
	}
	return h.css && h.rounds >= cssRounds
}

// judge looks for a round trip that has grown, and in conservative slow start
// for one that has not after all.
func (h *hystart) judge() {
	if h.css {
		if h.current < h.baseline {
			h.css, h.baseline = false, 0
		}
		return
	}
	if h.last == 0 {
		return
	}
	thresh := max(minRTTThresh, min(h.last/minRTTDivisor, maxRTTThresh))
	if h.current >= h.last+thresh {
		h.css, h.baseline, h.rounds = true, h.current, 0
	}
}
