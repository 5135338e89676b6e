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
	link    int     // the MTU of our own link: no path has more
	acked   int     // the largest payload that is known to have arrived
	doubt   *claim  // nil: none
	search  *search // nil: the path is believed, and nothing more is looked for
	peerMSS uint16  // what the peer's option said, zero without
	maxSeg  uint16  // the payload that the user allows; zero: anything
	stamped bool    // every segment has a timestamp
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

// peerOffers takes the options of the peer's SYN.
func (p *pathMTU) peerOffers(o *Options, plain, stamped bool) {
	p.stamped = stamped
	if p.DefaultMSS || !plain {
		p.peerMSS = o.MSS
	}
	if p.DefaultMSS {
		orDefault(&p.peerMSS, defaultMSS) // RFC 9293 §3.7.1 (MUST-15)
	}
}

// offer is the MSS option of our SYN (RFC 9293 §3.7.1).
func (p *pathMTU) offer() uint16 {
	mss := uint16(fitting(p.link))
	if p.maxSeg != 0 {
		mss = min(mss, p.maxSeg)
	}
	return mss
}

// mss returns the payload of a full segment if the path's MTU is so large.
func (p *pathMTU) mss(mtu int) int {
	// RFC 9293 §3.7.1 says 536 when the peer sends no MSS option (Path.DefaultMSS). On the UDP
	// links of course nodes the MTU stands in for it: few of them send the option, and all take
	// the link's 1400 bytes for granted.
	mss := fitting(mtu)
	if p.peerMSS != 0 {
		mss = min(mss, max(int(p.peerMSS), MinMSS))
	}
	if p.maxSeg != 0 {
		mss = min(mss, int(p.maxSeg))
	}
	if p.stamped {
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

// isProbe reports whether a router's report is about the probe in flight, and possible.
func (p *pathMTU) isProbe(seq uint64, mtu int) bool {
	q := p.search
	return q != nil && q.seq != 0 && seq == q.seq && mtu < q.size && mtu >= p.MTU
}

// doubts reports whether a report of a segment contradicts what has arrived, and remembers it then:
// RFC 5927 §7.2, it may be a forgery. If the path has really become narrower, the segment will not
// be acknowledged, and its timeout decides.
func (p *pathMTU) doubts(seq uint64, mtu int) bool {
	if p.mss(mtu) >= p.acked {
		return false
	}
	p.doubt = &claim{mtu, seq}
	return true
}

// confirmed returns the MTU of the report that was doubted, if a timeout confirms it; zero: none.
func (p *pathMTU) confirmed(una uint64) (mtu int) {
	if doubted := p.doubt; doubted != nil && doubted.seq >= una {
		mtu = doubted.mtu
	}
	p.doubt = nil
	return mtu
}

// narrow believes in a smaller path, until that is too long ago.
func (p *pathMTU) narrow(now clock.Time, mtu int) {
	p.MTU = mtu
	p.acked = min(p.acked, p.mss(mtu))
	p.search = &search{next: now.Add(mtuAge)}
}

// escape makes segments smaller when full ones are sent again and again in vain: RFC 4821 §7.7, RFC
// 8899 §4.3. If it was something else, the first probe finds that out, where they may be sent.
func (p *pathMTU) escape(now clock.Time, probes bool) {
	mtu := baseMTU
	if p.MTU <= baseMTU {
		mtu = max(p.MTU/2, leastMTU)
	}
	p.narrow(now, mtu)
	if probes {
		p.search.next = now
	}
}

// startLow starts small and looks for more. It reports false if the path is small anyway.
func (p *pathMTU) startLow(now clock.Time) bool {
	if p.MTU <= baseMTU {
		return false
	}
	p.MTU, p.search = baseMTU, &search{next: now}
	return true
}

// due reports whether it is time for a probe and none is in flight.
func (p *pathMTU) due(now clock.Time) bool {
	q := p.search
	return q != nil && q.next.Due(now) && q.seq == 0
}

// probe returns the payload of the next probe, zero if there is none.
func (p *pathMTU) probe(now clock.Time) int {
	q := p.search
	if q.size == 0 {
		if !p.choose(now) {
			return 0
		}
		if p.mss(q.size) <= p.mss(p.MTU) {
			p.search = nil // the peer takes no more
			return 0
		}
	}
	return p.mss(q.size)
}

// arrived takes the size that a probe has shown to fit, and reports whether it is news.
func (p *pathMTU) arrived() bool {
	q := p.search
	if q == nil {
		return false
	}
	mtu := q.size
	q.seq, q.fails, q.size = 0, 0, 0
	if mtu <= p.MTU {
		return false
	}
	p.MTU = mtu
	if mtu >= p.link {
		p.search = nil
	}
	return true
}

// found remembers the MTU that a probe has found, for all connections to the host.
func (p *peers) found(now clock.Time, peer [4]byte, path *pathMTU) {
	if path.search == nil {
		p.mtus.forget(peer)
	} else {
		p.mtus.learn(now, peer, path.MTU, mtuAge)
	}
}

// mtuProbe sends the probe of the path's MTU that is due, if losing it would be noticed: enough
// must follow it for the peer to report the gap. Hold asks that nothing else be sent, until
// acknowledgments have made room for it.
func (d *sender) mtuProbe(now clock.Time, s *sending) (sent, hold bool) {
	p := &d.path
	if !d.probesMTU() {
		// RFC 1191 §6.3: after a while the first link's MTU is tried again, and a router objects.
		p.search, p.MTU = nil, p.link
		d.refit()
		return false, false
	}
	n := p.probe(now)
	need := n + (recovery.DupThresh+1)*d.MSS
	if n == 0 || d.unsent() < need || d.usable() < need {
		return false, false
	}
	if room, hold := d.rec.RoomForMTUProbe(n, need); !room {
		return false, hold
	}
	s.Span = recovery.Span{Seq: d.Nxt, N: n, MSS: n}
	p.search.seq = d.Nxt
	d.rec.Push(now, d.Nxt, n, recovery.MTUProbe)
	d.Nxt += uint64(n)
	d.armSent(now)
	return true, false
}

// probesMTU reports whether probes may be sent: their loss has to be told from that of others,
// which takes SACK, and noticed soon.
func (d *sender) probesMTU() bool {
	return d.cfg.MTUProbing != MTUProbingOff && d.rec.ProbesTail()
}

// swallowed reports whether the path may swallow large packets without a report. If not even a
// small one arrives, it is not the size.
func (d *sender) swallowed(now clock.Time) bool {
	return d.cfg.MTUProbing != MTUProbingOff && d.rec.Retries >= blackHoleRetries &&
		!d.rec.Record.Empty() && now.Sub(d.wait.since) >= blackHoleTime &&
		d.path.MTU > leastMTU && d.rec.Record.FirstSize() >= d.MSS
}

// narrow believes in a smaller path, and sends again what cannot have passed it.
func (d *sender) narrow(now clock.Time, mtu int) {
	d.rec.ResendLarge(d.path.mss(mtu))
	d.path.narrow(now, mtu)
	d.refit()
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
	if w < c.snd.Una || w >= c.snd.Nxt || mtu < minPathMTU {
		return
	}
	switch {
	case c.snd.path.isProbe(w, mtu) && c.snd.rec.ResendProbe(w):
		c.snd.path.MTU, c.snd.path.search = mtu, &search{next: now.Add(mtuAge)}
		c.snd.refit()
		h.peers.mtus.learn(now, t.RemoteAddr, mtu, mtuAge)
	case mtu >= c.snd.path.MTU:
		return
	default:
		c.busy() // it may be a SYN that is in flight
		if c.snd.path.doubts(w, mtu) {
			return
		}
		h.peers.mtus.learn(now, t.RemoteAddr, mtu, mtuAge) // RFC 1191 §6.2
		c.snd.narrow(now, mtu)
	}
	c.touch()
}

// PathMTU returns what is remembered of the path to a host, zero for nothing.
func (h *Host) PathMTU(now clock.Time, host [4]byte) int {
	mtu, _ := h.peers.mtus.find(now, host)
	return mtu
}
