package icmp

import (
	"math"
	"net/netip"
	"time"
)

// PingResult has the statistics of a Ping.
type PingResult struct {
	Addr       netip.Addr    `json:"addr"`
	Sent       int           `json:"sent"`
	Received   int           `json:"received"`   // requests that were answered
	Duplicates int           `json:"duplicates"` // further replies to answered requests
	Corrupted  int           `json:"corrupted"`  // replies with a wrong checksum
	Errors     int           `json:"errors"`     // error reports about requests
	Pipe       int           `json:"pipe"`       // maximum number of unanswered requests
	Elapsed    time.Duration `json:"elapsed_ns"`
	Min        time.Duration `json:"min_ns"` // minimum round-trip time
	Avg        time.Duration `json:"avg_ns"` // mean round-trip time
	Max        time.Duration `json:"max_ns"`
	Mdev       time.Duration `json:"mdev_ns"` // standard deviation of the round-trip times
	EWMA       time.Duration `json:"ewma_ns"` // moving average, with a weight of 1/8 for the latest
}

// pingStats collects the statistics of a Ping.
type pingStats struct {
	PingResult
	sum, square float64 // sums in nanoseconds
}

func (t *pingStats) add(rtt time.Duration) {
	if t.sum == 0 && t.square == 0 {
		t.Min, t.EWMA = rtt, rtt
	}
	t.Min, t.Max = min(t.Min, rtt), max(t.Max, rtt)
	t.EWMA += (rtt - t.EWMA) / 8
	t.sum += float64(rtt)
	t.square += float64(float64(rtt) * float64(rtt)) // rounded, for the same result on all machines
}

// Info returns the statistics so far.
func (p *Ping) Info() PingResult {
	info := p.stats.PingResult
	info.Addr = p.cfg.Dst
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
