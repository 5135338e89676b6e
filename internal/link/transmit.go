package link

import (
	"errors"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// WriteBatch implements Device.
func (d *UDP) WriteBatch(trains []buffer.Train) (int, error) {
	d.applyNames()
	if d.queue.packets > 0 {
		if err := d.drain(); err != nil {
			return 0, err
		}
	}
	d.findNeighbors(trains)
	n := 0
	for n < len(trains) && d.queue.packets == 0 {
		if took := d.port.pass(trains[n:], d.route[n:]); took > 0 {
			n += took
			continue
		}
		took, err := d.send(trains[n:], d.route[n:])
		n += took
		if err != nil {
			return n, err
		}
	}
	for ; n < len(trains); n++ { // only with a queue, which is sent first
		to := d.route[n]
		if to != nil && !d.queue.fits(&trains[n]) {
			break
		}
		if to != nil {
			d.queue.push(to, &trains[n], 0)
		}
	}
	d.discard(trains[:n])
	return n, nil
}

// Room implements Device.
func (d *UDP) Room() int {
	room := d.queue.room(d.table.maxMTU)
	if d.port != nil {
		room = min(room, d.port.room(d.table.neighbors))
	}
	return room
}

// Pending implements Device.
func (d *UDP) Pending() int { return d.queue.packets }

// findNeighbors finds the neighbor of each train. A nil neighbor means that the train is discarded.
func (d *UDP) findNeighbors(trains []buffer.Train) {
	d.route = d.route[:0]
	for i := range trains {
		to, _ := d.neighborOf(&trains[i])
		d.route = append(d.route, to)
	}
}

// neighborOf finds the neighbor of a train, or the reason to drop it.
func (d *UDP) neighborOf(t *buffer.Train) (*neighbor, Drop) {
	out := d.table.at(t.Iface)
	if out == nil || t.Bytes == 0 {
		return nil, DropEmpty
	}
	to := out.hops[t.NextHop]
	switch {
	case to == nil:
		return nil, DropNoNeighbor
	case to.to.port == 0:
		return nil, DropUnresolved
	}
	return to, 0
}

// discard counts the trains without a neighbor.
func (d *UDP) discard(trains []buffer.Train) {
	for i := range trains {
		if d.route[i] != nil {
			continue
		}
		_, why := d.neighborOf(&trains[i])
		if out := d.table.at(trains[i].Iface); out != nil {
			out.counters.Drops[why] += uint64(trains[i].Count)
		}
	}
}

// send passes as many trains to the socket as fit in one call, and queues what the kernel does not
// accept. It returns the number of trains that were sent, queued, or have no neighbor.
func (d *UDP) send(trains []buffer.Train, route []*neighbor) (int, error) {
	n := 0
	for n < len(trains) && (route[n] == nil ||
		d.port.find(route[n]) == nil && d.sock.push(route[n], &trains[n])) {
		n++
	}
	packets, err := d.sock.flush()
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, ErrWouldBlock) {
		return 0, err
	}
	d.blocked++
	for i := range trains[:n] {
		t := &trains[i]
		switch {
		case route[i] == nil:
		case packets >= t.Count:
			packets -= t.Count
		case packets == 0 && !d.queue.fits(t):
			return i, nil
		default:
			d.queue.push(route[i], t, packets)
			packets = 0
		}
	}
	return n, nil
}

// drain sends the queue until the socket would block.
func (d *UDP) drain() error {
	for d.queue.packets > 0 {
		for i := d.queue.head; i < len(d.queue.list); i++ {
			if to, t := d.queue.train(i); !d.sock.push(to, t) {
				break
			}
		}
		packets, err := d.sock.flush()
		d.queue.pop(packets)
		if errors.Is(err, ErrWouldBlock) {
			d.blocked++
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
