package tcp

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// pathMTU is the path to the peer and its MTU (RFC 1191, RFC 8201), with the checks of RFC 5927
// §7.2. search implements RFC 4821 and RFC 8899.
type pathMTU struct {
	MTU        int        // the current estimate for the whole path
	report     *mtuReport // an unconfirmed report; nil: none
	search     *search    // nil: no search, because MTU is the link's or the peer accepts no more
	Outlet     int32      // Outlet of the Path
	link       uint16     // the MTU of our own link, an upper bound of MTU
	acked      uint16     // the largest payload that is known to have arrived
	peerMSS    uint16     // the peer's MSS option; zero: it sent none
	maxSeg     uint16     // the user's limit for the payload; zero: no limit
	stamped    bool       // every segment has a timestamp
	DefaultMSS bool       // DefaultMSS of the Path
	v6         bool       // the path is an IPv6 path
}

// search is the state of packetization layer path MTU discovery (RFC 4821, RFC 8899): the sender
// sends one segment that is larger than the estimate, and sees whether it is acknowledged.
type search struct {
	next  clock.Time // when to probe for a larger MTU; never: no probe
	high  int        // upper bound of the path's MTU; zero: not known
	size  int        // MTU that the probe in flight or the next one tests; zero: not chosen yet
	seq   uint64     // sequence number of the probe in flight; zero: none is in flight
	fails uint8      // consecutive lost probes of that size
}

// mtuReport is a reported MTU that is too small for a segment that has arrived. seq is the sequence
// number of the reported segment.
type mtuReport struct {
	mtu int
	seq uint64
}

const (
	// minPathMTU and minPathMTU6 are the smallest MTUs that RFC 791 §3.2 and RFC 8200 §5 allow.
	minPathMTU, minPathMTU6  = 68, 1280
	defaultMSS4, defaultMSS6 = 536, 1220
	// mtuAge is how long the host keeps a smaller MTU: RFC 1191 §6.3, RFC 8899 §5.1.1.
	mtuAge = 10 * time.Minute
	// baseMTU is the start of a search: RFC 4821 §7.2 starts from 1024 bytes of payload. IPv6
	// starts from its minimum MTU.
	baseMTU = 1024 + ipHeaderSize + HeaderSize
	// leastMTU is the smallest MTU that black hole detection assumes.
	leastMTU = 512 + ipHeaderSize + HeaderSize
	// maxMTUProbes is MAX_PROBES of RFC 8899 §5.1.2: a single loss may have another cause.
	maxMTUProbes = 3
	// mtuStep is the smallest gain that is worth a probe. A search ends below it.
	mtuStep = 16
	// The sender assumes a black hole after blackHoleRetries timeouts (R1 of RFC 9293 §3.8.3) and
	// blackHoleTime, because the first timeouts may be milliseconds apart.
	blackHoleRetries = 3
	blackHoleTime    = time.Second
)

// The values of Knobs.MTUProbing.
const (
	MTUProbingOff       = "off"
	MTUProbingBlackHole = "blackhole"
	MTUProbingOn        = "on"
)

// reroute sets a new path to the peer. known is the MTU that the host remembers for the peer until
// the given time, or zero.
func (p *pathMTU) reroute(to Path, known int, until clock.Time) {
	same := to.MTU == int(p.link) && to.Outlet == int(p.Outlet)
	p.Outlet, p.DefaultMSS = int32(to.Outlet), to.DefaultMSS
	if to.Outlet < 0 {
		return // keep the old MTU: there is no better estimate
	}
	p.link = uint16(to.MTU) // at most 65,535, the largest packet
	switch {
	case same && p.MTU < to.MTU:
		to.MTU = p.MTU // the route and its MTU are unchanged
	case known != 0 && known < to.MTU:
		to.MTU = known
		if p.search == nil {
			p.search = &search{}
		}
		p.search.next = until
	}
	p.MTU = to.MTU
}

// choose sets the size of the next probe: first the largest possible, then the middle of the
// remaining range. It reports false when the search is over.
func (p *pathMTU) choose(now clock.Time) bool {
	switch q := p.search; {
	case q.high == 0:
		q.high, q.size = int(p.link), int(p.link)
	case q.high-p.MTU >= mtuStep:
		q.size = (q.high + p.MTU + 1) / 2
	default:
		*q = search{next: now.Add(mtuAge)}
		return false
	}
	return true
}

