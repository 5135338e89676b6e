package node

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Taps are the observers of packets and connections: captures and traces, flight recorders, verbose
// sockets, and the file of samples. The fields are loop only.
type Taps struct {
	node      *Node
	observers []*observe.Observer
	backlog   observe.Backlog
	flights   flights
	verbose   verbosity
	sampler   *sampler // writer of the sample file; nil: no file

	header [capture.HeaderBytes]byte // header of the current packet
	facts  capture.Facts             // facts about the current packet
}

// tap receives each packet from the stack while there are observers.
func (t *Taps) tap(
	now clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	if t.verbose.on() && reason == ip.DropNone {
		t.verboseSegment(i, dir, pieces)
	}
	if t.observed() {
		s := observe.Packet{Iface: i, Out: dir == stack.Outbound, Reason: reason}
		if !s.Out && t.node.stack.FromSelf() {
			s.Iface = observe.OwnIface
		}
		t.showPieces(now, s, pieces)
	}
	if t.node.cfg.Tap != nil {
		t.node.cfg.Tap(now, i, dir, reason, pieces)
	}
}

// Sent returns a tap that calls f with each packet that the node sends.
func Sent(f func(iface int, pieces [][]byte)) stack.Tap {
	return func(_ clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte) {
		if dir == stack.Outbound && reason == ip.DropNone && i >= 0 {
			f(i, pieces)
		}
	}
}

// updateTap enables the stack's tap while there are observers. Loop only.
func (t *Taps) updateTap() {
	if t.verbose.on() || t.observed() || t.node.cfg.Tap != nil {
		t.node.stack.SetTap(t.tap)
	} else {
		t.node.stack.SetTap(nil)
	}
	t.rewatch()
}

// open starts the observers of the configuration.
func (t *Taps) open() error {
	t.updateTap()
	for _, o := range t.node.cfg.Observers {
		if err := t.observe(o); err != nil {
			return err
		}
	}
	if t.node.cfg.Probe == "" {
		return nil
	}
	t.sampler = newSampler(t.node.cfg.Probe)
	if t.node.cfg.Drop != nil {
		return nil
	}
	return t.OpenProbe() // must be last: its goroutine ends only when an open node closes
}

// OpenProbe opens the file of Config.Probe, if any. It is called once, after Config.Drop.
func (t *Taps) OpenProbe() error {
	if t.sampler == nil {
		return nil
	}
	if err := t.sampler.open(t.node.cfg.Overwrite); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// due returns when endIteration must write samples, or never.
func (t *Taps) due() clock.Time {
	if t.sampler == nil {
		return clock.Never
	}
	return t.sampler.flushAt
}

// endIteration ends an iteration. Observers receive the packets of the iteration, and old samples
// are written.
func (t *Taps) endIteration(now clock.Time) {
	if t.due().Due(now) {
		t.sampler.flush()
	}
	for _, o := range t.observers {
		o.Flush()
	}
}

// stop ends all observers.
func (t *Taps) stop() {
	for _, o := range t.observers {
		o.End()
	}
	t.observers = nil
}

// close writes the remaining samples, after the loop has ended.
func (t *Taps) close() error {
	if t.sampler == nil {
		return nil
	}
	return t.sampler.close()
}
