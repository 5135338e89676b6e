package icmp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TraceConfig configures a Trace.
type TraceConfig struct {
	Dst   netip.Addr
	Src   netip.Addr // source; invalid: the address of the outgoing interface
	Iface int        // outgoing interface; negative: the route's
	Kind  Kind
	ID    uint16 // identifier of echoes, source port of datagrams or of the first SYN
	// Port is the destination port of the first datagram, the sequence number of the first echo,
	// and the port of all SYNs.
	Port       uint16
	First, Max int // first and last TTL
	Queries    int // probes for each TTL
	Parallel   int // maximum number of unanswered probes
	TOS        uint8
	DF         bool
	Data       []byte // data of each probe
	// Wait is the maximum time to wait for an answer. If a probe with the same TTL was answered,
	// the wait is Here times that round trip; if a probe with a greater TTL was answered, Near
	// times that round trip. A zero Here or Near disables this.
	Wait       time.Duration
	Here, Near float64
	Gap        time.Duration // minimum time between two probes
	// Overhead is the length of a packet's headers before Data. If set, the trace finds the path
	// MTU: if a probe is too large for a link, it repeats the probe with the link's size. Parallel
	// must then be 1, and DF set.
	Overhead int
}

// waitGrain is added to a round trip, so that a very short one does not make the wait too short.
const waitGrain = time.Millisecond

// Trace finds the routers of a path: it sends probes with increasing TTL until the destination
// answers one, or a router reports it unreachable. At most Parallel probes wait for answers. The
// total is at most Queries for each TTL.
type Trace struct {
	cfg      TraceConfig
	probes   []traced   // probes in the order of sending
	next     int        // index of the first probe that was not sent
	oldest   int        // all probes before this index are finished
	end      int        // index after the last relevant probe
	waiting  int        // number of probes sent and not finished
	due      clock.Time // when the next probe may be sent
	stopped  bool
	returned int // number of hops that Hop has returned
}

// traced is the state of one probe.
type traced struct {
	at    clock.Time // when the probe was sent; Never: not sent
	done  bool
	mtu   int   // reduced size of the probe; 0: full size
	reply Reply // reply to the probe; From is invalid without a reply
}

// NewTrace returns a trace whose first probes are due at once.
func NewTrace(cfg TraceConfig) *Trace {
	n := (cfg.Max - cfg.First + 1) * cfg.Queries
	return &Trace{cfg: cfg, probes: make([]traced, n), end: n}
}

// Output fills in the next probe; false: none is due.
func (t *Trace) Output(now clock.Time, out *Packet) bool {
	if !t.mayProbe() || t.due > now {
		return false
	}
	t.due = now.Add(t.cfg.Gap)
	i := t.next
	t.next++
	t.waiting++
	t.probes[i].at = now
	*out = Packet{
		Kind: t.cfg.Kind, Dst: t.cfg.Dst, Src: t.cfg.Src, Iface: t.cfg.Iface,
		TTL: uint8(t.cfg.First + i/t.cfg.Queries), TOS: t.cfg.TOS, DF: t.cfg.DF,
		ID: t.cfg.ID, Seq: t.cfg.Port + uint16(i), Data: t.cfg.Data,
	}
	if t.cfg.Kind == SYN {
		out.ID, out.Seq = t.cfg.ID+uint16(i), t.cfg.Port
	}
	return true
}

// mayProbe reports whether another probe may be sent.
func (t *Trace) mayProbe() bool {
	return !t.Done() && t.next < t.end && t.waiting < t.cfg.Parallel
}

// index returns the number of the probe that an answer is about.
func (t *Trace) index(a *Answer) (int, bool) {
	id, seq := a.ID-t.cfg.ID, a.Seq-t.cfg.Port
	i := int(seq)
	if t.cfg.Kind == SYN {
		i, id = int(id), seq
	}
	return i, a.Kind == t.cfg.Kind && id == 0 && i < t.next &&
		(a.Dst == t.cfg.Dst || a.Verdict == Replied)
}

// Input processes an answer. It ignores answers to other probes.
func (t *Trace) Input(now clock.Time, a *Answer) {
	i, ours := t.index(a)
	if t.stopped || !ours || t.probes[i].done || a.Verdict == Noted {
		return
	}
	if t.shrink(i, a.MTU) {
		return
	}
	p := &t.probes[i]
	p.reply = Reply{Answer: *a, At: now, RTT: now.Sub(p.at), WrongAt: -1, PathMTU: p.mtu}
	p.reply.Data = nil
	t.finish(i)
	if a.Verdict != Expired {
		t.end = min(t.end, (i/t.cfg.Queries+1)*t.cfg.Queries)
	}
}

