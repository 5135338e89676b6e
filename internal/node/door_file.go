package node

import (
	"context"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// openFileDoors opens the doors that the file asks for. If one cannot be, none is left open.
func (n *Node) openFileDoors() error {
	for i := range n.cfg.LNX.Doors {
		if err := n.openFileDoor(n.cfg.LNX, &n.cfg.LNX.Doors[i]); err != nil {
			return err
		}
	}
	return nil
}

// openFileDoor opens one of them; an error has its place.
func (n *Node) openFileDoor(c *lnx.Config, d *lnx.Door) error {
	_, err := n.outsideRequest(doorOf(d))
	if err == nil {
		return nil
	}
	if at := c.AtDoor(d, err.Error(), ""); at != nil {
		return &mapped{error: at, also: []error{err}}
	}
	return err
}

// doorOf is a file's door as a request.
func doorOf(d *lnx.Door) any {
	switch d.Kind {
	case lnx.DoorExpose:
		return control.Expose{Port: d.Port, To: d.To.String(), UDP: d.UDP}
	case lnx.DoorSplice:
		to, _ := netip.ParseAddr(d.To.Host) // lnx has seen that it is one
		return control.Splice{Addr: d.Addr, To: to}
	}
	to, _ := d.To.AddrPort()
	return control.Publish{Port: d.Port, On: d.On(), To: to, UDP: d.UDP}
}

// checkDoorsHere tells which ports of this machine a file's doors cannot have.
func checkDoorsHere(ctx context.Context, c *lnx.Config) (list lnx.Errors) {
	var config net.ListenConfig
	for i := range c.Doors {
		d := &c.Doors[i]
		if d.Kind != lnx.DoorPublish {
			continue
		}
		at := netip.AddrPortFrom(d.On(), d.Port).String()
		var open interface{ Close() error }
		var err error
		if d.UDP {
			open, err = config.ListenPacket(ctx, "udp", at)
		} else {
			open, err = config.Listen(ctx, "tcp", at)
		}
		if err == nil {
			_ = open.Close() // it was only to see whether it can be had
			continue
		}
		if e := c.AtDoor(d, "publish "+at+": "+machineError(err).Error(), ""); e != nil {
			list = append(list, e)
		}
	}
	return list
}
