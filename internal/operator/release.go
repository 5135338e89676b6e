package operator

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/portforward"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Nodes that take ports from each other reload in two steps: each gives up what it is not to have
// any more, then each takes what it is to have. If one of them cannot, all go back the same way.

// releaseTime is how long a node waits for the second step before it takes back what it gave up.
const releaseTime = 30 * time.Second

// released is what a node has given up for a reload that is still to come. Under reload's lock.
type released struct {
	before *lnx.Config          // the file as it was when the first step was made; nil: none was
	faces  map[string]bool      // the interfaces that have no socket
	others []portforward.Change // what others gave up
	back   *time.Timer
}

// release is the first step.
func (l *reloading) release(r control.Reload) (control.Reloaded, error) {
	stays := map[string]bool{}
	for i := range l.now.Interfaces {
		stays[standsOn(&l.now.Interfaces[i])] = true
	}
	if !r.Undo {
		l.released.before = l.was
	}
	for _, c := range l.others {
		if !c.Frees {
			continue
		}
		if err := c.Do(); err != nil {
			return l.done, fmt.Errorf("reload: %s: %w", c.Text, err)
		}
		l.released.others = append(l.released.others, c)
		l.done.Changes = append(l.done.Changes, c.Text)
	}
	var faces []string
	err := l.node.Ask(func(*stack.Stack, clock.Time) error {
		faces = l.node.Devices.Unplug(stays, l.released.faces)
		return nil
	})
	if l.released.faces == nil {
		l.released.faces = map[string]bool{}
	}
	for _, name := range faces {
		l.released.faces[name] = true
		l.done.Changes = append(l.done.Changes, "gives up the UDP port of "+name)
	}
	l.awaitSecondStep()
	return l.done, err
}

// awaitSecondStep has the node take back what it gave up, unless the second step comes first.
func (d *Reloader) awaitSecondStep() {
	if d.released.back != nil {
		d.released.back.Stop()
	}
	d.released.back = time.AfterFunc(releaseTime, d.TakeBack)
}

// TakeBack takes what was given up and is needed yet. It happens by itself after releaseTime.
func (d *Reloader) TakeBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.released.faces)+len(d.released.others) == 0 {
		return
	}
	if d.node.Call(func(*stack.Stack, clock.Time) error { return nil }) != nil {
		return // it is closed
	}
	l, err := d.to(d.File())
	if err == nil {
		_, err = l.apply()
	}
	if err != nil {
		d.awaitSecondStep() // somebody has it, and may end
	}
}

// regained notes that the node is as a file says. One that stood before as it does now has others
// take back what they gave up.
func (d *Reloader) regained(now *lnx.Config) {
	if now == d.File() {
		undo(d.released.others)
	}
	d.released.faces, d.released.others = nil, nil
	if d.released.back != nil {
		d.released.back.Stop()
	}
}
