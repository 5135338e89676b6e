package iperf

import "time"

// Pace limits a sender's rate. The bytes sent so far never exceed rate × time by more than a burst.
// The zero Pace has no limit.
type Pace struct {
	Rate  int64 // bits per second; 0: no limit
	Block int   // size of a block in bytes
	Burst int   // number of blocks sent at once; 0 and 1: one
}

// Wait returns how long a sender must wait before its next block, given the time since its start
// and the bytes sent so far.
func (p *Pace) Wait(since time.Duration, sent int64) time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	// As in iperf3, a block may leave when rate × time reaches the bytes sent before it.
	due := p.due(sent)
	if p.Burst > 1 {
		burst := int64(p.Burst) * int64(p.Block)
		due = p.due(sent / burst * burst) // the blocks of a burst are due together
	}
	return max(0, due-since)
}

// due returns the time at which a sender at this rate has sent that many bytes.
func (p *Pace) due(sent int64) time.Duration {
	return time.Duration(float64(sent) * 8 / float64(p.Rate) * float64(time.Second))
}
