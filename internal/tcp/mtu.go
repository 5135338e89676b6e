package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// way is how packets get to the peer, and what is known of how large they may
// be. Path.MTU is what is believed of the whole path.
type way struct {
	path Path
	pmtu pmtu
}

// pmtu is a connection's path MTU discovery: RFC 1191 with the doubts of RFC
// 5927 §7.2, and in search that of RFC 4821.
type pmtu struct {
	link  int // the MTU of our own link: no path has more
	acked int // the largest payload that is known to have arrived
	search
}

// claim is an MTU that was reported against the evidence, and of what segment.
type claim struct {
	mtu int
	seq uint64
}

const (
	// minPathMTU is the smallest maximum that RFC 791 §3.2 allows a link.
	minPathMTU = 68
	// mtuAge is how long a path is believed to be narrow: RFC 1191 §6.3, RFC 8899 §5.1.1.
	mtuAge = 10 * time.Minute
)

// The values of Knobs.MTUProbing.
const (
	MTUProbingOff       = "off"
	MTUProbingBlackHole = "blackhole"
	MTUProbingOn        = "on"
)

// setPath takes a new way to the peer: at first, and when routes change.
func (c *Conn) setPath(p Path) {
	if p.Outlet < 0 {
		p.MTU = c.path.MTU // what is known of it stays as good a guess as any
		c.path = p
		return
	}
	known, until := c.host.mtus.find(c.host.now, c.tuple.RemoteAddr)
	same := p.MTU == c.pmtu.link && p.Local == c.path.Local
	c.pmtu.link = p.MTU
	switch {
	case same && c.path.MTU < p.MTU:
		p.MTU = c.path.MTU // the route is the old one, and so is what was learned on it
	case known != 0 && known < p.MTU:
		p.MTU = known
		c.pmtu.next = until
	}
	c.path = p
	c.refit()
}

// setMTU takes a new belief about the path.
func (c *Conn) setMTU(mtu int) {
	c.path.MTU = mtu
	c.refit()
}

// mssFor returns the payload of a full segment on a path of that MTU.
func (c *Conn) mssFor(mtu int) int {
	// RFC 9293 §3.7.1 says 536 when the peer sends no MSS option (Path.DefaultMSS). On the UDP
	// links of course nodes the MTU stands in for it: few of them send the option, and all take
	// the link's 1400 bytes for granted.
	mss := fitting(mtu)
	if c.snd.peerMSS != 0 {
		mss = min(mss, max(c.snd.peerMSS, minMSS))
	}
	if c.maxSeg != 0 {
		mss = min(mss, c.maxSeg)
	}
	if c.has(flagStamps) {
		mss -= stampBytes // RFC 9293 §3.7.1: what every segment carries goes off the MSS
	}
	return mss
}

// fitting returns the payload, options included, that fits an MTU. No path is
// narrower than RFC 791 §3.2 allows a link.
func fitting(mtu int) int {
	return min(max(mtu, minPathMTU)-ipHeaderSize-HeaderSize, maxMSS)
}

// Plateau returns the next of the common MTUs below the length of a packet that
// was too big, for routers whose reports name none (RFC 1191 §7).
func Plateau(length int) int {
	for _, mtu := range [...]int{32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296} {
		if mtu < length {
			return mtu
		}
	}
	return minPathMTU
}

// TooBig tells the connection that sent sequence number seq that a router on
// the way had to drop the segment, because its next link carries mtu bytes.
func (h *Host) TooBig(now clock.Time, t Tuple, seq uint32, mtu int) {
	h.now = now
	c := h.lookup(now, t)
	if c == nil {
		return
	}
	// RFC 5927 §4.1: believed only of what is in flight; RFC 1191 §3: never below the 68 bytes
	// that every link carries.
	w := widen(c.snd.una, seq)
	if w < c.snd.una || w >= c.snd.nxt || mtu < minPathMTU || c.probeTooBig(now, w, mtu) ||
		mtu >= c.path.MTU {
		return
	}
	c.busy() // it may be a SYN that is in flight
	if c.mssFor(mtu) < c.pmtu.acked {
		// RFC 5927 §7.2: larger segments have arrived, so this may be a forgery. If the path has
		// really become narrower, the segment will not be acknowledged, and its time-out decides.
		c.trouble.claim = claim{mtu, w}
		return
	}
	c.narrow(now, mtu)
	c.touch()
}

// narrow believes in a smaller path, for all connections to the host (RFC 1191
// §6.2), until that is too long ago.
func (c *Conn) narrow(now clock.Time, mtu int) {
	c.host.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
	c.rec.resendLarge(c.mssFor(mtu))
	c.setMTU(mtu)
	c.pmtu.acked = min(c.pmtu.acked, c.snd.mss)
	c.pmtu.search = search{next: now.Add(mtuAge)}
}

// mtuTimeout is called at a retransmission time-out, before anything is sent
// again. Either a report that was doubted is confirmed by it, or the path may
// swallow large packets without a report.
func (c *Conn) mtuTimeout(now clock.Time) {
	if doubted := c.trouble.claim; doubted != (claim{}) {
		c.trouble.claim = claim{}
		if doubted.seq >= c.snd.una {
			c.narrow(now, doubted.mtu)
			return
		}
	}
	c.suspectBlackHole(now)
}

// PathMTU returns what is remembered of the path to a host, zero for nothing.
func (h *Host) PathMTU(now clock.Time, host [4]byte) int {
	mtu, _ := h.mtus.find(now, host)
	return mtu
}
