package link

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Exchange connects the UDP devices of one process. A device copies packets for the UDP address of
// another device of its Exchange into that device's memory. The kernel carries all other packets.
// The zero Exchange is ready for use.
type Exchange struct {
	mu         sync.Mutex // held to replace ports
	ports      atomic.Pointer[map[address]*port]
	deliveries atomic.Int32 // running calls of Deliver
}

// maxDeliveries limits the calls of Deliver that run at a time, and thus how many are nested. More
// would keep the first device of a long path waiting.
const maxDeliveries = 8

// Deliver calls receive, in which the owner of a device receives what another device has sent. It
// returns false, without a call, if too many calls run or the Exchange is nil.
func (x *Exchange) Deliver(receive func()) bool {
	if x == nil {
		return false
	}
	defer x.deliveries.Add(-1)
	if x.deliveries.Add(1) > maxDeliveries {
		return false
	}
	receive()
	return true
}

// port is a device's place in an Exchange. A device with a nil port is in no Exchange.
type port struct {
	in       *inbox
	exchange *Exchange
	own      address
}

// join adds a device that is bound to one address. Other devices get a nil port, because their
// source address depends on the destination.
func (x *Exchange) join(bound Info) *port {
	at := bound.Local.Addr()
	if x == nil || !at.IsValid() || at.IsUnspecified() || at.IsLinkLocalUnicast() {
		return nil
	}
	p := &port{newInbox(), x, addressOf(bound.Local)}
	x.change(func(ports map[address]*port) { ports[p.own] = p })
	return p
}

func (x *Exchange) change(f func(map[address]*port)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := map[address]*port{}
	if now := x.ports.Load(); now != nil {
		maps.Copy(next, *now)
	}
	f(next)
	x.ports.Store(&next)
}

// leave removes the device from the Exchange. Packets for it then go to the kernel, which refuses
// them.
func (p *port) leave() {
	if p == nil {
		return
	}
	p.exchange.change(func(ports map[address]*port) { delete(ports, p.own) })
	p.in.shut()
}

// find returns the port of a neighbor; nil: the kernel carries packets to it.
func (p *port) find(to *neighbor) *port {
	if p == nil || to == nil {
		return nil
	}
	return (*p.exchange.ports.Load())[to.to]
}

// pass copies trains to their neighbors' ports and returns how many. It stops at the first train
// that the kernel carries.
func (p *port) pass(trains []buffer.Train, route []*neighbor) (n int) {
	for n < len(trains) {
		to := p.find(route[n])
		if to == nil {
			return n
		}
		end := n + 1
		for end < len(trains) && route[end] == route[n] {
			end++
		}
		if !to.in.put(trains[n:end], p.own) {
			return n // the device has just left
		}
		for i := n; i < end; i++ {
			route[n].sent(trains[i].Count, trains[i].Bytes)
		}
		n = end
	}
	return n
}

// room returns how many packets every neighbor in the Exchange accepts. If a neighbor accepts none,
// the device is signaled when that neighbor has room.
func (p *port) room(neighbors []*neighbor) int {
	left := inboxPackets
	for _, nb := range neighbors {
		if to := p.find(nb); to != nil {
			left = min(left, to.in.room(p.in))
		}
	}
	return left
}

// collect returns the datagrams that wait in the port.
func (p *port) collect() []datagram {
	if p == nil {
		return nil
	}
	list, _ := p.in.take() // an error means that there is none
	p.in.signalSenders()
	return list
}

// In every kernelEvery-th call, arrived reads from the kernel first, and otherwise from the
// Exchange.
const kernelEvery = 64

// arrived returns the datagrams from the Exchange or the kernel, or ErrWouldBlock if neither has
// any.
func (d *UDP) arrived() ([]datagram, error) {
	d.reads++
	first := d.reads%kernelEvery == 0
	if !first {
		if list := d.port.collect(); len(list) > 0 {
			return list, nil
		}
	}
	list, err := d.sock.recv()
	if first && err != nil {
		if late := d.port.collect(); len(late) > 0 {
			return late, nil
		}
	}
	return list, err
}

// resignal signals the device if datagrams wait in the port.
func (p *port) resignal() {
	if p != nil {
		p.in.resignal()
	}
}
