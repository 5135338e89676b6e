package rcp

import "time"

// Counts counts sent and received packets.
type Counts struct {
	// DAT, ACK and FIN count sent packets, including retransmissions. Again counts the
	// retransmissions.
	DAT, ACK, FIN, Again uint64
	// Received counts accepted packets.
	Received uint64
	// Dropped counts other received packets by Verdict.
	Dropped [numVerdicts]uint64
}

// Sent returns the number of sent packets.
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

// Info is the state of a socket.
type Info struct {
	State State
	// Una is the first unacknowledged packet. Nxt is the number after the last packet that was
	// sent, and End the number after the last packet that exists. Next is the lowest packet that is
	// not in the reader's buffer.
	Una, Nxt, End, Next uint64
	// Held is the number of packets that wait in the fence for an earlier one, or for room.
	Held int
	// Unsent counts the written bytes that are not yet in packets. Unread counts the received bytes
	// that the program has not read.
	Unsent, Unread int
	// SRTT and RTO are the values of the retransmission timer. An SRTT of 0 means that there is no
	// sample.
	SRTT, RTO time.Duration
	Counts    Counts
}

// Info returns the state of the socket.
func (s *Socket) Info() Info {
	return Info{
		State: s.state, Una: s.out.una, Nxt: s.out.nxt, End: s.out.end, Next: s.in.next,
		Held: s.in.held, Unsent: int(s.out.tx.Tail() - s.out.off), Unread: s.in.rx.Len(),
		SRTT: s.out.timer.srtt, RTO: s.out.timer.rto, Counts: s.counts,
	}
}

// Counts returns the counts of all the router's sockets, and of packets without a socket.
func (r *Router) Counts() Counts { return r.counts }
