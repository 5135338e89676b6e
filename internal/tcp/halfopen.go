package tcp

import (
	"container/heap"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// halfOpen is the reduced form of a listener's connection in SYN-RECEIVED that waits for its peer:
// the result of the SYNs and the time of the next SYN-ACK. When a segment arrives or a timer
// expires, restore makes a connection from it, which shrink reduces again later. A SYN flood costs
// only this much memory for each SYN (RFC 4987 §3.2).
type halfOpen struct {
	tuple    Tuple
	hs       handshake
	flags    connFlags
	iss, irs uint32
	edge     uint16 // right edge of the receive window, relative to RCV.NXT
	wnd      uint16 // the peer's window
	syn      synAgreed
	nagle    nagle
	stamp    uint32 // offset of our timestamps
	recent   uint32 // TS.Recent
	recentAt clock.Time
	since    clock.Time // when the SYN arrived
	lastSent clock.Time // when the SYN-ACK was last sent
	rto      clock.Time // when to retransmit it
	listener *Listener
	neighbors[halfOpen]
	place   int32 // index in the heap
	retries uint32
	segsIn  uint32
	segsOut uint32
	rare    *rareState // usually nil
}

// synAgreed is the result of both SYNs.
type synAgreed struct {
	mss                  uint16 // the peer's
	sendScale, recvScale uint8
	sack, paced, late    bool
}

// rareState is state that few half-open connections need: after retransmissions or invalid segments
// of the peer, after an ICMP error, or with a user timeout.
type rareState struct {
	ackLimits  *ackLimits
	lastDataAt clock.Time
	dataSegsIn uint64
	wait       userTimeout
	err        error // an ICMP report
}

// due returns the time of the next timeout.
func (o *halfOpen) due() clock.Time {
	if o.rare != nil && o.rare.wait.limit > 0 {
		return clock.Earliest(o.rto, o.rare.wait.since.Add(o.rare.wait.limit))
	}
	return o.rto
}

// halfOpens holds the half-open connections of all listeners in the order in which they were
// reduced. Limits.SynBacklog bounds them for each listener.
type halfOpens struct {
	byTuple map[Tuple]*halfOpen
	chain[halfOpen, *halfOpen]
	byDue dueHeap
	spare []*Conn // unused connections, at most maxSpareConns
}

// maxSpareConns bounds the spare connections that restore reuses, and the number of connections
// that restoreDue restores at once.
const maxSpareConns = 32

func (q *halfOpens) take(cfg *Config) *Conn {
	n := len(q.spare)
	if n == 0 {
		tx, rx := buffer.NewRing(cfg.Buffers.Send), buffer.NewRing(cfg.Buffers.Recv)
		return &Conn{snd: sender{tx: tx}, rcv: receiver{rx: rx}}
	}
	c := q.spare[n-1]
	q.spare[n-1], q.spare = nil, q.spare[:n-1]
	*c = Conn{snd: sender{tx: c.snd.tx}, rcv: receiver{rx: c.rcv.rx}}
	c.snd.tx.Resize(cfg.Buffers.Send)
	c.rcv.rx.Resize(cfg.Buffers.Recv)
	return c
}

// give keeps an unused connection for the next take.
func (q *halfOpens) give(c *Conn) {
	if len(q.spare) < maxSpareConns {
		q.spare = append(q.spare, c)
	}
}

func (q *halfOpens) deadline() clock.Time {
	if len(q.byDue) == 0 {
		return clock.Never
	}
	return q.byDue[0].due()
}

func (q *halfOpens) push(o *halfOpen) {
	if q.byTuple == nil {
		q.byTuple = map[Tuple]*halfOpen{}
	}
	q.byTuple[o.tuple] = o
	q.chain.push(o)
	heap.Push(&q.byDue, o)
}

func (q *halfOpens) remove(o *halfOpen) {
	q.chain.remove(o)
	heap.Remove(&q.byDue, int(o.place))
	delete(q.byTuple, o.tuple)
}

// dueHeap is a heap.Interface ordered by due.
type dueHeap []*halfOpen

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, k int) bool { return d[i].due() < d[k].due() }

func (d dueHeap) Swap(i, k int) {
	d[i], d[k] = d[k], d[i]
	d[i].place, d[k].place = int32(i), int32(k)
}

func (d *dueHeap) Push(x any) {
	o := x.(*halfOpen)
	o.place = int32(len(*d))
	*d = append(*d, o)
}

func (d *dueHeap) Pop() any {
	n := len(*d) - 1
	o := (*d)[n]
	(*d)[n] = nil
	*d = (*d)[:n]
	return o
}
