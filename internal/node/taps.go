package node

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Taps are what watches the packets and connections of a node: observers (captures and traces),
// the connections' flight recorders, verbose sockets, and the file of samples. The fields are the
// loop's.
type Taps struct {
	node      *Node
	observers []*observe.Observer
	backlog   observe.Backlog
	flights   flights
	verbose   verbosity
	sampler   *sampler // nil: none

	header [capture.HeaderBytes]byte // of the packet that is shown
	facts  capture.Facts             // about it
}

// tap is what the stack shows packets to while something watches.
func (t *Taps) tap(
	now clock.Time, i int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	if t.verbose.on() && reason == ip.DropNone {
		t.verboseSegment(dir, pieces)
	}
	if t.observed() {
		s := observe.Packet{Iface: i, Out: dir == stack.Outbound, Reason: reason}
		if !s.Out && t.node.stack.FromSelf() {
			s.Iface = observe.OwnFace
		}
		t.exhibit(now, s, pieces)
	}
	if t.node.cfg.Tap != nil {
		t.node.cfg.Tap(now, i, dir, reason, pieces)
	}
}

// retap has the stack show packets exactly while something watches. The loop's.
func (t *Taps) retap() {
	if t.verbose.on() || t.observed() || t.node.cfg.Tap != nil {
		t.node.stack.SetTap(t.tap)
	} else {
		t.node.stack.SetTap(nil)
	}
	t.rewatch()
}

// open starts what the configuration wants from the start.
func (t *Taps) open() error {
	t.retap()
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
	return t.OpenProbe() // last: it has a goroutine, which ends with a node that is open
}

// OpenProbe opens the file of Config.Probe, if there is one. It is called once, after Config.Drop.
func (t *Taps) OpenProbe() error {
	if t.sampler == nil {
		return nil
	}
	if err := t.sampler.open(t.node.cfg.Overwrite); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// due is when settle has samples to flush.
func (t *Taps) due() clock.Time {
	if t.sampler == nil {
		return clock.Never
	}
	return t.sampler.flushAt
}

// settle ends an iteration of the loop: observers get what they were shown, and samples that have
// waited for long are written.
func (t *Taps) settle(now clock.Time) {
	if t.due().Due(now) {
		t.sampler.flush()
	}
	for _, o := range t.observers {
		o.Settle()
	}
}

// stop ends the observers: the loop shows nothing more.
func (t *Taps) stop() {
	for _, o := range t.observers {
		o.End()
	}
	t.observers = nil
}

// close writes the samples that are left. The loop has ended.
func (t *Taps) close() error {
	if t.sampler == nil {
		return nil
	}
	return t.sampler.close()
}
