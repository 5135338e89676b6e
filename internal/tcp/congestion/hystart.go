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

// hystart implements HyStart++ (RFC 9406): slow start ends when round-trip times grow, before the
// queue overflows.
type hystart struct {
	limit int // the most segments that one acknowledgment counts; 0: no limit
	// The minimum round-trip time of the last round and of this one, and the number of samples in
	// this one.
	last, current time.Duration
	samples       int
	baseline      time.Duration // the minimum at the start of conservative slow start
	css           bool          // in conservative slow start
	rounds        int           // rounds in conservative slow start, including the first
	done          bool          // HyStart++ has ended; only the first slow start uses it
}

func newHystart(cfg *Config) hystart {
	h := hystart{done: cfg.Ssthresh != 0}
	if !cfg.Paced {
		// RFC 9406 §4.3 limits a sender that is not paced to L = 8, so that an acknowledgment of
		// many segments does not release a large burst. A sender of trains sends a train at once
		// anyway.
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

// observe adds an acknowledgment's round-trip time, and reports whether slow start has ended.
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

// judge starts conservative slow start if round-trip times have grown, and returns to slow start if
// they shrink again.
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
