package icmp

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// PingConfig configures a Ping.
type PingConfig struct {
	Dst   netip.Addr
	Src   netip.Addr // invalid: the address of the outgoing interface
	Iface int        // outgoing interface; negative: the route's
	ID    uint16     // identifies the replies to this ping
	TTL   uint8      // TTL of the requests; 0: the host's default
	TOS   uint8
	DF    bool
	Data  []byte // data of each request
	// Count is the number of requests; 0: until Stop.
	Count int
	// Interval is the time between requests; 0: a second. The first Preload are sent at once.
	Interval time.Duration
	Preload  int
	// Flood sends the next request when a reply arrives, or after floodInterval. Adaptive sends it
	// when a reply arrives, or after Interval.
	Flood, Adaptive bool
	// Wait is how long to wait for the first reply after the last request; 0: ten seconds. After a
	// reply, Ping waits twice the longest round trip, and at least the interval and a second.
	// iputils does not wait that second, and counts replies that a busy machine delays as lost.
	Wait time.Duration
	// Deadline ends the ping after this time, and at the first error. With a Deadline, Count is the
	// number of replies to wait for. 0: no deadline.
	Deadline time.Duration
	// Group means that several hosts may answer.
	Group bool
	// Outstanding makes Next report a request that had no reply when the next one was sent.
	Outstanding bool
}

// These are default times of a ping.
const (
	defaultInterval = time.Second
	defaultWait     = 10 * time.Second
	leastWait       = time.Second
	// floodInterval is how long a flood waits for a reply before its next request. floodGap is the
	// minimum time between any two requests, which limits a flood.
	floodInterval = 10 * time.Millisecond
	floodGap      = 20 * time.Microsecond
	adaptiveGap   = 2 * time.Millisecond
)

// Ping sends echo requests and collects the replies (RFC 792). It remembers a request until its
// sequence number is reused: 65,536 requests.
type Ping struct {
	replies
	cfg     PingConfig
	start   clock.Time
	last    clock.Time // when the last request was sent
	next    clock.Time // when the next request may be sent
	end     clock.Time // when to stop waiting for replies; Never: unknown
	flights map[uint16]flight
	stats   pingStats
	done    bool
}

type flight struct {
	at       clock.Time
	answered bool
}

// NewPing returns a ping that sends its first request at once.
func NewPing(now clock.Time, cfg PingConfig) *Ping {
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Flood {
		cfg.Interval = floodInterval
	}
	if cfg.Wait <= 0 {
		cfg.Wait = defaultWait
	}
	p := &Ping{cfg: cfg, start: now, next: now, flights: map[uint16]flight{}}
	if cfg.Deadline > 0 {
		p.end = now.Add(cfg.Deadline)
	}
	return p
}

// Output fills in the request that is due; false: none is due.
func (p *Ping) Output(now clock.Time, out *Packet) bool {
	if p.done || p.allSent() || !p.next.Due(now) {
		return false
	}
	if p.cfg.Outstanding && p.stats.Sent > 0 {
		seq := uint16(p.stats.Sent)
		if f := p.flights[seq]; !f.answered {
			p.addReply(Reply{Answer: Answer{Seq: seq}, At: now, Late: true, WrongAt: -1})
		}
	}
	if p.stats.Sent == 0 {
		p.start = now
	}
	p.stats.Sent++
	seq := uint16(p.stats.Sent)
	p.flights[seq] = flight{at: now}
	p.last = now
	p.schedule(now)
	*out = Packet{
		Kind: Echo, Dst: p.cfg.Dst, Src: p.cfg.Src, Iface: p.cfg.Iface, TTL: p.cfg.TTL,
		TOS: p.cfg.TOS, DF: p.cfg.DF, ID: p.cfg.ID, Seq: seq, Data: p.cfg.Data,
	}
	return true
}

// allSent reports whether the last request was sent.
func (p *Ping) allSent() bool {
	return p.cfg.Count > 0 && p.stats.Sent >= p.cfg.Count && p.cfg.Deadline == 0
}