// Refused reports that the last probe from Output was not sent, which ends the trace. A probe that
// was too large is handled like a router's answer.
func (t *Trace) Refused(now clock.Time, err error, mtu int) {
	i := t.next - 1
	switch {
	case t.shrink(i, mtu):
		return
	case mtu > 0:
		r := errTooBig
		if t.cfg.Dst.Is6() {
			r = r.toICMPv6()
		}
		t.Input(now, &Answer{
			Kind: t.cfg.Kind, ID: t.cfg.ID, Seq: t.cfg.Port + uint16(i), Dst: t.cfg.Dst,
			From: t.cfg.Src, Verdict: Unreachable, MTU: mtu,
			Type: r.Type, Code: r.Code,
		})
		return
	}
	t.probes[i].reply = Reply{
		Answer: Answer{Verdict: Failed, Err: err, MTU: mtu}, At: now, WrongAt: -1,
	}
	t.finish(i)
	t.end = min(t.end, t.next)
}

// shrink repeats the last probe, which was too large for a link, with the link's size. It returns
// false if that size is not smaller, so that the trace cannot repeat the probe forever.
func (t *Trace) shrink(i, mtu int) bool {
	data := mtu - t.cfg.Overhead
	if t.cfg.Overhead == 0 || i != t.next-1 || data < 0 || data >= len(t.cfg.Data) {
		return false
	}
	t.cfg.Data = t.cfg.Data[:data]
	t.probes[i] = traced{mtu: mtu}
	t.next--
	t.waiting--
	t.due = clock.Never
	return true
}

// finish marks a probe as finished.
func (t *Trace) finish(i int) {
	t.probes[i].done = true
	t.waiting--
	for t.oldest < t.next && t.probes[t.oldest].done {
		t.oldest++
	}
}

// waitFor returns how long to wait for the answer to probe i.
func (t *Trace) waitFor(i int) time.Duration {
	first := i - i%t.cfg.Queries
	if d, ok := t.scaledRTT(first, min(first+t.cfg.Queries, t.next), t.cfg.Here); ok {
		return d
	}
	if d, ok := t.scaledRTT(i+1, t.next, t.cfg.Near); ok {
		return d
	}
	return t.cfg.Wait
}

// scaledRTT returns the multiple of the round trip of the first answered probe in a range.
func (t *Trace) scaledRTT(from, to int, times float64) (time.Duration, bool) {
	if times <= 0 {
		return 0, false
	}
	for i := from; i < to; i++ {
		if p := &t.probes[i]; p.reply.From.IsValid() {
			d := time.Duration(float64(p.reply.RTT+waitGrain) * times)
			return min(d, t.cfg.Wait), true
		}
	}
	return 0, false
}

// Deadline returns when to call Output or Advance next.
func (t *Trace) Deadline() (due clock.Time) {
	if t.Done() {
		return clock.Never
	}
	if t.mayProbe() {
		due = t.due
	}
	for i := t.oldest; i < min(t.next, t.end); i++ {
		if p := &t.probes[i]; !p.done {
			due = clock.Earliest(due, p.at.Add(t.waitFor(i)))
		}
	}
	return due
}

// Advance gives up probes that were not answered in time.
func (t *Trace) Advance(now clock.Time) {
	for i := t.oldest; i < t.next; i++ {
		if p := &t.probes[i]; !p.done && p.at.Add(t.waitFor(i)).Due(now) {
			t.finish(i)
		}
	}
}

// Stop ends the trace. Complete hops can still be read.
func (t *Trace) Stop() { t.stopped = true }

// Done reports whether the trace has ended.
func (t *Trace) Done() bool { return t.stopped || t.oldest >= t.end }

// Hop returns the next TTL whose probes are all finished, with the replies.
func (t *Trace) Hop() (ttl int, replies []Reply, ok bool) {
	from := t.returned * t.cfg.Queries
	to := min(from+t.cfg.Queries, t.end)
	if from >= to || t.oldest < to {
		return 0, nil, false
	}
	t.returned++
	for _, p := range t.probes[from:to] {
		replies = append(replies, p.reply)
	}
	return t.cfg.First + t.returned - 1, replies, true
}
