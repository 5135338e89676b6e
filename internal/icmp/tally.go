package icmp

import (
	"math"
	"time"
)

// PingInfo is the statistics of a Ping.
type PingInfo struct {
	Sent       int
	Received   int // requests that were answered
	Duplicates int // further replies to answered requests
	Corrupted  int // replies with a wrong checksum
	Errors     int // error reports about requests
	Pipe       int // maximum number of unanswered requests
	Elapsed    time.Duration
	// These are statistics of the round trips of all replies. Mdev is their standard deviation.
	// EWMA is a moving average with a weight of one eighth for the latest.
	Min, Avg, Max, Mdev, EWMA time.Duration
}

// tally collects a PingInfo.
type tally struct {
	PingInfo
	sum, square float64 // sums in nanoseconds
}

func (t *tally) add(rtt time.Duration) {
	if t.sum == 0 && t.square == 0 {
		t.Min, t.EWMA = rtt, rtt
	}
	t.Min, t.Max = min(t.Min, rtt), max(t.Max, rtt)
	t.EWMA += (rtt - t.EWMA) / 8
	t.sum += float64(rtt)
	t.square += float64(float64(rtt) * float64(rtt)) // rounded, for the same result on all machines
}

// Info returns the statistics so far.
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
