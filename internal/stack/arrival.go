package stack

import "github.com/tidepool-net/tidepool/internal/tcp"

// Arrival tells what becomes of n bytes of text at seq that a tap is shown. The
// train that is being gathered is not TCP's yet, but is before them.
func (s *Stack) Arrival(c *tcp.Conn, seq uint32, n int) tcp.Arrival {
	t := &s.in.train
	if s.in.gathered && n > 0 && t.Tuple == c.Tuple() && seq == t.Seq+uint32(t.Len) {
		return c.Arrival(t.Seq, t.Len+n)
	}
	return c.Arrival(seq, n)
}