// lost records that n probes were lost. After maxMTUProbes losses the search treats the size as too
// large.
func (p *pathMTU) lost(n int) {
	for q := p.search; n > 0 && q != nil; n-- {
		q.seq = 0
		if q.fails++; q.fails >= maxMTUProbes {
			q.high, q.fails, q.size = q.size-1, 0, 0
		}
	}
}

func (p *pathMTU) peerOffers(o *Options, plain, stamped bool) {
	p.stamped = stamped
	if p.DefaultMSS || !plain {
		p.peerMSS = o.MSS
	}
	if p.DefaultMSS {
		p.peerMSS = cmp.Or(p.peerMSS, defaultMSS(p.v6))
	}
}

// offer returns the MSS option of our SYN (RFC 9293 §3.7.1).
func (p *pathMTU) offer() uint16 {
	mss := uint16(p.fitting(int(p.link)))
	if p.maxSeg != 0 {
		mss = min(mss, p.maxSeg)
	}
	return mss
}

// mss returns the payload of a full segment for an MTU.
func (p *pathMTU) mss(mtu int) int {
	// RFC 9293 §3.7.1 assumes defaultMSS if the peer sends no MSS option (Path.DefaultMSS). Few
	// course nodes send the option, and all of them accept segments for the MTU of their links.
	mss := p.fitting(mtu)
	if p.peerMSS != 0 {
		mss = min(mss, max(int(p.peerMSS), MinMSS))
	}
	if p.maxSeg != 0 {
		mss = min(mss, int(p.maxSeg))
	}
	if p.stamped {
		mss -= stampBytes // RFC 9293 §3.7.1: subtract the options of every segment
	}
	return mss
}

// fitting returns the payload, options included, that fits an MTU.
func (p *pathMTU) fitting(mtu int) int {
	if p.v6 {
		return min(max(mtu, minPathMTU6)-ip6HeaderSize-HeaderSize, maxMSS)
	}
	return min(max(mtu, minPathMTU)-ipHeaderSize-HeaderSize, maxMSS)
}

// least returns the smallest MTU of a path, the MTU that a search starts from, and the smallest MTU
// that black hole detection assumes (RFC 8899 §5.1.2).
func (p *pathMTU) least() (minimum, base, assumed int) {
	if p.v6 {
		return minPathMTU6, minPathMTU6, minPathMTU6
	}
	return minPathMTU, baseMTU, leastMTU
}

// defaultMSS returns the MSS of a peer that sends no option (RFC 9293 §3.7.1, MUST-15).
func defaultMSS(v6 bool) uint16 {
	if v6 {
		return defaultMSS6
	}
	return defaultMSS4
}

// Plateau returns the next common MTU below the length of an IPv4 packet that was too big, for
// reports without an MTU (RFC 1191 §7).
func Plateau(length int) int {
	for _, mtu := range [...]int{32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296} {
		if mtu < length {
			return mtu
		}
	}
	return minPathMTU
}

// isProbe reports whether a router's report concerns the probe in flight and is plausible.
func (p *pathMTU) isProbe(seq uint64, mtu int) bool {
	q := p.search
	return q != nil && q.seq != 0 && seq == q.seq && mtu < q.size && mtu >= p.MTU
}

// contradicts reports whether an MTU is smaller than a segment that has arrived. The report may
// then be forged (RFC 5927 §7.2), so contradicts only stores it. If the path has really become
// narrower, the reported segment times out, and confirmed returns the MTU.
func (p *pathMTU) contradicts(seq uint64, mtu int) bool {
	if p.mss(mtu) >= int(p.acked) {
		return false
	}
	p.report = &mtuReport{mtu, seq}
	return true
}

// confirmed returns the MTU of the stored report after a timeout of its segment, or zero if there
// was no such report.
func (p *pathMTU) confirmed(una uint64) (mtu int) {
	if c := p.report; c != nil && c.seq >= una {
		mtu = c.mtu
	}
	p.report = nil
	return mtu
}

// narrow sets a smaller MTU, and makes the search try larger ones after mtuAge.
func (p *pathMTU) narrow(now clock.Time, mtu int) {
	p.MTU = mtu
	p.acked = uint16(min(int(p.acked), p.mss(mtu)))
	p.search = &search{next: now.Add(mtuAge)}
}

// onBlackHole makes segments smaller after repeated losses of full segments (RFC 4821 §7.7, RFC
// 8899 §4.3). If the losses had another cause, the first probe shows that.
func (p *pathMTU) onBlackHole(now clock.Time, probes bool) {
	_, mtu, assumed := p.least()
	if p.MTU <= mtu {
		mtu = max(p.MTU/2, assumed)
	}
	p.narrow(now, mtu)
	if probes {
		p.search.next = now
	}
}

