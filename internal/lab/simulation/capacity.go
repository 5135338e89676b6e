package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// capacity returns the number of bits that the direction could have sent in a part of the run, or 0
// if there is no limit.
func (m *meter) capacity(from, to time.Duration) float64 {
	if m.cfg.Rate == nil || to <= from {
		return 0
	}
	switch rate := m.cfg.Rate.(type) {
	case netem.Schedule:
		bits := 0.0
		rate.Each(to, func(rate netem.BitsPerSecond, begin, end time.Duration) {
			if begin = max(begin, from); begin < end {
				bits += float64(float64(rate) * (end - begin).Seconds())
			}
		})
		return bits
	case netem.Opportunities:
		return float64(opportunities(&rate, to)-opportunities(&rate, from)) *
			netem.OpportunityBytes * 8
	}
	return float64(m.cfg.Rate.MeanRate()) * (to - from).Seconds()
}

// used returns how much of the capacity was used, in bits, including the link's overhead per
// packet.
func (m *meter) used() float64 {
	extra := m.cfg.Overhead
	if _, ok := m.cfg.Rate.(netem.Opportunities); ok {
		extra += netem.OpportunityOverhead
	}
	return float64(m.bytes+m.packets*uint64(extra)) * 8
}

// meanRate returns the direction's long-term rate in bit/s; 0 if there is no limit.
func (m *meter) meanRate() float64 {
	if m.cfg.Rate == nil {
		return 0
	}
	return m.capacity(0, m.path.duration) / m.path.duration.Seconds()
}

// opportunities counts a trace's opportunities before a time, and those exactly at that time.
func opportunities(o *netem.Opportunities, until time.Duration) int {
	period, laps := o.At[len(o.At)-1], 0
	if !o.Once {
		laps = int(until / period)
		until %= period
	}
	n, _ := slices.BinarySearch(o.At, until+1)
	return laps*len(o.At) + n
}

// maxRates limits the rate changes in a record.
const maxRates = 1 << 12

func (m *meter) rates(until time.Duration) []result.Point {
	s, ok := m.cfg.Rate.(netem.Schedule)
	if !ok {
		return nil
	}
	var all []result.Point
	s.Each(until, func(r netem.BitsPerSecond, begin, _ time.Duration) {
		if len(all) < maxRates {
			all = append(all, result.Point{At: begin, Value: float64(r)})
		}
	})
	return all
}

// maxMarks limits the number of marked rate changes: more would clutter the figure.
const maxMarks = 32

// Marks returns the end of the warm-up and the times of rate changes.
func (p *Path) Marks(now clock.Time) []result.Mark {
	var all []result.Mark
	for _, m := range []*meter{p.down, p.up} {
		rates := m.rates(p.since(now))
		if len(rates) > maxMarks {
			continue
		}
		for _, r := range rates[min(1, len(rates)):] {
			u := result.ScaleOf(result.Rate, r.Value)
			text := fmt.Sprintf("%s %.4g %s", m.name, u.Of(r.Value), u.Name)
			all = append(all, result.Mark{At: r.At, Text: text})
		}
	}
	if w := p.warmup; w > 0 && w < p.since(now) {
		all = append(all, result.Mark{At: w, Text: "measured from here"})
	}
	slices.SortStableFunc(all, func(a, b result.Mark) int { return cmp.Compare(a.At, b.At) })
	return all
}

// describeQueue describes a queue in the form of mahimahi's logs. It also describes queues that
// mahimahi does not have.
func describeQueue(d netem.Discipline) string {
	name, b := plan.QueueBound(d)
	var limits []string
	if b.Bytes > 0 {
		limits = append(limits, fmt.Sprintf("bytes=%d", b.Bytes))
	}
	if b.Packets > 0 {
		limits = append(limits, fmt.Sprintf("packets=%d", b.Packets))
	}
	if b.Time > 0 {
		limits = append(limits, fmt.Sprintf("time=%dms", b.Time/time.Millisecond))
	}
	if len(limits) == 0 {
		if name == "droptail" {
			return "infinite"
		}
		return name
	}
	return name + " [" + strings.Join(limits, ", ") + "]"
}
