package play

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// meter watches one direction of the bottleneck.
type meter struct {
	run  *run
	name string // down or up
	cfg  netem.Config
	link *netem.Link
	tape *linkTape // nil: nothing is recorded
	// What has left its server since the warm-up ended, and how long it had waited.
	bytes, packets uint64
	waits          histogram
	waited         time.Duration // by the packet that its server has
}

// newMeter returns the meter of a direction that is to be as cfg says. What changes with time
// in it counts from the beginning of the run.
func newMeter(r *run, name string, cfg netem.Config) *meter {
	cfg.Origin = r.began
	return &meter{run: r, name: name, cfg: cfg}
}

// watch begins to watch the direction that leads away from a router.
func (m *meter) watch(router *sim.Host) {
	m.link = sim.End{Host: router}.Out()
	m.link.Watch(m.event)
}

// record has all that happens recorded, opportunities too.
func (m *meter) record() {
	m.tape = newLinkTape(len(m.run.flows))
	m.link.WatchOpportunities(m.event)
}

// warm forgets what was measured so far.
func (m *meter) warm() {
	m.link.Advance(m.run.Now())
	m.bytes, m.packets, m.waits = 0, 0, histogram{}
}

// event takes note of what happens.
func (m *meter) event(e *netem.Event) {
	switch e.Kind {
	case netem.Arrive:
		p := m.parse(e)
		if p.flow >= 0 {
			m.run.flows[p.flow].count(&p)
		}
		m.tell(e, result.Arrival, &p)
	case netem.Serve:
		m.waited = e.Sojourn
		m.waits.add(e.Sojourn)
	case netem.Depart:
		p := m.parse(e)
		m.packets++
		m.bytes += uint64(e.Size)
		if p.flow >= 0 {
			m.run.flows[p.flow].crossed(&p)
		}
		m.tell(e, result.Departure, &p)
	case netem.Drop, netem.Mark, netem.Opportunity:
		p := m.parse(e)
		if p.flow >= 0 && e.Kind == netem.Drop {
			m.run.flows[p.flow].dropped++
		}
		m.tell(e, kinds[e.Kind], &p)
	}
}

// kinds are the letters of mahimahi's logs for what is rare.
var kinds = [...]result.LinkEventKind{
	netem.Drop: result.Drop, netem.Mark: result.Marked, netem.Opportunity: result.Opportunity,
}

// reasons are what a record says of a drop.
var reasons = [...]string{
	netem.Tail: "tail", netem.Head: "head", netem.Early: "early", netem.Limit: "limit",
	netem.Excess: "policer", netem.Model: "loss",
}

func (m *meter) parse(e *netem.Event) parcel { return parse(e.Data, len(m.run.flows)) }

// tell records an event.
func (m *meter) tell(e *netem.Event, kind result.LinkEventKind, p *parcel) {
	if m.tape == nil {
		return
	}
	row := result.LinkEvent{
		At: m.run.since(e.At), Kind: kind, Flow: p.flow, Bytes: e.Size, Queued: e.Bytes,
	}
	switch kind {
	case result.Departure:
		row.Wait = m.waited
	case result.Drop:
		row.Why = reasons[e.Why]
	case result.Arrival, result.Marked, result.Opportunity:
	}
	m.tape.add(row)
}

// limit is how many bytes the queue has room for, 0 if it is not bounded in bytes.
func (m *meter) limit() int {
	switch q := m.cfg.Queue.(type) {
	case netem.DropTail:
		return queueLimit(q.Bytes, q.Packets, m.run.x.Path.MTU)
	case netem.DropHead:
		return queueLimit(q.Bytes, q.Packets, m.run.x.Path.MTU)
	}
	return 0
}

// queueLimit is the limit in bytes of a queue that has limits in bytes and in full packets.
func queueLimit(bytes, packets, mtu int) int {
	if packets > 0 && (bytes == 0 || packets*mtu < bytes) {
		return packets * mtu
	}
	return bytes
}
