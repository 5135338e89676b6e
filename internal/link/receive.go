package link

import "github.com/tidepool-net/tidepool/internal/buffer"

// ReadBatch implements Device.
func (d *UDP) ReadBatch(frames []buffer.Frame) (int, error) {
	d.applyNames()
	if len(d.lent) == 0 {
		lent, err := d.arrived()
		if err != nil {
			return 0, err
		}
		d.lent = lent
	}
	n := 0
	for len(d.lent) > 0 && n < len(frames) {
		n += d.deliver(&frames[n])
	}
	if len(d.lent) == 0 && n < len(frames) {
		d.resignal()
	}
	return n, nil
}

// resignal signals the owner again if datagrams arrived meanwhile. The owner assumes after a short
// batch that nothing is left, and it may already have been signaled for these datagrams.
func (d *UDP) resignal() {
	d.port.resignal()
	if s, ok := d.sock.(interface{ resignal() }); ok {
		s.resignal()
	}
}

// deliver converts the next datagram, or the part of it that came over one link, to a frame. It
// returns 1, or 0 if it discarded the datagram.
func (d *UDP) deliver(f *buffer.Frame) int {
	g := &d.lent[0]
	if len(g.data) == 0 {
		d.lent = d.lent[1:]
		if s := d.table.senders(g.from); len(s) > 0 {
			s[0].on.counters.Drops[DropEmpty]++
		}
		return 0
	}
	from, in, data := d.split(g)
	if len(data) == len(g.data) {
		d.lent = d.lent[1:]
	} else {
		g.data = g.data[len(data):]
	}
	packets := uint64(1)
	if len(data) > g.size {
		packets = uint64((len(data) + g.size - 1) / g.size)
	}
	if in == nil {
		d.unknown += packets
		return 0
	}
	if from != nil {
		from.rx += packets
	}
	c := &in.counters
	c.RxPackets += packets
	c.RxBytes += uint64(len(data))
	if g.size > in.MTU {
		c.Oversize += uint64(len(data) / g.size)
		if len(data)%g.size > in.MTU {
			c.Oversize++
		}
	}
	*f = buffer.Frame{Data: data, Size: g.size, Iface: in.ID, Checked: g.checked}
	return 1
}

// split finds the neighbor and the interface of a datagram, and the bytes that came over that
// interface. These are all bytes, unless several links lead to the sender. The interface is nil if
// the sender is unknown.
func (d *UDP) split(g *datagram) (*neighbor, *iface, []byte) {
	s := d.table.senders(g.from)
	switch {
	case len(s) == 1:
		return s[0], s[0].on, g.data
	case len(s) > 1:
		n := min(g.size, len(g.data))
		from := linkOf(s, g.data[:n])
		for n < len(g.data) {
			next := min(n+g.size, len(g.data))
			if linkOf(s, g.data[n:next]) != from {
				break
			}
			n = next
		}
		return from, from.on, g.data[:n]
	}
	return nil, nil, g.data
}
