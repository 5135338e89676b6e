package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// search is packetization layer path MTU discovery, RFC 4821 and RFC 8899: a
// segment that is larger than the path is known to carry goes first among
// ordinary ones, and arrives or does not.
type search struct {
	next  clock.Time // when to look for more than is believed; never: there is no more
	high  int        // the path carries no more than this; zero: not known
	size  int        // of the next probe, or the one in flight; zero: to be chosen
	seq   uint64     // where it begins; zero: none is in flight
	fails uint8      // losses of that size in a row
}

const (
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

// suspectBlackHole makes segments smaller when full ones are sent again and
// again in vain: RFC 4821 §7.7, RFC 8899 §4.3.
func (c *Conn) suspectBlackHole(now clock.Time) {
	if c.host.cfg.MTUProbing == MTUProbingOff || c.stats.retries < blackHoleRetries ||
		c.rec.sent.empty() || now.Sub(c.wait.since) < blackHoleTime || c.path.MTU <= leastMTU {
		return
	}
	if c.rec.sent.at(c.rec.sent.first).text() < c.snd.mss {
		return // not even a small one arrives: it is not the size
	}
	mtu := baseMTU
	if c.path.MTU <= baseMTU {
		mtu = max(c.path.MTU/2, leastMTU)
	}
	c.setMTU(mtu)
	c.pmtu.acked = min(c.pmtu.acked, c.snd.mss)
	c.pmtu.search = search{next: now.Add(mtuAge)}
	if c.probesMTU() {
		c.pmtu.next = now // if it was something else after all, the first probe finds that out
	}
}

// probeFromBase starts small and looks for more, when the operator says so.
func (c *Conn) probeFromBase(now clock.Time) {
	if c.host.cfg.MTUProbing == MTUProbingOn && c.probesMTU() && c.path.MTU > baseMTU {
		c.setMTU(baseMTU)
		c.pmtu.search = search{next: now}
	}
}

// probesMTU reports whether probes may be sent: their loss has to be told from
// that of others, and noticed soon.
func (c *Conn) probesMTU() bool {
	return c.host.cfg.MTUProbing != MTUProbingOff && c.rcv.sack && c.how.probes
}

// outputMTUProbe sends a probe, if it is time for one and losing it would be
// noticed: enough must follow it for the peer to report the gap. Hold asks that
// nothing else be sent, until acknowledgments have made room for it.
func (c *Conn) outputMTUProbe(now clock.Time, t *Train) (sent, hold bool) {
	p := &c.pmtu
	if !p.next.Due(now) || p.seq != 0 {
		return false, false
	}
	if !c.probesMTU() {
		// RFC 1191 §6.3: after a while the first link's MTU is tried again, and a router objects.
		p.search = search{}
		c.setMTU(p.link)
		return false, false
	}
	if p.size == 0 && !c.chooseProbe(now) {
		return false, false
	}
	n := c.mssFor(p.size)
	need := n + (dupThresh+1)*c.snd.mss
	if c.rec.kind != steady || c.rec.sent.count[sacked] > 0 || c.snd.unsent() < need ||
		c.snd.usable() < need || c.cc.Cwnd() < need {
		return false, false
	}
	if c.allowance() < n {
		return false, c.rec.pipe() > 0
	}
	p.seq = c.snd.nxt
	c.begin(t, c.snd.nxt, 0)
	c.snd.lend(t, c.snd.nxt, n, n)
	c.enter(now, c.snd.nxt, n, recMTUProbe)
	c.snd.nxt += uint64(n)
	c.leave(now, t)
	return true, false
}

// enter records one segment that is sent for the first time.
func (c *Conn) enter(now clock.Time, seq uint64, size int, flags recFlags) {
	c.rec.sent.push(now, seq, size, flags)
	c.rec.spend(size)
	if c.timers[timerRTO] == clock.Never {
		c.wait.since = now
		c.watch(now)
		c.armRTO(now)
	}
	c.armProbe(now)
}

// chooseProbe decides on the MTU to try next: at first all that there can be,
// which is right more often than not, then half way. It reports false when the
// search is over for now.
func (c *Conn) chooseProbe(now clock.Time) bool {
	p := &c.pmtu
	switch {
	case p.high == 0:
		p.high = p.link
		p.size = p.link
	case p.high-c.path.MTU >= mtuStep:
		p.size = (p.high + c.path.MTU + 1) / 2
	default:
		p.search = search{next: now.Add(mtuAge)}
		return false
	}
	if c.mssFor(p.size) <= c.snd.mss {
		p.search = search{} // the peer takes no more
		return false
	}
	return true
}

// mtuProbeArrived takes the size that a probe has shown to fit.
func (c *Conn) mtuProbeArrived(now clock.Time) {
	p := &c.pmtu
	mtu := p.size
	p.seq, p.fails, p.size = 0, 0, 0
	if mtu <= c.path.MTU {
		return
	}
	c.setMTU(mtu)
	if mtu >= p.link {
		p.search = search{}
		c.host.mtus.forget(c.tuple.RemoteAddr)
		return
	}
	c.host.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
}

// mtuProbesLost says that the path does not carry the probe, if it happens often enough.
func (c *Conn) mtuProbesLost(n int) {
	p := &c.pmtu
	for range n {
		p.seq = 0
		if p.fails++; p.fails >= maxMTUProbes {
			p.high, p.fails, p.size = p.size-1, 0, 0
		}
	}
}

// probeTooBig takes a router's report about a probe in flight, which settles
// the matter, and reports whether it was one.
func (c *Conn) probeTooBig(now clock.Time, seq uint64, mtu int) bool {
	p := &c.pmtu
	if p.seq == 0 || seq != p.seq || mtu >= p.size || mtu < c.path.MTU {
		return false
	}
	id := c.rec.sent.find(seq)
	if !c.rec.sent.has(id) || c.rec.sent.at(id).flags&recMTUProbe == 0 {
		return false
	}
	rec := c.rec.sent.at(id)
	rec.flags &^= recMTUProbe
	p.seq, p.fails, p.high = 0, 0, mtu
	c.setMTU(mtu)
	c.host.mtus.learn(now, c.tuple.RemoteAddr, mtu, mtuAge)
	p.search = search{next: now.Add(mtuAge)}
	if rec.place == inFlight {
		c.rec.sent.move(id, rec, lost)
		c.rec.force = true
	}
	c.touch()
	return true
}
