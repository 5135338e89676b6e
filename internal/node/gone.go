package node

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// failed handles a device's error. If the device was deleted, takeDown takes it down at the end of
// the iteration, because the stack may still use its memory now.
func (ds *Devices) failed(token int, err error) {
	if errors.Is(err, link.ErrGone) {
		ds.gone = appendToken(ds.gone, token)
		return
	}
	ds.node.Watchers.Printf("node: %v", err)
}

// takeDown takes down the interfaces whose device was deleted, and reports each.
func (ds *Devices) takeDown(now clock.Time) {
	if len(ds.gone) == 0 {
		return
	}
	for _, token := range ds.gone {
		if ds.guest.device != nil && token == ds.guest.token {
			ds.removeGuest()
		}
		ds.blocked[token] = false // the descriptor is closed
		for i, d := range ds.byIface {
			if d != token {
				continue
			}
			ds.node.stack.SetUp(now, i, false)
			ds.node.Watchers.Printf("%s is down: %s", ds.node.IfaceName(i), ds.Problem(i))
		}
	}
	ds.gone = ds.gone[:0]
	ds.Drain(now) // RIP sends its withdrawals
}

// Problem returns the reason why packets cannot leave through an interface that is up, or "".
func (ds *Devices) Problem(i int) string {
	d, ok := unimpaired(ds.list[ds.byIface[i]]).(*link.TUN)
	l, name := &ds.node.cfg.Links[i], ds.node.IfaceName(i)
	switch {
	case ok && d.Gone():
		return fmt.Sprintf("%v was deleted; `up %s` opens or creates it again", l, name)
	case ok && d.Down() && ds.node.stack.Interfaces().Up(i) && len(l.TUN.Kernel) > 0:
		return fmt.Sprintf("%v is not up; `up %s` brings it up, with its addresses and routes", l,
			name)
	case ok && d.Down() && ds.node.stack.Interfaces().Up(i):
		return fmt.Sprintf("%v is not up; on this machine: sudo ip link set %s up", l,
			l.TUN.Device)
	}
	return ""
}

// Reopen opens an interface's device again after it was deleted, and brings up the kernel's end. It
// blocks.
func (ds *Devices) Reopen(i int) error {
	var d *link.TUN
	gone, down, ok, token := false, false, false, 0
	err := ds.node.Ask(func(*stack.Stack, clock.Time) error {
		token = ds.byIface[i]
		if d, ok = unimpaired(ds.list[token]).(*link.TUN); ok {
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
		return ds.bringUp(d)
	case !gone:
		return nil
	}
	fresh, err := d.Reopen()
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrInterfaceDown, err)
	}
	taken := false
	err = ds.node.Ask(func(*stack.Stack, clock.Time) error {
		if taken = d.Gone(); !taken {
			return nil
		}
		d.Replace(fresh)
		return ds.watch(ds.list[token], token)
	})
	if !taken {
		_ = fresh.Close() // the node is closed, or another call has reopened the device
	}
	return err
}

// bringUp brings up the kernel's end of a TUN device and sets its routes again.
func (ds *Devices) bringUp(d *link.TUN) error {
	err := d.Raise()
	return ds.node.Ask(func(*stack.Stack, clock.Time) error {
		if err == nil && !d.Gone() {
			err = d.Raised()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", control.ErrInterfaceDown, err)
		}
		return nil
	})
}
