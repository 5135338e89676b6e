package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/link"
)

// attach enters a device that the program brought into the node's books.
func (n *Node) attach(d link.Device, face link.Interface) error {
	a, ok := d.(link.Attacher)
	if !ok {
		return fmt.Errorf("node: interface %s: %T cannot be attached", face.Name, d)
	}
	if err := a.Attach(face.ID); err != nil {
		return fmt.Errorf("node: interface %s: %w", face.Name, err)
	}
	return n.addDevice(d, []link.Interface{face})
}

// inProcess reports whether all of the node's links are in this process.
func (n *Node) inProcess() bool {
	for i := range n.cfg.LNX.Interfaces {
		if n.cfg.Devices[n.cfg.LNX.Interfaces[i].Name] == nil {
			return false
		}
	}
	return true
}

// closeUnused closes the devices that a failed Open did not come to, but for one
// that has another node.
func (n *Node) closeUnused() {
	for _, d := range n.cfg.Devices {
		if a, ok := d.(link.Attacher); ok && !errors.Is(a.Attach(0), link.ErrAttached) {
			_ = d.Close() // nothing can be done about it
		}
	}
}

// startOf is the origin of a node's time.
func startOf(c *Clock) time.Time {
	if c != nil {
		return drivenEpoch
	}
	return time.Now()
}
