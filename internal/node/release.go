package node

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Nodes that take ports from each other reload in two steps: each gives up what it is not to have
// any more, then each takes what it is to have. If one of them cannot, all go back the same way.

// releaseTime is how long a node waits for the second step before it takes back what it gave up.
const releaseTime = 30 * time.Second

// released is what a node has given up for a reload that is still to come. Under reload's lock.
type released struct {
	before *lnx.Config     // the file as it was when the first step was made; nil: none was
	faces  map[string]bool // the interfaces that have no socket
	others []Change        // what others gave up
	back   *time.Timer
}

// release is the first step.
func (l *reloading) release(r control.Reload) (control.Reloaded, error) {
	n := l.node
	stays := map[string]bool{}
	for i := range l.now.Interfaces {
		stays[underneath(&l.now.Interfaces[i])] = true
	}
	if !r.Undo {
		n.released.before = n.file
	}
	for _, c := range l.more {
		if !c.Frees {
			continue
		}
		if err := c.Do(); err != nil {
			return l.done, fmt.Errorf("reload: %s: %w", c.Text, err)
		}
		n.released.others = append(n.released.others, c)
		l.done.Changes = append(l.done.Changes, c.Text)
	}
	var faces []string
	err := n.call(func(clock.Time) { faces = n.unplugBut(stays) })
	if n.released.faces == nil {
		n.released.faces = map[string]bool{}
	}
	for _, name := range faces {
		n.released.faces[name] = true
		l.done.Changes = append(l.done.Changes, "gives up the UDP port of "+name)
	}
	n.awaitSecondStep()
	return l.done, ControlError(err)
}

// unplugBut closes the UDP sockets but those of some addresses, and returns the interfaces that
// have none now. The loop's.
func (n *Node) unplugBut(stays map[string]bool) (names []string) {
	for i, token := range n.ifaceDevice {
		f := &n.cfg.LNX.Interfaces[i]
		if f.Name == "" || n.released.faces[f.Name] || stays[underneath(f)] {
			continue
		}
		d := bare(n.devices[token])
		if _, udp := d.(*link.UDP); !udp && d != (unplugged{}) {
			continue
		}
		names = append(names, f.Name)
		if d == (unplugged{}) {
			continue // one socket for several
		}
		_ = d.Close() // nothing can be done about it
		n.blocked[token] = false
		if n.devices[token] == d {
			n.devices[token] = unplugged{}
		}
		if m := n.impairingOf(i); m != nil {
			var lanes []link.Impairment
			for _, face := range m.faces {
				lanes = append(lanes, link.Impairment{Iface: face})
			}
			_ = m.device.Carry(unplugged{}, lanes...) // it has them all
		}
	}
	return names
}

// awaitSecondStep has the node take back what it gave up, unless the second step comes first.
func (n *Node) awaitSecondStep() {
	if n.released.back != nil {
		n.released.back.Stop()
	}
	n.released.back = time.AfterFunc(releaseTime, n.takeBack)
}

// takeBack takes what was given up and is needed yet.
func (n *Node) takeBack() {
	n.reload.Lock()
	defer n.reload.Unlock()
	if len(n.released.faces)+len(n.released.others) == 0 {
		return
	}
	if n.call(func(clock.Time) {}) != nil {
		return // it is closed
	}
	if _, err := n.reloadingTo(n.file, nil).apply(); err != nil {
		n.awaitSecondStep() // somebody has it, and may end
	}
}

// regained notes that the node is as a file says. One that stood before as it does now has others
// take back what they gave up.
func (n *Node) regained(now *lnx.Config) {
	if now == n.file {
		undo(n.released.others)
	}
	n.released.faces, n.released.others = nil, nil
	if n.released.back != nil {
		n.released.back.Stop()
	}
}
