package node

import (
	"errors"
	"slices"

	"github.com/tidepool-net/tidepool/internal/link"
)

// gather marks the devices that the next iteration reads: those that are ready, and those that had
// more to read in the last iteration.
func (ds *Devices) gather(ready []int) {
	for _, token := range ds.again {
		ready = appendToken(ready, token)
	}
	ds.again = ds.again[:0]
	ds.ready = ds.addDue(ready)
}

func appendToken(tokens []int, token int) []int {
	if slices.Contains(tokens, token) {
		return tokens
	}
	return append(tokens, token)
}

func (ds *Devices) readReady() {
	for _, token := range ds.ready {
		if !ds.node.TCP.relays.ready(token) {
			ds.read(token)
		}
	}
	ds.ready = ds.ready[:0]
}

// read reads one device, a batch at a time.
func (ds *Devices) read(token int) {
	dev := ds.list[token]
	if dev.Pending() > 0 { // it may also be ready because it is writable
		if _, err := dev.WriteBatch(nil); err != nil { // unsent packets stay queued
			ds.failed(token, err)
		}
	}
	for range readsPerIteration {
		got, err := dev.ReadBatch(ds.frames)
		if err != nil && !errors.Is(err, link.ErrWouldBlock) {
			ds.failed(token, err)
		}
		if got == 0 {
			return
		}
		now := ds.node.Time.now() // one timestamp per batch; it is used to measure RTTs
		for i := range ds.frames[:got] {
			f := &ds.frames[i]
			ds.packets = f.Packets(ds.packets[:0])
			if ds.guest.device != nil && token == ds.guest.token {
				ds.node.stack.InputGuest(now, f.Checked, ds.packets)
				continue
			}
			ds.node.stack.Input(now, f.Iface, f.Checked, ds.packets)
		}
		ds.node.TCP.notify(now)
		ds.Drain(now) // sends packets before the frames' memory is reused
		if got < len(ds.frames) {
			return
		}
	}
	ds.again = appendToken(ds.again, token)
}
