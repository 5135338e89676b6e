package tcp

// plainSYN is the retransmission of a SYN from which on it goes without options. The third, or the
// last if that comes sooner: a path that loses a packet in ten each way takes two in a row from
// one connection in 28, which would have to do without SACK ever after, and three from one in 146.
const plainSYN = 3

// finishes reports whether our FIN may go behind the next n bytes, all that wait to be sent.
//
// RFC 9293 §3.10.4 lets it ride on the last data, and so it does unless the peer sent no TCP
// options. Of the course's nodes, which send none, some ignore a segment with data and a FIN
// forever, some take the FIN and drop the data, and some acknowledge the data alone. So to them
// the FIN goes alone. It waits until all data is acknowledged: then no retransmission joins the
// two either, and a node that throws away what its program has not read gets a round trip to
// read it.
func (c *Conn) finishes(n int) bool {
	if !c.has(flagWriteClosed) || c.snd.fin != 0 {
		return false
	}
	return !c.has(flagPlain) || n == 0 && c.sent.empty()
}
