package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// goBackN is the textbook's sliding window: the receiver is heard for its
// cumulative acknowledgment alone, and whenever something is missing everything
// behind it is sent again. It is here to be compared with: a large window that
// loses one segment pays for all of them.
//
// What is missing shows by the time-out, or by the third duplicate
// acknowledgment as in the sender of fixed window that the course's congestion
// laboratory has, though once a window only: what was sent again draws
// duplicates too, and going back for those never ends.
var goBackN = strategy{name: "gbn", detect: detectGoBackN}

func detectGoBackN(c *Conn, now clock.Time, r *round) {
	p := &c.rec
	if r.advance > 0 {
		p.dupAcks = 0
	}
	if p.dupAcks += r.dups; p.dupAcks < dupThresh || r.dups == 0 ||
		p.kind != steady || c.mayEcho() {
		return
	}
	c.trouble.fastRecoveries++
	c.loseFlight(now)
	c.beginUndo(true)
	*p = recovery{kind: restarting, point: c.snd.nxt, timedOut: c.snd.una, force: true}
	c.cc.OnLoss(c.lossEvent(now, congestion.Detected, r.flight))
	c.sample(now)
}

// loseFlight thinks everything lost that is in flight.
func (c *Conn) loseFlight(now clock.Time) {
	for l := &c.sent.lists[inFlight]; l.n > 0; {
		c.lose(now, l.head, c.sent.at(l.head))
	}
}
