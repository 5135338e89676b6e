package icmp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TraceConfig says how a Trace goes about it.
type TraceConfig struct {
	Dst   netip.Addr
	Src   netip.Addr // invalid: that of the way out
	Iface int        // negative: the one that the routing table says
	Kind  Kind
	ID    uint16 // an echo's identifier, the source port of a datagram or of the first SYN
	// Port is the destination port of the first datagram, the sequence number of the
	// first echo, and the one port of all SYNs.
	Port       uint16
	First, Max int // the TTLs to begin and to end with
	Queries    int // probes a TTL
	Parallel   int // probes that wait for an answer at once
	TOS        uint8
	DF         bool
	Data       []byte // what each probe carries
	// Wait is the most that an answer is waited for. It is less where another has come:
	// Here times as long as one of the same TTL took, or Near times as long as one of a
	// greater TTL. Zero: not.
	Wait       time.Duration
	Here, Near float64
	Gap        time.Duration // the least between two probes
	// Overhead is what a packet has in front of Data. If it is set, the trace finds the
	// MTU of the path: a probe that is too large for a link is sent again as large as that
	// takes. Parallel must be 1 and DF set then.
	Overhead int
}

// waitGrain is added to what an answer took, so that the wait for others is not too
// short where it took next to nothing.
const waitGrain = time.Millisecond

// Trace finds the routers on a way: it sends probes whose TTL grows until the
// destination answers one, or somebody says that there is no way on. Of probes under
// way there are Parallel at the most, and in all Queries times the TTLs.
type Trace struct {
	cfg     TraceConfig
	probes  []traced   // in the order in which they are sent
	next    int        // the first that was not sent yet
	oldest  int        // all before it are done
	end     int        // where the last TTL of interest ends
	waiting int        // sent and not done
	due     clock.Time // when the next may be sent
	stopped bool
	told    int // hops that Hop has returned
}

// traced is one probe.
type traced struct {
	at    clock.Time // when it was sent; Never: not yet
	done  bool
	mtu   int   // what it was cut to; 0: it was not
	reply Reply // its From is invalid if none came
}

// NewTrace returns a trace whose first probes are due at once.
func NewTrace(cfg TraceConfig) *Trace {
	n := (cfg.Max - cfg.First + 1) * cfg.Queries
	return &Trace{cfg: cfg, probes: make([]traced, n), end: n}
}

// Output fills in the next probe and reports whether there is one to be sent.
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

// mayProbe reports whether there is one more to be sent.
func (t *Trace) mayProbe() bool {
	return !t.Done() && t.next < t.end && t.waiting < t.cfg.Parallel
}

// index is the number of the probe that an answer is about.
func (t *Trace) index(a *Answer) (int, bool) {
	id, seq := a.ID-t.cfg.ID, a.Seq-t.cfg.Port
	i := int(seq)
	if t.cfg.Kind == SYN {
		i, id = int(id), seq
	}
	return i, a.Kind == t.cfg.Kind && id == 0 && i < t.next &&
		(a.Dst == t.cfg.Dst || a.Verdict == Replied)
}

// Input takes an answer; those to others' probes are passed over.
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

// What RFC 792 has for a probe that a link does not take.
const (
	typeUnreachable = 3
	codeFragNeeded  = 4
)

// Refused is told why the probe that Output gave last did not leave. No other would. One
// that is too large is answered as a router would answer it.
func (t *Trace) Refused(now clock.Time, err error, mtu int) {
	i := t.next - 1
	switch {
	case t.shrink(i, mtu):
		return
	case mtu > 0:
		t.Input(now, &Answer{
			Kind: t.cfg.Kind, ID: t.cfg.ID, Seq: t.cfg.Port + uint16(i), Dst: t.cfg.Dst,
			From: t.cfg.Src, Verdict: Unreachable, MTU: mtu,
			Type: typeUnreachable, Code: codeFragNeeded,
		})
		return
	}
	t.probes[i].reply = Reply{
		Answer: Answer{Verdict: Failed, Err: err, MTU: mtu}, At: now, WrongAt: -1,
	}
	t.finish(i)
	t.end = min(t.end, t.next)
}

// shrink has the last probe, which was too large for a link, sent again as large as the
// link takes. It is false where that is no news, so that it ends.
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

// finish notes that nothing more is waited for of a probe.
func (t *Trace) finish(i int) {
	t.probes[i].done = true
	t.waiting--
	for t.oldest < t.next && t.probes[t.oldest].done {
		t.oldest++
	}
}

// patience is how long the answer to probe i is waited for.
func (t *Trace) patience(i int) time.Duration {
	first := i - i%t.cfg.Queries
	if d, ok := t.took(first, min(first+t.cfg.Queries, t.next), t.cfg.Here); ok {
		return d
	}
	if d, ok := t.took(i+1, t.next, t.cfg.Near); ok {
		return d
	}
	return t.cfg.Wait
}

// took is the time that the first answered probe of some took, so many times.
func (t *Trace) took(from, to int, times float64) (time.Duration, bool) {
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

// Deadline returns when Output or Advance has something to do.
func (t *Trace) Deadline() (due clock.Time) {
	if t.Done() {
		return clock.Never
	}
	if t.mayProbe() {
		due = t.due
	}
	for i := t.oldest; i < min(t.next, t.end); i++ {
		if p := &t.probes[i]; !p.done {
			due = clock.Earliest(due, p.at.Add(t.patience(i)))
		}
	}
	return due
}

// Advance gives up the probes that were waited for long enough.
func (t *Trace) Advance(now clock.Time) {
	for i := t.oldest; i < t.next; i++ {
		if p := &t.probes[i]; !p.done && p.at.Add(t.patience(i)).Due(now) {
			t.finish(i)
		}
	}
}

// Stop ends the trace. Hops that are whole can still be read.
func (t *Trace) Stop() { t.stopped = true }

// Done reports whether the trace has ended.
func (t *Trace) Done() bool { return t.stopped || t.oldest >= t.end }

// Hop returns the next TTL whose probes are all done, and what came back for each.
func (t *Trace) Hop() (ttl int, replies []Reply, ok bool) {
	from := t.told * t.cfg.Queries
	to := min(from+t.cfg.Queries, t.end)
	if from >= to || t.oldest < to {
		return 0, nil, false
	}
	t.told++
	for _, p := range t.probes[from:to] {
		replies = append(replies, p.reply)
	}
	return t.cfg.First + t.told - 1, replies, true
}
