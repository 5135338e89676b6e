package tcp

import (
	"container/heap"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// halfOpen is a connection of a listener's in SYN-RECEIVED that waits for its peer: what was agreed
// on by its SYN and our SYN-ACK, and when that goes again. Whatever happens to it happens to the
// connection that unfold makes of it, which fold makes small again once nothing is left to send. So
// a flood of SYNs costs this much each (RFC 4987 §3.2), and no segment is answered in two ways.
type halfOpen struct {
	tuple    Tuple
	hs       handshake
	flags    connFlags
	iss, irs uint32
	edge     uint16 // of the receive window, beyond RCV.NXT
	wnd      uint16 // the peer's window
	syn      synAgreed
	nagle    nagle
	stamp    uint32 // offset of our timestamps
	recent   uint32 // TS.Recent
	recentAt clock.Time
	since    clock.Time // the SYN arrived
	lastSent clock.Time // the SYN-ACK left
	rto      clock.Time // and leaves again
	listener *Listener
	neighbors[halfOpen]
	place   int32 // in the heap
	retries uint32
	segsIn  uint32
	segsOut uint32
	odd     *oddity // nil: there is none
}

// synAgreed is what both SYNs have settled.
type synAgreed struct {
	mss                  uint16 // the peer's
	sendScale, recvScale uint8
	sack, paced, late    bool
}

// oddity is what few half-open connections have: a peer that repeats itself or sends nonsense, an
// ICMP report, a user timeout.
type oddity struct {
	answers      *answers
	lastReceived clock.Time
	dataSegsIn   uint64
	wait         userTimeout
	doubt        error
}

// due returns when something is to be done about it.
func (o *halfOpen) due() clock.Time {
	if o.odd != nil && o.odd.wait.limit > 0 {
		return clock.Earliest(o.rto, o.odd.wait.since.Add(o.odd.wait.limit))
	}
	return o.rto
}

// halfOpens are the half-open connections of all listeners, in the order in which they became
// small. Limits.SynBacklog bounds each listener's.
type halfOpens struct {
	byTuple map[Tuple]*halfOpen
	chain[halfOpen, *halfOpen]
	byDue dueHeap
	spare []*Conn // that were made for a moment, at most maxSpareConns
}

// maxSpareConns bounds the connections that wait to be made for the next segment, and those that
// are made for time-outs at once: about as many SYNs as arrive together.
const maxSpareConns = 32

// take returns a connection of nothing but its rings, which are empty.
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

// give takes back a connection that nobody holds any more, for the next take.
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

// dueHeap is a heap.Interface by what is due first.
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
