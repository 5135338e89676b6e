package simulation

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

type meter struct {
	path     *Path
	name     string // direction: "down" or "up"
	cfg      netem.Config
	link     *netem.Link
	recorder *linkRecorder    // recording of the link; nil: the run is not recorded
	row      result.LinkEvent // reused for rows of the recorder
	// bytes and packets count what the link has sent since the warm-up. waits has queueing delays.
	bytes, packets uint64
	waits          Histogram
	waited         time.Duration // queueing delay of the packet in service
}

func (m *meter) endWarmup(now clock.Time) {
	m.link.Advance(now)
	m.bytes, m.packets, m.waits = 0, 0, Histogram{}
}

func (m *meter) event(e *netem.Event) {
	switch e.Kind {
	case netem.Arrive:
		p := m.parse(e)
		if p.flow >= 0 {
			m.path.Tallies[p.flow].count(&p)
		}
		m.tell(e, result.Arrival, &p)
	case netem.Serve:
		m.waited = e.Sojourn
		m.waits.Add(e.Sojourn)
	case netem.Depart:
		p := m.parse(e)
		m.packets++
		m.bytes += uint64(e.Size)
		if p.flow >= 0 {
			m.path.Tallies[p.flow].crossed(&p)
		}
		m.tell(e, result.Departure, &p)
	case netem.Drop, netem.Mark, netem.Opportunity:
		p := m.parse(e)
		if p.flow >= 0 && e.Kind == netem.Drop {
			m.path.Tallies[p.flow].Dropped++
		}
		m.tell(e, kinds[e.Kind], &p)
	}
}

// kinds maps netem's events to the kinds of events in records.
var kinds = [...]result.LinkEventKind{
	netem.Drop: result.Drop, netem.Mark: result.Marked, netem.Opportunity: result.Opportunity,
}

// reasons maps drop reasons to their names in records.
var reasons = [...]string{
	netem.Tail: "tail", netem.Head: "head", netem.Early: "early", netem.Limit: "limit",
	netem.Excess: "policer", netem.Model: "loss",
}

func (m *meter) parse(e *netem.Event) packetInfo {
	return parse(e.Data, len(m.path.Tallies), m.path.v6)
}

func (m *meter) tell(e *netem.Event, kind result.LinkEventKind, p *packetInfo) {
	if m.recorder == nil {
		return
	}
	row := &m.row
	*row = result.LinkEvent{
		At: m.path.since(e.At), Kind: kind, Flow: p.flow, Bytes: e.Size, Queued: e.Bytes,
	}
	switch kind {
	case result.Departure:
		row.Wait = m.waited
	case result.Drop:
		row.Why = reasons[e.Why]
	case result.Arrival, result.Marked, result.Opportunity:
	}
	m.recorder.add(row)
}

// limit returns the limit of a drop-tail or drop-head queue in bytes, where a packet counts as the
// MTU; 0: no limit, or another kind of queue.
func (m *meter) limit() int {
	switch m.cfg.Queue.(type) {
	case netem.DropTail, netem.DropHead:
		return plan.QueueBytes(m.cfg.Queue, m.path.mtu)
	}
	return 0
}
