//go:build linux

package lead

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
)

// Cost measures what requests or connections cost at both ends together, over a UDP link.
type Cost struct {
	Stack string
	Kind  string // one of end.Ask, end.Churn, end.Hold and end.Used
	For   time.Duration
	Count int
}

// Run does the work and returns its cost: CPU time in µs for each round or connection, or bytes of
// heap for each end of a held connection.
func (c *Cost) Run(ctx context.Context) (r Sample, err error) {
	b, err := raise(ctx, end.Spec{
		Stack: c.Stack, Work: end.Work{Kind: c.Kind, For: c.For, Count: c.Count},
	}, Path{})
	if err != nil {
		return r, err
	}
	defer b.End()
	word := "cpu"
	holds := c.Kind == end.Hold || c.Kind == end.Used
	if holds {
		word = "usage"
	}
	before, err := b.used(word)
	if err != nil {
		return r, err
	}
	if err := b.Client.Tell("go"); err != nil {
		return r, err
	}
	done, err := b.Client.Await("done", c.For+readyTimeout+time.Duration(c.Count)*time.Millisecond)
	if err != nil {
		return r, err
	}
	after, err := b.used(word)
	if err != nil {
		return r, err
	}
	if done.Count == 0 {
		return r, fmt.Errorf("%s: no round was completed", c.Kind)
	}
	count := float64(done.Count)
	r.Rate = count / done.Took.Seconds()
	if !holds {
		busy := after[0].CPU + after[1].CPU - before[0].CPU - before[1].CPU
		r.Value = float64(busy.Nanoseconds()) / 1e3 / count
		return r, nil
	}
	r.Heap = after[0].Heap - before[0].Heap + after[1].Heap - before[1].Heap
	r.Value = math.Round(float64(r.Heap) / count / 2)
	r.Resident = after[0].Resident
	r.Goroutines = after[0].Goroutines - before[0].Goroutines
	return r, nil
}

// used asks the server and the client for the resources that they have used so far.
func (b *Bed) used(word string) (list [2]end.Usage, err error) {
	for i, c := range []*Child{b.Server, b.Client} {
		s, err := c.Ask(word, word)
		if err != nil {
			return list, err
		}
		list[i] = s.Usage
	}
	return list, nil
}
