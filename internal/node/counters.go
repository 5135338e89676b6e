package node

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// clearCounters carries out control.ClearCounters. A device goes on counting: what it had
// counted by now is taken off whatever it says.
func (n *Node) clearCounters(r control.ClearCounters) error {
	which, err := n.faces(r.Iface)
	if err != nil {
		return err
	}
	return ControlError(n.call(func(clock.Time) {
		for _, i := range which {
			n.stack.ClearCounters(i)
			if m := n.impairingOf(i); m != nil {
				m.device.Clear(i)
			}
			if d, ok := bare(n.devices[n.ifaceDevice[i]]).(realDevice); ok {
				if n.cleared == nil {
					n.cleared = map[int]link.Counters{}
				}
				n.cleared[i] = d.Counters(i)
			}
		}
	}))
}

// deviceCounters is what an interface's device has counted since they were cleared.
func (n *Node) deviceCounters(i int, d realDevice) link.Counters {
	c := d.Counters(i)
	if before, ok := n.cleared[i]; ok {
		c.Sub(&before)
	}
	return c
}
