package iperf

import "time"

// Pace keeps a sender to a rate: what it has sent since it began is never more than the rate has
// made room for, and a burst. The zero Pace has no bound.
type Pace struct {
	Rate  int64 // bits a second; 0: no bound
	Block int   // bytes that leave at once
	Burst int   // blocks that do, where more than one shall
}

// Wait is how long a sender waits, so long after it began and having sent so many bytes, until it
// may send again; 0: it may now.
func (p *Pace) Wait(since time.Duration, sent int64) time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	// A block is sent when the rate has come to what was sent before: as iperf3 has it.
	due := p.due(sent)
	if p.Burst > 1 {
		burst := int64(p.Burst) * int64(p.Block)
		due = p.due(sent / burst * burst) // those of one burst are due together
	}
	return max(0, due-since)
}

// due is when a sender at the rate has sent so many bytes.
func (p *Pace) due(sent int64) time.Duration {
	return time.Duration(float64(sent) * 8 / float64(p.Rate) * float64(time.Second))
}
