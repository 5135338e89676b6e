//go:build linux

package end

import (
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// relay forwards packets between two sockets: a neutral path between two ends of any stack. It does
// not parse packets, but can drop and delay them. The relay keeps trains together, so that it is
// not the bottleneck.
func (p *process) relay() (stop func() error, err error) {
	if _, stop, err = p.carry(); err == nil {
		p.report(&Report{Event: "ready"})
	}
	return stop, err
}

func (p *process) carry() (sockets [2]*datagram.Socket, stop func() error, err error) {
	for i, s := range p.spec.Sides {
		if sockets[i], err = datagram.Open(s.UDP, s.Peer, datagram.LongQueue); err != nil {
			return sockets, nil, err
		}
		if err := sockets[i].Coalesce(); err != nil {
			return sockets, nil, err
		}
	}
	for i := range sockets {
		w := &direction{
			in: sockets[i], out: sockets[1-i], loss: p.spec.Loss, delay: p.spec.Delay,
			random: rand.New(rand.NewPCG(p.spec.Seed, uint64(i))),
		}
		go w.carry()
	}
	return sockets, func() error { return errors.Join(sockets[0].Close(), sockets[1].Close()) }, nil
}

// direction is one direction of a relay.
type direction struct {
	in, out *datagram.Socket
	loss    float64
	delay   time.Duration
	random  *rand.Rand
	left    []byte // the packets of a run that were not dropped
	late    chan delayed
}

// delayed is a run in flight.
type delayed struct {
	at   time.Time
	data []byte
	size int
}

// delayedRuns limits the number of runs in flight, which hold a gigabyte if all are full. The relay
// drops further runs.
const delayedRuns = 1 << 14

func (w *direction) carry() {
	batch := w.in.NewBatch(32)
	if w.delay > 0 {
		w.late = make(chan delayed, delayedRuns)
		defer close(w.late)
		go w.deliverLate()
	}
	for {
		list, err := batch.Receive()
		if err != nil {
			return
		}
		now := time.Now()
		for _, r := range list {
			data := r.Data
			if w.loss > 0 {
				data = w.survivors(r)
			}
			if len(data) > 0 {
				w.pass(now, data, r.Size)
			}
		}
	}
}

// survivors drops packets of a run at random and returns the others.
func (w *direction) survivors(r datagram.Received) []byte {
	w.left = w.left[:0]
	for data := r.Data; len(data) > 0; {
		n := min(r.Size, len(data))
		if w.random.Float64() >= w.loss {
			w.left = append(w.left, data[:n]...)
		}
		data = data[n:]
	}
	return w.left
}

func (w *direction) pass(now time.Time, data []byte, size int) {
	if w.late == nil {
		w.send(data, size)
		return
	}
	select {
	case w.late <- delayed{now.Add(w.delay), append([]byte(nil), data...), size}:
	default:
	}
}

func (w *direction) deliverLate() {
	for d := range w.late {
		time.Sleep(time.Until(d.at))
		w.send(d.data, d.size)
	}
}

// send sends a run. A run is lost if no socket is bound at the other end.
func (w *direction) send(data []byte, size int) {
	_ = w.out.Send([]unix.Iovec{datagram.Piece(data)}, len(data), size)
}
