package plan

import (
	"math/bits"
	"time"
)

// An application with a rate writes pieces: of pieceTime at its rate, or of pieceBytes if that is
// more.
const (
	pieceTime  = time.Millisecond
	pieceBytes = 1400
)

// Backlog is how much an application that rests leaves unsent at most, in bytes: what it has
// written it cannot take back.
const Backlog = 64 << 10

// Rest is how long an application still rests, so long after it began; 0: it is its turn.
func (a *App) Rest(elapsed time.Duration) time.Duration {
	if a.Off > 0 {
		if at := elapsed % (a.On + a.Off); at >= a.On {
			return a.On + a.Off - at
		}
	}
	return 0
}

// Paced is how many of size bytes an application with a rate may write, so long after it began and
// having written sent of them. If that is 0 there will be some after wait.
func (a *App) Paced(elapsed time.Duration, sent, size uint64) (n uint64, wait time.Duration) {
	due := a.due(elapsed)
	piece := min(max(pieceBytes, volume(a.Rate, pieceTime)), size-sent)
	if due < sent+piece {
		return 0, time.Duration(float64(sent+piece-due)*8e9/float64(a.Rate)) + 1
	}
	return due - sent, 0
}

// due is how much is to be written in the time since the beginning.
func (a *App) due(elapsed time.Duration) uint64 {
	if a.Off > 0 {
		cycle := a.On + a.Off
		rests := int64(elapsed / cycle)
		elapsed = max(elapsed-time.Duration(rests)*a.Off-max(0, elapsed%cycle-a.On), 0)
	}
	return volume(a.Rate, elapsed)
}

// volume is how many bytes a rate in bits a second comes to in a while.
func volume(rate int64, d time.Duration) uint64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(d))
	n, _ := bits.Div64(hi, lo, 8e9)
	return n
}
