package simulation

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Path observes both directions of the bottleneck.
type Path struct {
	// Tallies has the tally of each flow, in order.
	Tallies []Tally

	began    clock.Time
	duration time.Duration
	warmup   time.Duration
	mtu      int
	v6       bool
	down, up *meter
	data     *meter // the direction of the data; down, if flows use both directions
}

// NewPath returns the path of an experiment. The run begins at began.
func NewPath(x *plan.Experiment, began clock.Time) *Path {
	p := &Path{
		began: began, duration: x.Duration, warmup: x.Warmup, mtu: x.Path.MTU, v6: x.Path.IPv6,
		Tallies: make([]Tally, len(x.Flows)),
	}
	p.down = &meter{path: p, name: "down", cfg: x.Path.Down}
	p.up = &meter{path: p, name: "up", cfg: x.Path.Up}
	p.data = p.up
	for i := range x.Flows {
		p.Tallies[i].to = Left
		if !x.Flows[i].Upward {
			p.Tallies[i].to = Right
			p.data = p.down
		}
	}
	return p
}

// Watch starts observing the links of both directions.
func (p *Path) Watch(down, up *netem.Link) {
	p.down.link, p.up.link = down, up
	down.Watch(p.down.event)
	up.Watch(p.up.event)
}

// Record records all events, including opportunities. Call it after Watch.
func (p *Path) Record() {
	for _, m := range []*meter{p.down, p.up} {
		m.recorder = newLinkRecorder(len(p.Tallies))
		m.link.WatchOpportunities(m.event)
	}
}

// EndWarmup ends the warm-up: it resets rates and queueing delays, but not the counts of packets.
func (p *Path) EndWarmup(now clock.Time) {
	p.down.endWarmup(now)
	p.up.endWarmup(now)
	for i := range p.Tallies {
		p.Tallies[i].Crossed = 0
	}
}

// Advance advances the links to now.
func (p *Path) Advance(now clock.Time) {
	p.down.link.Advance(now)
	p.up.link.Advance(now)
}

func (p *Path) since(t clock.Time) time.Duration { return t.Sub(p.began) }

// MeanRate returns the bottleneck's long-term rate in bit/s; 0 if there is no limit.
func (p *Path) MeanRate() float64 { return p.data.meanRate() }

// Result adds the measurements of the path. Losses are those of both directions. The other metrics
// describe the direction of the data.
func (p *Path) Result(now clock.Time, v result.Values) {
	m := p.data
	counts := m.link.Counters()
	v[result.Losses] = float64(p.down.link.Counters().Lost + p.up.link.Counters().Lost)
	v[result.QueueDrops] = float64(counts.QueueDropped + counts.Overflowed)
	v[result.Policed] = float64(counts.Policed)
	v[result.Marks] = float64(counts.Marked)
	if bits := m.capacity(p.warmup, p.since(now)); bits > 0 {
		v[result.Utilization] = m.used() / bits
	}
	if m.cfg.Rate != nil && m.waits.Count > 0 {
		v[result.QueueMean] = m.waits.Mean().Seconds()
		v[result.QueueP50] = m.waits.Percentile(.50).Seconds()
		v[result.QueueP95] = m.waits.Percentile(.95).Seconds()
		v[result.QueueMax] = m.waits.Max.Seconds()
	}
}

// Links returns the records of both directions, and notes about omitted events.
func (p *Path) Links(now clock.Time) (links []result.LinkRecord, notes []string) {
	for _, m := range []*meter{p.down, p.up} {
		l := result.LinkRecord{
			Name: m.name, Rate: m.meanRate(), Limit: m.limit(),
			Queue: describeQueue(m.cfg.Queue), Rates: m.rates(p.since(now)),
		}
		var most uint64
		if l.Events, most = m.recorder.events(); most > 0 {
			notes = append(notes, fmt.Sprintf(
				"%s: an event stands for up to %d packets, all but drops and marks", m.name, most))
		}
		links = append(links, l)
	}
	return links, notes
}
