//go:build linux

package end

import (
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// relay carries packets from one socket to another, and back: a neutral way between two ends of
// any stack. It looks into none, but may drop some and hold back all. Trains stay together, so that
// it is not what holds the ends back.
func (p *process) relay() (stop func() error, err error) {
	if _, stop, err = p.carry(); err == nil {
		p.say(&Said{Event: "ready"})
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
		w := &way{
			in: sockets[i], out: sockets[1-i], loss: p.spec.Loss, delay: p.spec.Delay,
			luck: rand.New(rand.NewPCG(p.spec.Seed, uint64(i))),
		}
		go w.carry()
	}
	return sockets, func() error { return errors.Join(sockets[0].Close(), sockets[1].Close()) }, nil
}

// way is one direction of a relay.
type way struct {
	in, out *datagram.Socket
	loss    float64
	delay   time.Duration
	luck    *rand.Rand
	left    []byte // what a run is after its losses
	late    chan delayed
}

// delayed is a run that is on its way.
type delayed struct {
	at   time.Time
	data []byte
	size int
}

// delayedRuns bounds what is on its way: a gigabyte of full runs; what exceeds it is lost.
const delayedRuns = 1 << 14

func (w *way) carry() {
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

// survivors are the packets of a run that are not lost, each by its own luck.
func (w *way) survivors(r datagram.Received) []byte {
	w.left = w.left[:0]
	for data := r.Data; len(data) > 0; {
		n := min(r.Size, len(data))
		if w.luck.Float64() >= w.loss {
			w.left = append(w.left, data[:n]...)
		}
		data = data[n:]
	}
	return w.left
}

func (w *way) pass(now time.Time, data []byte, size int) {
	if w.late == nil {
		w.send(data, size)
		return
	}
	select {
	case w.late <- delayed{now.Add(w.delay), append([]byte(nil), data...), size}:
	default:
	}
}

func (w *way) deliverLate() {
	for d := range w.late {
		time.Sleep(time.Until(d.at))
		w.send(d.data, d.size)
	}
}

// send sends a run. Nobody may be there yet, or any more; then it is lost.
func (w *way) send(data []byte, size int) {
	_ = w.out.Send([]unix.Iovec{datagram.Piece(data)}, len(data), size)
}
