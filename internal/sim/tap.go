package sim

import (
	"io"
	"slices"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Tap adds an observer of the packets that the host receives, sends or drops. It does not change
// the run.
func (h *Host) Tap(tap stack.Tap) {
	h.taps = append(h.taps, tap)
	h.stack.SetTap(h.tapped)
}

func (h *Host) tapped(
	now clock.Time, iface int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
) {
	for _, tap := range h.taps {
		tap(now, iface, dir, reason, pieces)
	}
}

// Capture writes the host's packets to w as pcapng, with at most snaplen bytes of each (0: all).
// Times count from the beginning of the world. If ifaces are given, only their packets are
// written. A router's capture of all interfaces has each packet twice, and readers show the second
// one as a retransmission. The caller must call Flush at the end, which returns errors of w.
func (h *Host) Capture(w io.Writer, snaplen int, ifaces ...int) (*capture.Writer, error) {
	c, err := capture.New(w, h.faces, snaplen)
	if err != nil {
		return nil, err
	}
	h.Tap(func(
		now clock.Time, iface int, dir stack.Direction, reason ip.DropReason, pieces [][]byte,
	) {
		if len(ifaces) > 0 && !slices.Contains(ifaces, iface) {
			return
		}
		at, way := int64(now-origin), capture.Inbound
		if dir == stack.Outbound {
			way = capture.Outbound
		}
		if reason == ip.DropNone {
			_ = c.Packet(at, iface, way, "", pieces...) // Flush returns the error
			return
		}
		_ = c.Drop(at, iface, way, reason.String(), pieces...)
	})
	return c, nil
}
