package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// End is an interface of a host, where a link ends.
type End struct {
	Host  *Host
	Iface int
}

// direction is one direction of a link, from one host to another.
type direction struct {
	actor
	world *World
	id    uint64
	name  string // names of the two ends; the random streams depend on it
	link  *netem.Link
	from  int // interface of the sending host
	to    End
	cut   bool
	limit int // queue length at which the host stops sending; 0: no limit
}

// Connect joins two interfaces by a link with the impairments of each direction.
func (w *World) Connect(a, b End, ab, ba netem.Config) error {
	if a.Host == b.Host {
		return fmt.Errorf("sim: %s: a link must join two hosts", a.Host.name)
	}
	if a.Host.links[a.Iface] != nil || b.Host.links[b.Iface] != nil {
		return fmt.Errorf("sim: %s to %s: an interface already has a link",
			a.Host.name, b.Host.name)
	}
	for _, d := range []struct {
		from, to End
		cfg      netem.Config
	}{{a, b, ab}, {b, a, ba}} {
		v := &direction{
			world: w, id: uint64(len(w.links)), name: d.from.name() + ">" + d.to.name(),
			from: d.from.Iface, to: d.to,
		}
		v.acts = v
		d.cfg.Origin = cmp.Or(d.cfg.Origin, w.now)
		link, err := w.pool.New(d.cfg, v.stream)
		if err != nil {
			return fmt.Errorf("sim: %s to %s: %w", d.from.Host.name, d.to.Host.name, err)
		}
		v.link = link
		w.links = append(w.links, v)
		d.from.Host.links[d.from.Iface] = v
	}
	return nil
}

func (e End) name() string { return e.Host.name + ":" + e.Host.faces[e.Iface].Name }

// stream returns the random stream of a part of the link. It depends only on the seed and the names
// of the ends and the part, not on the rest of the world.
func (v *direction) stream(part string) *rand.Rand {
	return v.world.Rand("wire " + v.name + " " + part)
}

// LinkStreams returns the random streams of the link between two ends in a world of that seed.
// Another link that uses them loses the same packets. An end is named HOST:INTERFACE.
func LinkStreams(seed uint64, from, to string) func(part string) *rand.Rand {
	stream := netem.Streams(seed)
	return func(part string) *rand.Rand { return stream("wire " + from + ">" + to + " " + part) }
}

// Out returns the direction of the link that leads away from an interface, with its counters and
// its queue; nil if the interface has no link.
func (e End) Out() *netem.Link {
	if v := e.Host.links[e.Iface]; v != nil {
		return v.link
	}
	return nil
}

// Cut cuts the direction of the link that leads away from an interface, or repairs it. Packets that
// are already on the link still arrive.
func (e End) Cut(cut bool) {
	if v := e.Host.links[e.Iface]; v != nil {
		v.cut = cut
	}
}

// SetRoom limits the packets that the host at this end puts into the queue of its outgoing link, as
// a host does with its network card. Zero, the default, means no limit: the link drops packets that
// do not fit its queue.
func (e End) SetRoom(packets int) {
	h, v := e.Host, e.Host.links[e.Iface]
	if v == nil {
		return
	}
	v.limit = packets
	h.room[e.Iface] = room
	h.limited = slices.DeleteFunc(h.limited, func(l *direction) bool { return l == v })
	if packets > 0 {
		h.limited = append(h.limited, v)
	}
}

// room returns the number of packets that a link with a limit accepts now.
func (v *direction) room(now clock.Time) int {
	v.link.Advance(now)
	queued, _ := v.link.Queued()
	return max(0, v.limit-queued)
}

// roomAt returns when a full link has room again, or clock.Never if it is not full.
func (v *direction) roomAt() clock.Time {
	if queued, _ := v.link.Queued(); queued < v.limit {
		return clock.Never
	}
	return v.link.Departure()
}

// verified marks a packet whose transport checksum the sender has just computed. Its receiver
// verifies the checksum only if the link has corrupted the packet.
const verified = 1

func (v *direction) send(now clock.Time, t *buffer.Train) {
	w := v.world
	w.stats.Sent += uint64(t.Count)
	w.digest.sent(now, v, t)
	if v.cut {
		return
	}
	tag := uint64(0)
	if t.Checked {
		tag = verified
	}
	v.link.InputTrain(now, tag, t)
	w.eventQueue.set(&v.actor, v.link.Deadline())
}

// act delivers the packets that have arrived. Packets of one instant and one size arrive together
// as a train, as they do from a socket.
func (v *direction) act(now clock.Time) {
	w, h := v.world, v.to.Host
	v.link.Advance(now)
	c, next, alone := &w.arrivingTrain, now, true
	for ; next.Due(now); next = v.link.Deadline() {
		data, tag, ok := v.link.Output(now)
		if !ok {
			next = v.link.Deadline()
			break
		}
		w.stats.Delivered++
		w.digest.arrived(now, v, data)
		if c.delivered+c.bytes+len(data) > maxDelivered {
			v.deliver(now, c)
			h.settle(now)
			c.delivered = 0
		}
		if !c.fits(data) {
			v.deliver(now, c)
			alone = false
		}
		c.add(data, tag == verified && v.link.Intact())
	}
	if v.deliver(now, c) && alone && len(h.limited) == 0 {
		h.send(now) // the host is a router without new events and deadlines
	} else {
		h.settle(now)
		next = v.link.Deadline() // an application may have made the other end send
	}
	c.delivered = 0
	w.eventQueue.set(&v.actor, next)
}

// deliver passes the train to the host, and reports whether the host only forwards it.
func (v *direction) deliver(now clock.Time, c *arrivingTrain) (passed bool) {
	if len(c.packets) > 0 {
		passed = v.to.Host.stack.Input(now, v.to.Iface, c.checked, c.packets)
		c.packets, c.bytes = c.packets[:0], 0
	}
	return passed
}

// arrivingTrain is a train of packets from a link to a host, still in the link's memory.
type arrivingTrain struct {
	packets [][]byte
	bytes   int
	checked bool // each packet is marked verified and is not corrupted
	// delivered counts the bytes that arrived at this instant since settle last ran.
	delivered int
}

// maxDelivered is the number of bytes that a host receives before settle runs.
const maxDelivered = 256 << 10

// fits reports whether a packet can be added to the train.
func (c *arrivingTrain) fits(data []byte) bool {
	n := len(c.packets)
	return n == 0 || len(c.packets[n-1]) == len(c.packets[0]) &&
		len(data) <= len(c.packets[0]) && c.bytes+len(data) <= buffer.MaxTrainBytes
}

func (c *arrivingTrain) add(data []byte, checked bool) {
	c.checked = checked && (c.checked || len(c.packets) == 0)
	if len(c.packets) > 0 {
		if len(c.packets) == 1 {
			c.delivered += c.bytes
		}
		c.delivered += len(data)
	}
	c.packets = append(c.packets, data)
	c.bytes += len(data)
}
