package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// pathMTU is how packets get to the peer, and how large they may be: RFC 1191 with the doubts of
// RFC 5927 §7.2, and in search RFC 4821 and RFC 8899. Path.MTU is what is believed of the whole
// path.
type pathMTU struct {
	Path
	link   int     // the MTU of our own link: no path has more
	acked  int     // the largest payload that is known to have arrived
	doubt  *claim  // nil: none
	search *search // nil: the path is believed, and nothing more is looked for
}

// search is packetization layer path MTU discovery, RFC 4821 and RFC 8899: a segment that is larger
// than the path is known to carry goes first among ordinary ones, and arrives or does not.
type search struct {
	next  clock.Time // when to look for more than is believed; never: there is no more
	high  int        // the path carries no more than this; zero: not known
	size  int        // of the next probe, or the one in flight; zero: to be chosen
	seq   uint64     // where it begins; zero: none is in flight
	fails uint8      // losses of that size in a row
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
	// baseMTU carries the 1024 bytes that RFC 4821 §7.2 starts from.
	baseMTU = 1024 + ipHeaderSize + HeaderSize
	// leastMTU is as small as a black hole is believed to be.
	leastMTU = 512 + ipHeaderSize + HeaderSize
	// maxMTUProbes is MAX_PROBES of RFC 8899 §5.1.2: one loss may have been bad luck.
	maxMTUProbes = 3
	// mtuStep ends a search: less is not worth a segment.
	mtuStep = 16
	// blackHoleRetries and blackHoleTime tell a black hole from a bad moment: three time-outs
	// (R1 of RFC 9293 §3.8.3) that took a second, for the first ones may be milliseconds apart.
	blackHoleRetries = 3
	blackHoleTime    = time.Second
)

// The values of Knobs.MTUProbing.
const (
	MTUProbingOff       = "off"
	MTUProbingBlackHole = "blackhole"
	MTUProbingOn        = "on"
)

// reroute takes a new path to the peer, of which the host may know that it is narrow, for a while.
func (p *pathMTU) reroute(to Path, known int, until clock.Time) {
	if to.Outlet < 0 {
		to.MTU = p.MTU // what is known of it stays as good a guess as any
		p.Path = to
		return
	}
	same := to.MTU == p.link && to.Local == p.Local
	p.link = to.MTU
	switch {
	case same && p.MTU < to.MTU:
		to.MTU = p.MTU // the route is the old one, and so is what was learned on it
	case known != 0 && known < to.MTU:
		to.MTU = known
		if p.search == nil {
			p.search = &search{}
		}
		p.search.next = until
	}
	p.Path = to
}

// choose decides on the MTU to try next: at first all that there can be, which is right more often
// than not, then half way. It reports false when the search is over for now.
func (p *pathMTU) choose(now clock.Time) bool {
	switch q := p.search; {
	case q.high == 0:
		q.high, q.size = p.link, p.link
	case q.high-p.MTU >= mtuStep:
		q.size = (q.high + p.MTU + 1) / 2
	default:
		*q = search{next: now.Add(mtuAge)}
		return false
	}
	return true
}

// lost notes that n probes were lost: the path does not carry the size, if it happens often enough.
func (p *pathMTU) lost(n int) {
	for q := p.search; n > 0 && q != nil; n-- {
		q.seq = 0
		if q.fails++; q.fails >= maxMTUProbes {
			q.high, q.fails, q.size = q.size-1, 0, 0
		}
	}
}

// setPath takes a new path to the peer: at first, and when routes change.
func (c *Conn) setPath(p Path) {
	known, until := c.host.peers.mtus.find(c.host.now, c.tuple.RemoteAddr)
	c.path.reroute(p, known, until)
	if p.Outlet >= 0 {
		c.refit()
	}
}

// setMTU takes a new belief about the path.
func (c *Conn) setMTU(mtu int) {
	c.path.MTU = mtu
	c.refit()
}

// refit makes segments fit the path, the peer and the user's limit. When they become smaller,
// it recuts the sent queue: RFC 5681 §3.1's loss window is one segment of the new size, and a
// record of the old size would exceed it.
func (c *Conn) refit() {
	before := c.snd.MSS
	c.snd.MSS = c.mssFor(c.path.MTU)
	if c.snd.MSS >= before || c.rec.Resting() || c.rec.Record.Empty() {
		return
	}
	c.rec.Recut(c.snd.MSS)
}

