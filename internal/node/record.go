package node

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// records are what is written down of a running node. The loop's.
type records struct {
	sampler *sampler // nil: none
	flushAt clock.Time
	observing
}

// flushPeriod is how long something written down may stay in memory, where a
// program that reads the file does not see it and a kill loses it.
const flushPeriod = time.Second

// wrote has what was written flushed before long.
func (r *records) wrote(now clock.Time) {
	if r.flushAt == clock.Never {
		r.flushAt = now.Add(flushPeriod)
	}
}

// flush has written what waits in memory. Errors stick, and are told in the end.
func (r *records) flush() {
	r.flushAt = clock.Never
	if r.sampler != nil && len(r.sampler.rows) > 0 {
		r.sampler.hand() // if there is no room, it is written soon all the same
	}
}

// tap is what the stack shows packets to while somebody looks.
func (n *Node) tap(
	now clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	if n.verbose.on() && reason == ip.DropNone {
		n.verboseSegment(dir, pieces)
	}
	if n.observed() {
		s := observe.Packet{Iface: i, Out: dir == stack.Outbound, Reason: reason}
		if !s.Out && n.stack.FromSelf() {
			s.Iface = observe.OwnFace
		}
		n.exhibit(now, s, pieces)
	}
	if n.cfg.Tap != nil {
		n.cfg.Tap(now, i, dir, reason, pieces)
	}
}

// retap has the stack show packets exactly while somebody looks. The loop's.
func (n *Node) retap() {
	if n.verbose.on() || n.observed() || n.cfg.Tap != nil {
		n.stack.SetTap(n.tap)
	} else {
		n.stack.SetTap(nil)
	}
	n.rewatch()
}

// openRecords opens what the configuration wants recorded from the start.
func (n *Node) openRecords() error {
	n.retap()
	for _, o := range n.cfg.Observers {
		if err := n.observe(o); err != nil {
			return err
		}
	}
	if n.cfg.Probe == "" {
		return nil
	}
	n.sampler = newSampler(n.cfg.Probe)
	if n.cfg.Drop != nil {
		return nil
	}
	return n.OpenProbe() // last: it has a goroutine, which ends with a node that is open
}

// OpenProbe opens the file of Config.Probe, if there is one. It is called once, after Config.Drop.
func (n *Node) OpenProbe() error {
	if n.sampler == nil {
		return nil
	}
	if err := n.sampler.open(n.cfg.Overwrite); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// closeRecords ends the records when the loop has stopped.
func (n *Node) closeRecords() error {
	if n.sampler == nil {
		return nil
	}
	return n.sampler.close()
}

// record writes down a connection's sample. The loop's.
func (n *Node) record(sid int, p *tcp.Info) {
	n.wrote(p.Time)
	n.sampler.add(sid, p)
}
