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

// Nodes that exchange ports reload in two steps: first each node closes the ports that it gives up,
// and then each opens its new ones. If a node fails, all undo the first step.

// releaseTime limits the wait for the second step. A node that gets no second step takes back its
// ports.
const releaseTime = 30 * time.Second

// released records what a node has released in the first step. Reloader.mu guards it.
type released struct {
	before *lnx.Config          // file before the first step; nil: there was no first step
	faces  map[string]bool      // interfaces whose sockets were closed
	others []portforward.Change // changes by which services have released ports
	back   *time.Timer
}

// release makes the first step.
func (l *reloading) release(r control.Reload) (control.Reloaded, error) {
	stays := map[string]bool{}
	for i := range l.now.Interfaces {
		stays[linkName(&l.now.Interfaces[i])] = true
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
		faces = l.node.Devices.CloseSockets(stays, l.released.faces)
		return nil
	})
	if l.released.faces == nil {
		l.released.faces = map[string]bool{}
	}
	for _, name := range faces {
		l.released.faces[name] = true
		l.done.Changes = append(l.done.Changes, "released: UDP port of "+name)
	}
	l.awaitSecondStep()
	return l.done, err
}

// awaitSecondStep calls TakeBack after releaseTime, unless the second step comes first.
func (d *Reloader) awaitSecondStep() {
	if d.released.back != nil {
		d.released.back.Stop()
	}
	d.released.back = time.AfterFunc(releaseTime, d.TakeBack)
}

// TakeBack takes back everything that was released and is still needed.
func (d *Reloader) TakeBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.released.faces)+len(d.released.others) == 0 {
		return
	}
	if d.node.Call(func(*stack.Stack, clock.Time) error { return nil }) != nil {
		return // the node is closed
	}
	l, err := d.to(d.File())
	if err == nil {
		_, err = l.apply()
	}
	if err != nil {
		d.awaitSecondStep() // a port is in use: try again later
	}
}

// regained ends the first step once the node matches its file. If the file is the old one, services
// take back what they released.
func (d *Reloader) regained(now *lnx.Config) {
	if now == d.File() {
		undo(d.released.others)
	}
	d.released.faces, d.released.others = nil, nil
	if d.released.back != nil {
		d.released.back.Stop()
	}
}
