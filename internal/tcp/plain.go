package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// plainSYN is the retransmission of a SYN from which on it goes without options. The third, or the
// last if that comes sooner: a path that loses a packet in ten each way takes two in a row from
// one connection in 28, which would have to do without SACK ever after, and three from one in 146.
const plainSYN = 3

// plainAge is how long a peer that answered without options gets SYNs without them.
const plainAge = 10 * time.Minute

// rememberPlain notes at the end of a handshake whether the peer knows options. One that drops SYNs
// with options costs its first connection all timeouts up to plainSYN, and only that one. But the
// path may also have lost three SYNs. So a connection whose first SYN had no options prolongs
// nothing, and one option from the peer ends it.
func (c *Conn) rememberPlain(now clock.Time) {
	h, peer := c.host, c.tuple.RemoteAddr
	switch {
	case h.cfg.OptionsOff:
	case !c.has(flagPlain):
		h.plain.forget(peer)
	case c.has(flagActive) && !h.knowsPlain(now, peer):
		h.plain.learn(now, peer, struct{}{}, plainAge)
	}
}

// knowsPlain reports whether a peer is remembered as one without options.
func (h *Host) knowsPlain(now clock.Time, peer [4]byte) bool {
	_, until := h.plain.find(now, peer)
	return until != clock.Never
}

// finPatience is how long a FIN waits for a peer without TCP options to read what it has
// acknowledged.
const finPatience = 10 * time.Millisecond

// finishes reports whether our FIN may go behind the next n bytes, all that wait to be sent.
//
// RFC 9293 §3.10.4 lets it ride on the last data, and so it does unless the peer sent no TCP
// options. The course's nodes send none. Some of them ignore a segment with data and a FIN
// forever, some take the FIN and drop the data, some acknowledge the data alone, and some discard
// at the FIN what their program has not read. So to them the FIN goes alone, once all data is
// acknowledged and, as far as their window shows it, read.
func (c *Conn) finishes(now clock.Time, n int) bool {
	switch {
	case !c.snd.closed || c.snd.fin != 0:
		return false
	case !c.has(flagPlain):
		return true
	case n > 0 || !c.rec.sent.empty():
		return false
	case c.snd.wnd >= c.snd.maxWnd || c.stats.bytesSent == 0:
		return true
	}
	// Most of these nodes do not report that their window has opened again, so this ends soon.
	until := c.wait.since.Add(finPatience) // since its last acknowledgment
	if until.Due(now) {
		return true
	}
	c.timers[timerPace] = until
	return false
}
