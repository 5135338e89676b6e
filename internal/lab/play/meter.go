package play

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// meter watches one direction of the bottleneck.
type meter struct {
	run *run
	cfg *netem.Config
	// What has left its server since the warm-up ended, and how long it had waited.
	bytes, packets uint64
	waits          histogram
}

func newMeter(r *run, cfg *netem.Config) *meter { return &meter{run: r, cfg: cfg} }

// warm forgets what was measured so far.
func (m *meter) warm() {
	m.bytes, m.packets, m.waits = 0, 0, histogram{}
}

// config is the direction's, with a queue that is watched.
func (m *meter) config() netem.Config {
	cfg := *m.cfg
	if cfg.Rate != nil {
		if cfg.Queue == nil {
			cfg.Queue = netem.DropTail{}
		}
		cfg.Queue = watchedDiscipline{cfg.Queue, m}
	}
	return cfg
}

// watch has the router's packets for the bottleneck counted.
func (m *meter) watch(router *sim.Host) {
	router.Tap(func(now clock.Time, iface int, dir stack.Direction,
		reason ip.DropReason, pieces [][]byte,
	) {
		if iface == 0 && dir == stack.Outbound && reason == ip.DropNone {
			m.arrive(now, pieces[0])
		}
	})
}

// arrive takes note of a packet that comes to the bottleneck.
func (m *meter) arrive(now clock.Time, packet []byte) {
	p := parse(packet, len(m.run.flows))
	if p.flow >= 0 {
		m.run.flows[p.flow].count(&p)
	}
	if m.cfg.Rate == nil {
		m.depart(now, packet, 0)
	}
}

// depart takes note of a packet that its server begins to send.
func (m *meter) depart(_ clock.Time, packet []byte, wait time.Duration) {
	p := parse(packet, len(m.run.flows))
	m.packets++
	m.bytes += uint64(p.size)
	m.waits.add(wait)
	if p.flow >= 0 {
		m.run.flows[p.flow].crossed(&p)
	}
}

// watchedDiscipline is a discipline whose departures a meter hears of.
type watchedDiscipline struct {
	netem.Discipline
	meter *meter
}

func (d watchedDiscipline) Start(site netem.Site) netem.Queue {
	return &watchedQueue{d.Discipline.Start(site), d.meter}
}

type watchedQueue struct {
	netem.Queue
	meter *meter
}

func (q *watchedQueue) Take(now clock.Time) *netem.Packet {
	p := q.Queue.Take(now)
	if p != nil {
		q.meter.depart(now, p.Bytes(), now.Sub(p.Entered()))
	}
	return p
}
