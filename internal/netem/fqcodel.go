package netem

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// FQCoDel is the queue of RFC 8290: flows are hashed to queues, and each queue uses CoDel. Deficit
// round robin serves the queues in turn, and new flows go first.
type FQCoDel struct {
	// Target and Interval configure each CoDel queue; 0: 5 ms and 100 ms (RFC 8290 §5.2.2, §5.2.1).
	Target, Interval time.Duration
	// Flows is the number of queues; 0: 1024 (RFC 8290 §5.2.5).
	Flows int
	// Quantum is how many bytes a queue may send in a turn; 0: 1514 (RFC 8290 §5.2.4).
	Quantum int
	// Packets and Bytes limit all queues together. Beyond the limit, the longest queue drops its
	// oldest packet. Zero: 10240 packets (RFC 8290 §5.2.3) and 32 MiB, as in Linux.
	Packets, Bytes int
	// ECN marks packets instead of dropping them if their transport is ECN-capable (RFC 8290
	// §5.2.6).
	ECN bool
}

// These are the defaults.
const (
	fqFlows   = 1024
	fqQuantum = 1514
	fqPackets = 10240
	fqBytes   = 32 << 20
)

// maxFQFlows limits the memory of an unused queue.
const maxFQFlows = 1 << 16

func (f FQCoDel) withDefaults() FQCoDel {
	c := f.codel().withDefaults()
	f.Target, f.Interval = c.Target, c.Interval
	f.Flows, f.Quantum = cmp.Or(f.Flows, fqFlows), cmp.Or(f.Quantum, fqQuantum)
	f.Packets, f.Bytes = cmp.Or(f.Packets, fqPackets), cmp.Or(f.Bytes, fqBytes)
	return f
}

func (f FQCoDel) codel() CoDel { return CoDel{Target: f.Target, Interval: f.Interval, ECN: f.ECN} }

// Validate returns an error if the description is invalid.
func (f FQCoDel) Validate() error {
	f = f.withDefaults()
	if f.Flows < 0 || f.Flows > maxFQFlows || f.Quantum < 0 {
		return fmt.Errorf("%w: fq_codel with %d flows (must be 1 to %d), quantum %d "+
			"(must be 1 or more)", ErrConfig, f.Flows, maxFQFlows, f.Quantum)
	}
	if err := (Bound{Packets: f.Packets, Bytes: f.Bytes}).Validate(); err != nil {
		return err
	}
	return f.codel().Validate()
}

// Start implements Discipline.
func (f FQCoDel) Start(s Site) Queue {
	f = f.withDefaults()
	return &fqCoDel{
		room: s.room(Bound{Packets: f.Packets, Bytes: f.Bytes}), law: f.codel().law(&s),
		quantum: f.Quantum, flows: make([]fqFlow, f.Flows), salt: s.Random.Uint64(),
	}
}

// fqCoDel is the queue.
type fqCoDel struct {
	room    room
	law     codelLaw
	quantum int
	flows   []fqFlow
	// salt is a random input of the hash. It prevents a sender from choosing a flow that shares
	// another flow's queue.
	salt               uint64
	newFlows, oldFlows fqList // lists of new and of old queues (RFC 8290 §4)
	packets, bytes     int
}

// fqFlow is the queue of the flows with one hash.
type fqFlow struct {
	ring   packetRing
	state  codelState
	credit int // number of bytes that the queue may still send in this round (RFC 8290 §3)
	next   *fqFlow
	queued bool
}

// fqList is a list of queues in the order of their turns.
type fqList struct{ first, last *fqFlow }

func (l *fqList) push(f *fqFlow) {
	f.next, f.queued = nil, true
	if l.first == nil {
		l.first = f
	} else {
		l.last.next = f
	}
	l.last = f
}

func (l *fqList) pop() *fqFlow {
	f := l.first
	l.first, f.next, f.queued = f.next, nil, false
	return f
}

func (q *fqCoDel) Len() (packets, bytes int) { return q.packets, q.bytes }

// Put implements Queue: RFC 8290 §4.1.
func (q *fqCoDel) Put(now clock.Time, p *Packet) {
	q.law.largest = max(q.law.largest, len(p.data))
	// The hash is scaled to the number of queues; the high bits of the product are the queue's
	// index.
	f := &q.flows[flowHash(p.data, q.salt)>>32*uint64(len(q.flows))>>32]
	f.ring.push(p)
	q.packets++
	q.bytes += len(p.data)
	if !f.queued {
		f.credit = q.quantum
		q.newFlows.push(f)
	}
	for q.packets > 0 && !q.room.holds(q.packets, q.bytes) {
		p := q.longest().ring.pop()
		q.packets--
		q.bytes -= len(p.data)
		q.law.drop(now, p, Head)
	}
}

// longest returns the queue with the most bytes. Every queue with packets is in one of the lists.
func (q *fqCoDel) longest() *fqFlow {
	longest := q.newFlows.first
	for _, list := range [2]*fqFlow{q.newFlows.first, q.oldFlows.first} {
		for f := list; f != nil; f = f.next {
			if longest == nil || f.ring.bytes > longest.ring.bytes {
				longest = f
			}
		}
	}
	return longest
}

// Take implements Queue: RFC 8290 §4.2.
func (q *fqCoDel) Take(now clock.Time) *Packet {
	for {
		list := &q.newFlows
		if list.first == nil {
			list = &q.oldFlows
		}
		f := list.first
		if f == nil {
			return nil
		}
		if f.credit <= 0 {
			f.credit += q.quantum
			q.oldFlows.push(list.pop())
			continue
		}
		packets, bytes := f.ring.n, f.ring.bytes
		p := q.law.take(now, &f.state, &f.ring)
		q.packets -= packets - f.ring.n
		q.bytes -= bytes - f.ring.bytes
		if p != nil {
			f.credit -= len(p.data)
			return p
		}
		list.pop()
		// A queue that could be new again at once would starve the others.
		if list == &q.newFlows {
			q.oldFlows.push(f)
		}
	}
}

// flowHash hashes the fields that identify a packet's flow: addresses, protocol, and ports. It
// ignores the ports of fragments, because only the first fragment has them. All packets that are
// not IP belong to one flow.
func flowHash(b []byte, salt uint64) uint64 {
	p := networkOf(b)
	if p.header == 0 {
		return mix(salt)
	}
	h := salt
	for ; len(p.addresses) > 0; p.addresses = p.addresses[8:] {
		h = mix(binary.BigEndian.Uint64(p.addresses) ^ h)
	}
	rest := uint64(p.protocol)
	if !p.fragment && len(b) >= p.header+4 && (rest == tcp || rest == udp) {
		rest |= uint64(binary.BigEndian.Uint32(b[p.header:])) << 8
	}
	return mix(h ^ rest)
}

// mix spreads each bit of a number over the whole number: it is the last step of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
