package rcp

import "time"

// Counts are of packets that were handed out and taken in.
type Counts struct {
	// DAT, ACK and FIN were sent, first times and repeats; Again of them were repeats.
	DAT, ACK, FIN, Again uint64
	// Received counts packets that were accepted.
	Received uint64
	// Dropped counts those that were not, each under its Verdict.
	Dropped [numVerdicts]uint64
}

// Sent returns how many packets were sent in all.
func (c *Counts) Sent() uint64 { return c.DAT + c.ACK + c.FIN }

func (c *Counts) input(v Verdict) {
	if v == Accepted {
		c.Received++
	} else {
		c.Dropped[v]++
	}
}

func (c *Counts) output(t Type, again bool) {
	switch t {
	case DAT:
		c.DAT++
	case ACK:
		c.ACK++
	case FIN:
		c.FIN++
	}
	if again {
		c.Again++
	}
}

// Info describes a socket.
type Info struct {
	State State
	// Una, Nxt and End are the packets that the peer lacks from, that were sent up to,
	// and that are cut up to; Next is the lowest that has not arrived.
	Una, Nxt, End, Next uint64
	// Held is how many packets wait in the fence for one in front of them.
	Held int
	// Unsent and Unread are bytes that wait to be cut, and to be read.
	Unsent, Unread int
	// SRTT and RTO are the retransmission timer's; an SRTT of 0: there was no sample.
	SRTT, RTO time.Duration
	Counts    Counts
}

// Info returns what there is to know about the socket.
func (s *Socket) Info() Info {
	return Info{
		State: s.state, Una: s.out.una, Nxt: s.out.nxt, End: s.out.end, Next: s.in.next,
		Held: s.in.held, Unsent: int(s.out.tx.Tail() - s.out.off), Unread: s.in.rx.Len(),
		SRTT: s.out.timer.srtt, RTO: s.out.timer.rto, Counts: s.counts,
	}
}

// Counts returns what the router's sockets, and packets that have none, add up to.
func (r *Router) Counts() Counts { return r.counts }