// mssFor returns the payload of a full segment on a path of that MTU.
func (c *Conn) mssFor(mtu int) int {
	// RFC 9293 §3.7.1 says 536 when the peer sends no MSS option (Path.DefaultMSS). On the UDP
	// links of course nodes the MTU stands in for it: few of them send the option, and all take
	// the link's 1400 bytes for granted.
	mss := fitting(mtu)
	if c.snd.peerMSS != 0 {
		mss = min(mss, max(c.snd.peerMSS, MinMSS))
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
	w := widen(c.snd.Una, seq)
	if w < c.snd.Una || w >= c.snd.Nxt || mtu < minPathMTU || c.probeTooBig(now, w, mtu) ||
		mtu >= c.path.MTU {
		return
	}
	c.busy() // it may be a SYN that is in flight
	if c.mssFor(mtu) < c.path.acked {
		// RFC 5927 §7.2: larger segments have arrived, so this may be a forgery. If the path has
		// really become narrower, the segment will not be acknowledged, and its time-out decides.
		c.path.doubt = &claim{mtu, w}
		return
	}
	c.narrow(now, mtu)
	c.touch()
}

// narrow believes in a smaller path, for all connections to the host (RFC 1191
// §6.2), until that is too long ago.
func (c *Conn) narrow(now clock.Time, mtu int) {
	c.host.peers.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
	c.rec.ResendLarge(c.mssFor(mtu))
	c.setMTU(mtu)
	c.path.acked = min(c.path.acked, c.snd.MSS)
	c.path.search = &search{next: now.Add(mtuAge)}
}

// mtuTimeout is called at a retransmission time-out, before anything is sent again. Either a report
// that was doubted is confirmed by it, or the path may swallow large packets without a report.
func (c *Conn) mtuTimeout(now clock.Time) {
	if doubted := c.path.doubt; doubted != nil {
		c.path.doubt = nil
		if doubted.seq >= c.snd.Una {
			c.narrow(now, doubted.mtu)
			return
		}
	}
	c.suspectBlackHole(now)
}

// suspectBlackHole makes segments smaller when full ones are sent again and
// again in vain: RFC 4821 §7.7, RFC 8899 §4.3.
func (c *Conn) suspectBlackHole(now clock.Time) {
	if c.host.cfg.MTUProbing == MTUProbingOff || c.rec.Retries < blackHoleRetries ||
		c.rec.Record.Empty() || now.Sub(c.wait.since) < blackHoleTime || c.path.MTU <= leastMTU {
		return
	}
	if c.rec.Record.FirstSize() < c.snd.MSS {
		return // not even a small one arrives: it is not the size
	}
	mtu := baseMTU
	if c.path.MTU <= baseMTU {
		mtu = max(c.path.MTU/2, leastMTU)
	}
	c.setMTU(mtu)
	c.path.acked = min(c.path.acked, c.snd.MSS)
	c.path.search = &search{next: now.Add(mtuAge)}
	if c.probesMTU() {
		c.path.search.next = now // if it was something else, the first probe finds that out
	}
}

// probeFromBase starts small and looks for more, when the operator says so.
func (c *Conn) probeFromBase(now clock.Time) {
	if c.host.cfg.MTUProbing == MTUProbingOn && c.probesMTU() && c.path.MTU > baseMTU {
		c.setMTU(baseMTU)
		c.path.search = &search{next: now}
	}
}

// probesMTU reports whether probes may be sent: their loss has to be told from
// that of others, and noticed soon.
func (c *Conn) probesMTU() bool {
	return c.host.cfg.MTUProbing != MTUProbingOff && c.rcv.sack && c.rec.ProbesTail()
}

// outputMTUProbe sends a probe, if it is time for one and losing it would be
// noticed: enough must follow it for the peer to report the gap. Hold asks that
// nothing else be sent, until acknowledgments have made room for it.
func (c *Conn) outputMTUProbe(now clock.Time, t *Train) (sent, hold bool) {
	p := &c.path
	q := p.search
	if q == nil || !q.next.Due(now) || q.seq != 0 {
		return false, false
	}
	if !c.probesMTU() {
		// RFC 1191 §6.3: after a while the first link's MTU is tried again, and a router objects.
		p.search = nil
		c.setMTU(p.link)
		return false, false
	}
	if q.size == 0 {
		if !p.choose(now) {
			return false, false
		}
		if c.mssFor(q.size) <= c.snd.MSS {
			p.search = nil // the peer takes no more
			return false, false
		}
	}
	n := c.mssFor(q.size)
	need := n + (recovery.DupThresh+1)*c.snd.MSS
	if c.snd.unsent() < need || c.snd.usable() < need {
		return false, false
	}
	if room, hold := c.rec.RoomForMTUProbe(n, need); !room {
		return false, hold
	}
	q.seq = c.snd.Nxt
	c.begin(t, c.snd.Nxt, 0)
	c.snd.lend(t, c.snd.Nxt, n, n)
	c.rec.Push(now, c.snd.Nxt, n, recovery.MTUProbe)
	c.snd.Nxt += uint64(n)
	c.armSent(now)
	c.leave(now, t)
	return true, false
}

// mtuProbeArrived takes the size that a probe has shown to fit.
func (c *Conn) mtuProbeArrived(now clock.Time) {
	p := &c.path
	if p.search == nil {
		return
	}
	mtu := p.search.size
	p.search.seq, p.search.fails, p.search.size = 0, 0, 0
	if mtu <= c.path.MTU {
		return
	}
	c.setMTU(mtu)
	if mtu >= p.link {
		p.search = nil
		c.host.peers.mtus.forget(c.tuple.RemoteAddr)
		return
	}
	c.host.peers.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
}

// probeTooBig takes a router's report about a probe in flight, which settles
// the matter, and reports whether it was one.
func (c *Conn) probeTooBig(now clock.Time, seq uint64, mtu int) bool {
	p, q := &c.path, c.path.search
	if q == nil || q.seq == 0 || seq != q.seq || mtu >= q.size || mtu < p.MTU {
		return false
	}
	if !c.rec.ResendProbe(seq) {
		return false
	}
	c.setMTU(mtu)
	c.host.peers.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
	*q = search{next: now.Add(mtuAge)}
	c.touch()
	return true
}

// PathMTU returns what is remembered of the path to a host, zero for nothing.
func (h *Host) PathMTU(now clock.Time, host [4]byte) int {
	mtu, _ := h.peers.mtus.find(now, host)
	return mtu
}
