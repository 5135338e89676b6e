package node

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// guest is a kernel that shares the node's addresses through a TUN device. It belongs to no
// interface.
type guest struct {
	device  *link.TUN // device of the guest; nil: no guest
	token   int
	packets [][]byte        // packets that are borrowed until they are sent
	checked bool            // the checksums of packets are correct
	train   [1]buffer.Train // packets as one train
}

// ErrGuest means that programs already run as this host.
var ErrGuest = errors.New("another kernel has this host's addresses")

// Guest lets a kernel send and receive packets with the node's addresses. The node closes the
// device when the guest is gone or the node closes.
func (ds *Devices) Guest(d *link.TUN) error {
	return ds.node.Ask(func(s *stack.Stack, _ clock.Time) error {
		g := &ds.guest
		if g.device != nil {
			return fmt.Errorf("%w: %w", control.ErrPortInUse, ErrGuest)
		}
		ds.list, ds.sharing = append(ds.list, d), append(ds.sharing, 1)
		ds.blocked = append(ds.blocked, false)
		*g = guest{device: d, token: len(ds.list) - 1}
		if err := ds.watch(d, g.token); err != nil {
			ds.list[g.token], g.device = nullDevice{}, nil
			return err
		}
		s.SetGuest(ds.toGuest)
		return nil
	})
}

// HasGuest reports whether a kernel has the node's addresses. Loop only.
func (ds *Devices) HasGuest() bool { return ds.guest.device != nil }

// toGuest queues a packet for the guest. Packets of the same size leave as a train of any length.
// The device splits the train where the kernel's next packet must start.
func (ds *Devices) toGuest(checked bool, packet []byte) {
	g := &ds.guest
	if n := len(g.packets); n > 0 && (g.checked != checked || len(packet) > len(g.packets[0]) ||
		len(g.packets[n-1]) < len(g.packets[0])) {
		ds.drainGuest()
	}
	g.checked = checked
	g.packets = append(g.packets, packet)
}

// drainGuest sends the queued packets. Packets that the device cannot take are lost.
func (ds *Devices) drainGuest() {
	g := &ds.guest
	if len(g.packets) == 0 {
		return
	}
	n, size := len(g.packets), len(g.packets[0])
	g.train[0] = buffer.Train{
		Pieces: g.packets, Size: size, Count: n, Bytes: (n-1)*size + len(g.packets[n-1]),
		Checked: g.checked,
	}
	if _, err := g.device.WriteBatch(g.train[:]); err != nil {
		ds.failed(g.token, err)
	}
	clear(g.packets)
	g.packets = g.packets[:0]
}

// removeGuest removes the guest whose device was deleted.
func (ds *Devices) removeGuest() {
	ds.node.stack.SetGuest(nil)
	ds.list[ds.guest.token] = nullDevice{}
	ds.guest = guest{}
}