// startLow starts the search from a small MTU. It reports false if the path's MTU is already that
// small.
func (p *pathMTU) startLow(now clock.Time) bool {
	_, base, _ := p.least()
	if p.MTU <= base {
		return false
	}
	p.MTU, p.search = base, &search{next: now}
	return true
}

func (p *pathMTU) due(now clock.Time) bool {
	q := p.search
	return q != nil && q.next.Due(now) && q.seq == 0
}

// probe returns the payload of the next probe, or zero if the search is over.
func (p *pathMTU) probe(now clock.Time) int {
	q := p.search
	if q.size == 0 {
		if !p.choose(now) {
			return 0
		}
		if p.mss(q.size) <= p.mss(p.MTU) {
			p.search = nil // the peer accepts no larger segments
			return 0
		}
	}
	return p.mss(q.size)
}

// arrived processes the arrival of the probe, and reports whether its size is larger than the
// estimate.
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
	if mtu >= int(p.link) {
		p.search = nil
	}
	return true
}

// found stores the MTU that a probe has found, for all connections to the peer.
func (p *peers) found(now clock.Time, peer netip.Addr, path *pathMTU) {
	if path.search == nil {
		p.mtus.forget(peer)
	} else {
		p.mtus.learn(now, peer, path.MTU, mtuAge)
	}
}

// mtuProbe sends the MTU probe that is due, if enough data follows it for the peer to report its
// loss. hold asks the caller to send nothing else until acknowledgments have made room for the
// probe.
func (d *sender) mtuProbe(now clock.Time, s *sending) (sent, hold bool) {
	p := &d.path
	if !d.probesMTU() {
		// RFC 1191 §6.3: try the first link's MTU again after a while.
		p.search, p.MTU = nil, int(p.link)
		d.updateMSS()
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

// probesMTU reports whether the connection may send probes. It needs SACK to detect their loss soon
// and to distinguish it from other losses.
func (d *sender) probesMTU() bool {
	return d.cfg.MTUProbing != MTUProbingOff && d.rec.ProbesTail()
}

// blackHole reports whether the path may drop large packets without a report: full segments time
// out, and they are larger than the smallest MTU that black hole detection assumes.
func (d *sender) blackHole(now clock.Time) bool {
	_, _, assumed := d.path.least()
	return d.cfg.MTUProbing != MTUProbingOff && d.rec.Retries >= blackHoleRetries &&
		!d.rec.Record.Empty() && now.Sub(d.wait.since) >= blackHoleTime &&
		d.path.MTU > assumed && d.rec.Record.FirstSize() >= d.MSS
}

// narrow sets a smaller MTU and retransmits the segments that are too large for it.
func (d *sender) narrow(now clock.Time, mtu int) {
	d.rec.ResendLarge(d.path.mss(mtu))
	d.path.narrow(now, mtu)
	d.updateMSS()
}

// TooBig reports to the connection that sent sequence number seq that a router dropped the segment,
// because the next link carries only mtu bytes.
func (h *Host) TooBig(now clock.Time, t Tuple, seq uint32, mtu int) {
	h.now = now
	c := h.lookup(now, &t)
	if c == nil {
		return
	}
	// RFC 5927 §4.1: only reports about data in flight are valid. RFC 1191 §3, RFC 8201 §4: the MTU
	// is never below the minimum of 68 or 1280 bytes.
	w := widen(c.snd.Una, seq)
	if least, _, _ := c.snd.path.least(); w < c.snd.Una || w >= c.snd.Nxt || mtu < least {
		return
	}
	switch {
	case c.snd.path.isProbe(w, mtu) && c.snd.rec.ResendProbe(w):
		c.snd.path.MTU, c.snd.path.search = mtu, &search{next: now.Add(mtuAge)}
		c.snd.updateMSS()
		h.peers.mtus.learn(now, t.RemoteAddr, mtu, mtuAge)
	case mtu >= c.snd.path.MTU:
		return
	default:
		c.leaveIdle() // a SYN may be in flight
		if c.snd.path.contradicts(w, mtu) {
			return
		}
		h.peers.mtus.learn(now, t.RemoteAddr, mtu, mtuAge) // RFC 1191 §6.2
		c.snd.narrow(now, mtu)
	}
	c.host.reschedule(c)
}

// PathMTU returns the MTU that the host remembers for a peer, or zero.
func (h *Host) PathMTU(now clock.Time, host netip.Addr) int {
	mtu, _ := h.peers.mtus.find(now, host)
	return mtu
}
