package trace

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Digest is what a log comes to, as mahimahi's mm-throughput-graph has it.
type Digest struct {
	Length time.Duration
	// Capacity, Ingress and Egress are in bits a second; a capacity of 0: the log does not tell.
	Capacity, Ingress, Egress float64
	// Arrived, Departed and Dropped are packets, and DroppedBytes what those were.
	Arrived, Departed, Dropped, DroppedBytes int
	// Wait50, Wait95 and Wait99 are how long packets were in the link: the value at that share of
	// them in order, rounded down.
	Wait50, Wait95, Wait99, WaitMax time.Duration
	// Signal95 is the same of the signal delay: how long it took what was sent at each millisecond,
	// or the first after it, to be there.
	Signal95 time.Duration
}

// Look looks at a log.
func Look(l *result.LinkRecord) Digest {
	first, last := l.Events[0].At, l.Events[len(l.Events)-1].At
	d := Digest{Length: last - first}
	var in, out, could float64
	var waits []time.Duration
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Kind {
		case result.Arrival:
			d.Arrived++
			in += float64(e.Bytes)
		case result.Departure:
			d.Departed++
			out += float64(e.Bytes)
			waits = append(waits, e.Wait)
		case result.Drop:
			d.Dropped++
			d.DroppedBytes += e.Bytes
		case result.Opportunity:
			could += float64(e.Bytes)
		case result.Marked:
		}
	}
	if s := d.Length.Seconds(); s > 0 {
		d.Capacity, d.Ingress, d.Egress = 8*could/s, 8*in/s, 8*out/s
	}
	d.Signal95 = signal(l, first)
	if len(waits) > 0 {
		slices.Sort(waits)
		at := func(p int) time.Duration { return waits[min(len(waits)*p/100, len(waits)-1)] }
		d.Wait50, d.Wait95, d.Wait99, d.WaitMax = at(50), at(95), at(99), waits[len(waits)-1]
	}
	return d
}

// maxSignal bounds the milliseconds that signal delays are looked at for: four hours.
const maxSignal = 14_400_000

// signal is the 95 % of the signal delays. For each millisecond it is the least delay of what was
// sent then, and one more than that of the next millisecond where nothing was.
func signal(l *result.LinkRecord, first time.Duration) time.Duration {
	var least []int64
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != result.Departure {
			continue
		}
		sent := (e.At - e.Wait - first).Milliseconds()
		if sent < 0 || sent >= maxSignal {
			continue
		}
		for int64(len(least)) <= sent {
			least = append(least, math.MaxInt64)
		}
		least[sent] = min(least[sent], e.Wait.Milliseconds())
	}
	if len(least) == 0 {
		return 0
	}
	for i := len(least) - 2; i >= 0; i-- {
		if least[i] == math.MaxInt64 {
			least[i] = least[i+1] + 1
		}
	}
	slices.Sort(least)
	return time.Duration(least[len(least)*95/100]) * time.Millisecond
}
