package node

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Drain sends everything that the stack has to send. Loop only.
func (ds *Devices) Drain(now clock.Time) {
	ds.node.TCP.relays.drained()
	ds.drainGuest()
	for {
		for i, d := range ds.byIface {
			// Interfaces that share a socket also share its room.
			ds.room[i] = ds.list[d].Room() / ds.sharing[d]
		}
		more := ds.node.stack.Output(now, ds.room, ds.batch)
		ds.write(ds.batch.Trains())
		ds.batch.Reset()
		if !more {
			break
		}
	}
	for token, d := range ds.list {
		if want := d.Pending() > 0; want != ds.blocked[token] {
			ds.blocked[token] = want
			ds.node.waiter.WantWrite(d.FD(), want)
		}
	}
}

// write writes consecutive trains for the same device in one call.
func (ds *Devices) write(trains []buffer.Train) {
	for len(trains) > 0 {
		d := ds.byIface[trains[0].Iface]
		run := 1
		for run < len(trains) && ds.byIface[trains[run].Iface] == d {
			run++
		}
		if _, err := ds.list[d].WriteBatch(trains[:run]); err != nil {
			ds.failed(d, err)
		}
		trains = trains[run:]
	}
}
