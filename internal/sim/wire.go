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

// wire is one direction of a link, from one host to another.
type wire struct {
	actor
	world *World
	id    uint64
	name  string // names of the two ends; the random streams depend on it
	link  *netem.Link
	from  int // interface of the sending host
	to    End
	cut   bool
	limit int // maximum queue length at which the host still sends; 0: no limit
}

// Connect joins two interfaces by a link with the impairments of each direction.
func (w *World) Connect(a, b End, ab, ba netem.Config) error {
	if a.Host == b.Host {
		return fmt.Errorf("sim: %s: a link must join two hosts", a.Host.name)
	}
	if a.Host.wires[a.Iface] != nil || b.Host.wires[b.Iface] != nil {
		return fmt.Errorf("sim: %s to %s: an interface already has a link",
			a.Host.name, b.Host.name)
	}
	for _, d := range []struct {
		from, to End
		cfg      netem.Config
	}{{a, b, ab}, {b, a, ba}} {
		v := &wire{
			world: w, id: uint64(len(w.wires)), name: d.from.name() + ">" + d.to.name(),
			from: d.from.Iface, to: d.to,
		}
		v.acts = v
		d.cfg.Origin = cmp.Or(d.cfg.Origin, w.now)
		link, err := w.pool.New(d.cfg, v.stream)
		if err != nil {
			return fmt.Errorf("sim: %s to %s: %w", d.from.Host.name, d.to.Host.name, err)
		}
		v.link = link
		w.wires = append(w.wires, v)
		d.from.Host.wires[d.from.Iface] = v
	}
	return nil
}

func (e End) name() string { return e.Host.name + ":" + e.Host.faces[e.Iface].Name }

// stream returns the random stream of a part of the link. It depends only on the seed and the names
// of the ends and the part, not on the rest of the world.
func (v *wire) stream(part string) *rand.Rand {
	return v.world.Rand("wire " + v.name + " " + part)
}

// WireStreams returns the random streams of the link between two ends in a world of that seed.
// Another link that uses them loses the same packets. An end is named HOST:INTERFACE.
func WireStreams(seed uint64, from, to string) func(part string) *rand.Rand {
	stream := netem.Streams(seed)
	return func(part string) *rand.Rand { return stream("wire " + from + ">" + to + " " + part) }
}

// Out returns the direction of the link that leads away from an interface, with its counters and
// its queue; nil if the interface has no link.
func (e End) Out() *netem.Link {
	if v := e.Host.wires[e.Iface]; v != nil {
		return v.link
	}
	return nil
}

// Cut cuts the direction of the link that leads away from an interface, or repairs it. Packets that
// are already on the link still arrive.
func (e End) Cut(cut bool) {
	if v := e.Host.wires[e.Iface]; v != nil {
		v.cut = cut
	}
}

// SetRoom makes the host at this end hold back packets while that many packets wait in the queue of
// its outgoing link, as a host does with its network card. With zero, the default, the host sends
// without a limit, and the link drops packets that do not fit its queue.
func (e End) SetRoom(packets int) {
	h, v := e.Host, e.Host.wires[e.Iface]
	if v == nil {
		return
	}
	v.limit = packets
	h.room[e.Iface] = room
	h.limited = slices.DeleteFunc(h.limited, func(l *wire) bool { return l == v })
	if packets > 0 {
		h.limited = append(h.limited, v)
	}
}

// room returns the number of packets that a link with a limit accepts now.
func (v *wire) room(now clock.Time) int {
	v.link.Advance(now)
	queued, _ := v.link.Queued()
	return max(0, v.limit-queued)
}

// vacant returns when a full link has room again, or never if it is not full.
func (v *wire) vacant() clock.Time {
	if queued, _ := v.link.Queued(); queued < v.limit {
		return clock.Never
	}
	return v.link.Departure()
}

// sound marks a packet whose transport checksum the sender has just computed. Receivers verify it
// only if a link has corrupted the packet.
const sound = 1

func (v *wire) send(now clock.Time, t *buffer.Train) {
	w := v.world
	w.stats.Sent += uint64(t.Count)
	w.log.sent(now, v, t)
	if v.cut {
		return
	}
	tag := uint64(0)
	if t.Checked {
		tag = sound
	}
	v.link.InputTrain(now, tag, t)
	w.agenda.set(&v.actor, v.link.Deadline())
}

// act delivers the packets that have arrived. Packets of one instant and one size arrive together
// as a train, as they do from a socket.
func (v *wire) act(now clock.Time) {
	w, h := v.world, v.to.Host
	v.link.Advance(now)
	c, next, alone := &w.coming, now, true
	for ; next.Due(now); next = v.link.Deadline() {
		data, tag, ok := v.link.Output(now)
		if !ok {
			next = v.link.Deadline()
			break
		}
		w.stats.Delivered++
		w.log.arrived(now, v, data)
		if c.given+c.bytes+len(data) > maxGiven {
			v.hand(now, c)
			h.settle(now)
			c.given = 0
		}
		if !c.takes(data) {
			v.hand(now, c)
			alone = false
		}
		c.add(data, tag == sound && v.link.Intact())
	}
	if v.hand(now, c) && alone && len(h.limited) == 0 {
		h.send(now) // the host is a router without events and without a new deadline
	} else {
		h.settle(now)
		next = v.link.Deadline() // an application may have made the other end send
	}
	c.given = 0
	w.agenda.set(&v.actor, next)
}

// hand passes the train to the host, and reports whether the host only forwards it.
func (v *wire) hand(now clock.Time, c *coming) (passed bool) {
	if len(c.packets) > 0 {
		passed = v.to.Host.stack.Input(now, v.to.Iface, c.checked, c.packets)
		c.packets, c.bytes = c.packets[:0], 0
	}
	return passed
}

// coming is a train that moves from a link to a host. Its packets are still in the link's memory.
type coming struct {
	packets [][]byte
	bytes   int
	checked bool // each packet is marked sound and is not corrupted
	// given counts the bytes that arrived at this instant since the host's last turn.
	given int
}

// maxGiven is the number of bytes that a host receives before its next turn.
const maxGiven = 256 << 10

// takes reports whether a packet can be added to the train.
func (c *coming) takes(data []byte) bool {
	n := len(c.packets)
	return n == 0 || len(c.packets[n-1]) == len(c.packets[0]) &&
		len(data) <= len(c.packets[0]) && c.bytes+len(data) <= buffer.MaxTrainBytes
}

func (c *coming) add(data []byte, checked bool) {
	c.checked = checked && (c.checked || len(c.packets) == 0)
	if len(c.packets) > 0 {
		if len(c.packets) == 1 {
			c.given += c.bytes
		}
		c.given += len(data)
	}
	c.packets = append(c.packets, data)
	c.bytes += len(data)
}
