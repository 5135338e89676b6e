package result

import (
	"math"
	"slices"
	"time"
)

// Digest summarizes a log as mahimahi's mm-throughput-graph does.
type Digest struct {
	Length time.Duration
	// Capacity, Ingress and Egress are in bits/s. Capacity is 0 if the log has no opportunities.
	Capacity, Ingress, Egress float64
	// Arrived, Departed and Dropped count packets, and DroppedBytes counts the bytes of the dropped
	// packets.
	Arrived, Departed, Dropped, DroppedBytes int
	// Wait50, Wait95 and Wait99 are percentiles of the queueing delay, each rounded down to a
	// sample.
	Wait50, Wait95, Wait99, WaitMax time.Duration
	// Signal95 is the 95th percentile of the signal delay: for each millisecond, the time until
	// data that was sent in it or later arrived.
	Signal95 time.Duration
}

// Digest summarizes the events of the link.
func (l *LinkRecord) Digest() Digest {
	first, last := l.Events[0].At, l.Events[len(l.Events)-1].At
	d := Digest{Length: last - first}
	var in, out, capacity float64
	var waits []time.Duration
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Kind {
		case Arrival:
			d.Arrived++
			in += float64(e.Bytes)
		case Departure:
			d.Departed++
			out += float64(e.Bytes)
			waits = append(waits, e.Wait)
		case Drop:
			d.Dropped++
			d.DroppedBytes += e.Bytes
		case Opportunity:
			capacity += float64(e.Bytes)
		case Marked:
		}
	}
	if s := d.Length.Seconds(); s > 0 {
		d.Capacity, d.Ingress, d.Egress = 8*capacity/s, 8*in/s, 8*out/s
	}
	d.Signal95 = signalDelay(l, first)
	if len(waits) > 0 {
		slices.Sort(waits)
		at := func(p int) time.Duration { return waits[min(len(waits)*p/100, len(waits)-1)] }
		d.Wait50, d.Wait95, d.Wait99, d.WaitMax = at(50), at(95), at(99), waits[len(waits)-1]
	}
	return d
}

// maxSignal limits the milliseconds whose signal delay is computed: four hours.
const maxSignal = 14_400_000

// signalDelay returns the 95th percentile of the signal delay. The delay of a millisecond is the
// minimum delay of the packets sent in it. Without packets, it is one more than the delay of the
// next millisecond.
func signalDelay(l *LinkRecord, first time.Duration) time.Duration {
	var least []int64
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != Departure {
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
