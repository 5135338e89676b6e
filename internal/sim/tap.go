package sim

import (
	"io"
	"slices"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Tap shows tap each packet as it arrives at the host, leaves it, or is dropped by it,
// beside those who look already. It does not change what happens.
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

// Capture writes the host's packets to w from now on, as pcapng, of each at most snaplen
// bytes (0: all). Its times are how long the world has existed, so that they are those of
// every other record of the run. If interfaces are named, it is their packets alone: a
// router's capture has each packet twice, on its way in and out, and who reads it takes
// the second for a retransmission. What w says to a write is the error of Flush, which
// whoever captures calls at the end.
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
			_ = c.Packet(at, iface, way, "", pieces...) // Flush has the error
			return
		}
		_ = c.Drop(at, iface, way, reason.String(), pieces...)
	})
	return c, nil
}
