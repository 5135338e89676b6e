package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// newReno is RFC 6582: fast retransmit and recovery without selective
// acknowledgments, one hole a round trip.
var newReno = strategy{name: "newreno", forward: true, detect: detectNewReno}

// dupThresh is RFC 5681's three.
const dupThresh = 3

func detectNewReno(c *Conn, _ clock.Time, r *round) {
	if r.dups > 0 {
		c.duplicateACK(r.dups, r)
	}
	if r.advance > 0 {
		c.partialACK(r)
	}
}

// duplicateACK counts duplicates: each says that one segment has left the
// network, which lets new data out (RFC 3042 §2), and the third that the first
// is lost (RFC 5681 §3.2).
func (c *Conn) duplicateACK(n int, r *round) {
	p := &c.rec
	if p.kind == restarting {
		return // echoes of what was sent before the time-out
	}
	p.dupAcks += n
	room := c.sent.bytes[inFlight] - p.dupBytes
	gone := max(0, min(n*c.snd.mss, room))
	p.dupBytes += gone
	r.dupDelivered = gone
	// RFC 6582 §3.2 step 2: duplicates of what the last recovery resent do not start another.
	if p.kind == steady && p.dupAcks >= dupThresh && !c.mayEcho() {
		c.loseFirst(r)
	}
}

// loseFirst thinks the first outstanding segment lost.
func (c *Conn) loseFirst(r *round) {
	id := c.sent.first
	if rec := c.sent.at(id); rec.place == inFlight {
		c.lose(r.now, id, rec)
		c.rec.dupBytes = min(c.rec.dupBytes, c.sent.bytes[inFlight])
		r.lost++
	}
}

// partialACK is RFC 6582 §3.2 step 3: in recovery, an acknowledgment short of
// the recovery point shows the next hole.
func (c *Conn) partialACK(r *round) {
	p := &c.rec
	p.dupAcks = 0
	// One segment of the advance is the retransmission, the others had left the network before.
	counted := min(p.dupBytes, max(0, r.advance-c.snd.mss))
	p.dupBytes -= counted
	r.dupDelivered = -min(counted, r.delivered)
	switch {
	case p.kind == steady || c.sent.empty():
		p.dupBytes = 0
	case p.kind == recovering && c.snd.una < p.point:
		c.loseFirst(r)
		p.force = r.lost > 0 // at once, whatever the window says
	}
	p.dupBytes = min(p.dupBytes, c.sent.bytes[inFlight])
}
