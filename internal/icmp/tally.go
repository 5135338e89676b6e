package icmp

import (
	"math"
	"time"
)

// PingInfo is what a Ping has found out.
type PingInfo struct {
	Sent       int
	Received   int // requests that were answered
	Duplicates int // replies to requests that had one
	Corrupted  int // replies with a wrong checksum
	Errors     int // reports that a request did not arrive
	Pipe       int // the most requests under way when one was answered
	Elapsed    time.Duration
	// The round trips of all replies: Mdev is their standard deviation, EWMA a moving
	// average with a weight of an eighth for the latest.
	Min, Avg, Max, Mdev, EWMA time.Duration
}

// tally counts for a PingInfo.
type tally struct {
	PingInfo
	sum, square float64 // nanoseconds
}

func (t *tally) add(rtt time.Duration) {
	if t.sum == 0 && t.square == 0 {
		t.Min, t.EWMA = rtt, rtt
	}
	t.Min, t.Max = min(t.Min, rtt), max(t.Max, rtt)
	t.EWMA += (rtt - t.EWMA) / 8
	t.sum += float64(rtt)
	t.square += float64(float64(rtt) * float64(rtt)) // rounded, the same everywhere
}

// Info returns what the ping has found out so far.
func (p *Ping) Info() PingInfo {
	info := p.stats.PingInfo
	if info.Sent > 0 {
		info.Elapsed = p.last.Sub(p.start)
	}
	if n := float64(info.Received + info.Duplicates); n > 0 {
		mean := p.stats.sum / n
		info.Avg = time.Duration(mean)
		info.Mdev = time.Duration(math.Sqrt(max(0, p.stats.square/n-float64(mean*mean))))
	}
	return info
}
