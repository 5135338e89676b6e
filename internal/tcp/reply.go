package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// replies are the segments that Conn.output does not send: resets, SYN-ACKs with cookies, and
// acknowledgments from TIME-WAIT.
type replies struct {
	cfg     *Config
	drops   *Drops
	refused uint64 // resets that answered segments
	ring    []reply
	head, n int
}

type reply struct {
	tuple  Tuple
	header Header
}

// maxReplies bounds the queue. A reset may get lost anyway, so dropping one does no harm.
const maxReplies = 256

func (q *replies) push(r reply) {
	if q.ring == nil {
		q.ring = make([]reply, maxReplies)
	}
	if q.n == maxReplies {
		q.drops[DropReplies]++
		return
	}
	q.ring[(q.head+q.n)%maxReplies] = r
	q.n++
}

// output sends the oldest reply if its outlet has room, and drops replies without a route. A reply
// that waits for room delays those behind it.
func (q *replies) output(room []int, t *Train) bool {
	for q.n > 0 {
		r := &q.ring[q.head]
		p := q.cfg.Route(r.tuple.RemoteAddr)
		if p.Outlet >= 0 && p.Outlet < len(room) && room[p.Outlet] <= 0 {
			return false
		}
		q.head = (q.head + 1) % maxReplies
		q.n--
		if p.Outlet < 0 || p.Outlet >= len(room) {
			continue
		}
		*t = Train{Tuple: r.tuple, Header: r.header, Outlet: p.Outlet, Payload: t.Payload[:0]}
		return true
	}
	return false
}

// ack queues the acknowledgment of a connection in TIME-WAIT.
func (q *replies) ack(now clock.Time, e *timeWait) {
	r := reply{e.tuple, Header{Seq: e.sndNxt, Ack: e.rcvNxt, Flags: ACK, Window: e.window}}
	if e.stamped {
		e.stamps.put(now, &r.header.Options) // RFC 7323 §3.2: every segment
	}
	q.push(r)
}

// reset answers a segment with a reset that its sender accepts (RFC 9293 §3.10.7.1).
func (q *replies) reset(s *Segment) {
	if s.Flags.Has(RST) || q.cfg.NoResets {
		return
	}
	r := reply{tuple: s.Tuple}
	if s.Flags.Has(ACK) {
		r.header = Header{Seq: s.Ack, Flags: RST}
	} else {
		r.header = Header{Ack: s.Seq + uint32(s.segLen()), Flags: RST | ACK}
	}
	q.refused++
	q.push(r)
}