// schedule sets when the next request is due, or until when to wait for replies.
func (p *Ping) schedule(now clock.Time) {
	switch {
	case p.allSent():
		wait := p.cfg.Wait
		if p.stats.Received > 0 {
			wait = max(2*p.stats.Max, p.cfg.Interval, leastWait)
		}
		p.end = now.Add(wait)
	case p.stats.Sent < p.cfg.Preload:
		p.next = now
	case p.next.Add(p.cfg.Interval) < now:
		p.next = now.Add(p.cfg.Interval) // the ping is too late to catch up
	default:
		p.next = p.next.Add(p.cfg.Interval) // keeps the rhythm even if this request is late
	}
}

// sendEarlier sends the next request earlier, because the last one was answered.
func (p *Ping) sendEarlier(now clock.Time) {
	gap := floodGap
	switch {
	case p.cfg.Flood:
	case p.cfg.Adaptive:
		gap = adaptiveGap
	default:
		return
	}
	p.next = clock.Earliest(p.next, max(now, p.last.Add(gap)))
}

// Input processes an answer. It ignores answers to other requests.
func (p *Ping) Input(now clock.Time, a *Answer) {
	if p.done || a.Kind != Echo || a.ID != p.cfg.ID ||
		a.Verdict != Replied && a.Dst != p.cfg.Dst {
		return
	}
	f, ok := p.flights[a.Seq]
	if !ok {
		return
	}
	r := Reply{Answer: *a, At: now, RTT: now.Sub(f.at), WrongAt: -1}
	r.Data = nil
	p.stats.Pipe = max(p.stats.Pipe, int(uint16(p.stats.Sent)-a.Seq)+1)
	switch {
	case a.Verdict == Noted:
	case a.Verdict != Replied:
		p.stats.Errors++
		p.sendEarlier(now)
	default:
		r.Duplicate = f.answered
		p.flights[a.Seq] = flight{at: f.at, answered: true}
		p.reply(a, &r)
		p.sendEarlier(now)
	}
	p.addReply(r)
	p.checkEnd()
}

// reply records an echo reply.
func (p *Ping) reply(a *Answer, r *Reply) {
	r.Elsewhere = !p.cfg.Group && a.From != p.cfg.Dst
	if a.Damaged {
		p.stats.Corrupted++
		return
	}
	if r.Duplicate {
		p.stats.Duplicates++
	} else {
		p.stats.Received++
	}
	p.stats.add(r.RTT)
	n := min(len(a.Data), len(p.cfg.Data))
	if bytes.Equal(a.Data[:n], p.cfg.Data[:n]) {
		return
	}
	for i := range n {
		if a.Data[i] != p.cfg.Data[i] {
			r.WrongAt, r.Want = i, p.cfg.Data[i]
			break
		}
	}
	r.Data = bytes.Clone(a.Data[:n])
}

// Refused reports that the last request from Output was not sent. A request that was too large
// counts as an error, as if a router had reported it. Other requests count as sent and lost.
func (p *Ping) Refused(now clock.Time, err error, mtu int) {
	seq := uint16(p.stats.Sent)
	if mtu > 0 {
		p.stats.Errors++
	}
	p.addReply(Reply{
		Answer: Answer{Seq: seq, Dst: p.cfg.Dst, Verdict: Failed, MTU: mtu, Err: err},
		At:     now, WrongAt: -1,
	})
	p.checkEnd()
}

// checkEnd ends the ping if its condition is met.
func (p *Ping) checkEnd() {
	if p.cfg.Count > 0 && p.stats.Received+p.stats.Errors >= p.cfg.Count ||
		p.cfg.Deadline > 0 && p.stats.Errors > 0 {
		p.Stop()
	}
}

// Deadline returns when to call Output or Advance next.
func (p *Ping) Deadline() clock.Time {
	switch {
	case p.done:
		return clock.Never
	case p.allSent():
		return p.end
	}
	return clock.Earliest(p.next, p.end)
}

// Advance ends the ping if its end is due.
func (p *Ping) Advance(now clock.Time) {
	if p.end.Due(now) {
		p.Stop()
	}
}

// Stop ends the ping. Its results can still be read.
func (p *Ping) Stop() { p.done = true }

// Done reports whether the ping has ended.
func (p *Ping) Done() bool { return p.done }
