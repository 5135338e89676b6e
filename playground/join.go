package playground

import (
	"fmt"
	"slices"

	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// join makes the program the other end of a link.
func (w *World) join(c *lnx.Config, iface string, end *link.End) {
	i := slices.IndexFunc(c.Interfaces, func(f lnx.Interface) bool { return f.Name == iface })
	if w.links == nil {
		w.links = map[int]*link.End{}
	}
	w.links[i] = end
	w.busy.Go(func() {
		packet := make([]byte, 1<<16)
		for {
			n, err := end.Read(packet)
			if err != nil {
				return
			}
			w.cfg.Send(i, packet[:n])
		}
	})
}

// Receive passes a packet from outside to an interface of a joined network's node.
func (w *World) Receive(iface int, packet []byte) error {
	l := w.links[iface]
	if l == nil {
		return fmt.Errorf("interface %d has no link to another network", iface)
	}
	if _, err := l.Write(packet); err != nil {
		return fmt.Errorf("interface %d: %w", iface, err)
	}
	w.Settle()
	return nil
}
