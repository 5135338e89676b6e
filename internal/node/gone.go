package node

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// failed notes what a device said. One that was deleted is taken down at the end of
// the turn: now the stack may have lent memory.
func (n *Node) failed(token int, err error) {
	if errors.Is(err, link.ErrGone) {
		n.gone = appendToken(n.gone, token)
		return
	}
	n.say("node: %v", err)
}

// takeDown takes down the interfaces whose device was deleted, so that nobody routes
// over them, and tells the operator once.
func (n *Node) takeDown(now clock.Time) {
	if len(n.gone) == 0 {
		return
	}
	for _, token := range n.gone {
		n.blocked[token] = false // the descriptor is closed
		for i, d := range n.ifaceDevice {
			if d != token {
				continue
			}
			n.stack.SetUp(now, i, false)
			n.say("%s is down: %s", n.cfg.LNX.Interfaces[i].Name, n.Problem(i))
		}
	}
	n.gone = n.gone[:0]
	n.Drain(now) // what RIP has to say of it
}

// Problem is why nothing leaves by an interface although nobody took it down.
func (n *Node) Problem(i int) string {
	d, ok := bare(n.devices[n.ifaceDevice[i]]).(*link.TUN)
	f := &n.cfg.LNX.Interfaces[i]
	switch {
	case ok && d.Gone():
		return fmt.Sprintf("%v was deleted; `up %s` opens or makes it anew", UnderneathOf(f),
			f.Name)
	case ok && d.Down() && n.stack.Interfaces().Up(i) && f.Tun.Kernel.IsValid():
		return fmt.Sprintf("%v is not up; `up %s` brings it up, with what the file says of it",
			UnderneathOf(f), f.Name)
	case ok && d.Down() && n.stack.Interfaces().Up(i):
		return fmt.Sprintf("%v is not up; on this machine: sudo ip link set %s up", UnderneathOf(f),
			f.Tun.Device)
	}
	return ""
}

// Reopen opens the device of an interface once more if it was deleted, and brings the
// kernel's end up if that is down. It waits for the kernel.
func (n *Node) Reopen(i int) error {
	var d *link.TUN
	gone, down, ok, token := false, false, false, 0
	err := n.Ask(func(*stack.Stack, clock.Time) error {
		token = n.ifaceDevice[i]
		if d, ok = bare(n.devices[token]).(*link.TUN); ok {
			gone, down = d.Gone(), d.Down()
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !ok:
		return nil
	case down && !gone:
		return n.raise(d)
	case !gone:
		return nil
	}
	fresh, err := d.Anew()
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrInterfaceDown, err)
	}
	taken := false
	err = n.Ask(func(*stack.Stack, clock.Time) error {
		if taken = d.Gone(); !taken {
			return nil
		}
		d.Replace(fresh)
		return n.watch(n.devices[token], token)
	})
	if !taken {
		_ = fresh.Close() // the node has ended
	}
	return err
}

// raise has the kernel's end of a device brought up, and told its routes again.
func (n *Node) raise(d *link.TUN) error {
	err := d.Raise()
	return n.Ask(func(*stack.Stack, clock.Time) error {
		if err == nil && !d.Gone() {
			err = d.Raised()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", control.ErrInterfaceDown, err)
		}
		return nil
	})
}
