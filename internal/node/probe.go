package node

import (
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Sample is a connection's state at one instant. The root package has the same struct and describes
// its fields.
type Sample struct {
	Time                   time.Time
	State, CAState         string
	SndCwnd, SndSsthresh   int
	SndWnd, Pipe           int
	NotSentBytes, Unread   int
	RTT, RTTVar, MinRTT    time.Duration
	LatestRTT, RTO         time.Duration
	Acked, Sent, Received  uint64
	DeliveredBytes         uint64
	DeliveryRate           uint64
	TotalRetrans, TotalRTO uint64
	TailProbes, Missed     uint64
	Limited                string
	LimitedFor             time.Duration
}

// maxSamples limits the samples that wait for a program's function. Further ones are counted only.
const maxSamples = 4096

// probe passes a connection's samples from the loop to a program's function, which runs in its own
// goroutine: the loop never waits for it.
type probe struct {
	f    func(Sample)
	news chan struct{} // a token: there are samples
	done chan struct{} // closed after the last call of f
	shot Sample        // for put; loop only

	mu     sync.Mutex
	queue  []Sample
	missed uint64
	ended  bool
}

func newProbe(f func(Sample)) *probe {
	p := &probe{f: f, news: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run()
	return p
}

// put queues a sample. Loop only.
func (p *probe) put(s *Sample) {
	p.mu.Lock()
	switch {
	case p.ended:
	case len(p.queue) >= maxSamples:
		p.missed++
	default:
		s.Missed = p.missed
		p.queue = append(p.queue, *s)
	}
	p.mu.Unlock()
	wake(p.news)
}

// end ends the goroutine after it has passed on what is queued.
func (p *probe) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	wake(p.news)
}

// run calls f with the samples, in order of time, until end.
func (p *probe) run() {
	defer close(p.done)
	var batch []Sample
	for ended := false; !ended; {
		<-p.news
		p.mu.Lock()
		batch, p.queue = p.queue, batch[:0]
		ended = p.ended
		p.mu.Unlock()
		for i := range batch {
			p.f(batch[i])
		}
	}
}

// probes are the receivers of a connection's samples, apart from Taps.sampler.
type probes struct {
	mu  sync.Mutex // serializes calls of Probe
	set *probe     // the current one
	// told is nil as long as there were none. Loop only.
	told *receivers
}

// receivers lists receivers of samples.
type receivers struct {
	own      *probe      // of Probe
	watchers []*receiver // of WatchSamples
}

// noReceivers is the shared empty list. It is read only.
var noReceivers receivers

// receivers returns the receivers. Loop only.
func (p *probes) receivers() *receivers {
	if p.told == nil {
		return &noReceivers
	}
	return p.told
}

// edit returns the receivers for a change. Loop only.
func (p *probes) edit() *receivers {
	if p.told == nil {
		p.told = &receivers{}
	}
	return p.told
}

// Probe calls f with a sample for each ACK and event, in a separate goroutine, until Probe is
// called again or the connection ends. Nil ends it. When Probe returns, the previous f was called
// for the last time.
func (c *Conn) Probe(f func(Sample)) error {
	c.probes.mu.Lock()
	defer c.probes.mu.Unlock()
	if f != nil && c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	var p *probe
	if f != nil {
		p = newProbe(f)
	}
	err := c.node.Call(func(*stack.Stack, clock.Time) error {
		if failure := c.failure.Load(); c.gone && failure != nil {
			return *failure
		} else if c.gone {
			return net.ErrClosed
		}
		c.probes.edit().own = p
		c.reprobe()
		return nil
	})
	if old := c.probes.set; old != nil {
		old.end()
		<-old.done
	}
	c.probes.set = p
	if err == nil || p == nil {
		return nil // ending never fails
	}
	c.probes.set = nil
	p.end()
	return c.opError("set", err)
}

// reprobe turns TCP's samples on while there are receivers. Loop only.
func (c *Conn) reprobe() {
	a := c.probes.receivers()
	n := c.node
	if n.Taps.sampler == nil && n.cfg.Sampled == nil && a.own == nil && len(a.watchers) == 0 {
		c.tc.SetProbe(nil)
		return
	}
	c.tc.SetProbe(c.sampled)
}

// sampled passes a sample to all receivers. Loop only.
func (c *Conn) sampled(s *tcp.Info) {
	if w := c.node.Taps.sampler; w != nil {
		w.add(c.sid, s)
	}
	if f := c.node.cfg.Sampled; f != nil {
		f(c.sid, s)
	}
	a := c.probes.receivers()
	for _, w := range a.watchers {
		w.show(s)
	}
	p := a.own
	if p == nil {
		return
	}
	p.shot = Sample{
		Time: c.node.Time.Wall(s.Time), State: stack.StateName(s.State),
		CAState: s.Recovery,
		SndCwnd: s.Cwnd, SndSsthresh: s.Ssthresh, SndWnd: s.SendWindow, Pipe: s.Pipe,
		NotSentBytes: s.NotSent, Unread: s.Unread,
		RTT: s.RTT, RTTVar: s.RTTVar, MinRTT: s.MinRTT, LatestRTT: s.LatestRTT, RTO: s.RTO,
		Acked: s.Una, Sent: s.Nxt, Received: s.RcvNxt,
		DeliveredBytes: s.DeliveredBytes, DeliveryRate: uint64(s.DeliveryRate) * 8,
		TotalRetrans: s.Retransmits, TotalRTO: s.Timeouts,
		TailProbes: s.TailProbes,
		Limited:    s.Limited.String(), LimitedFor: s.Time.Sub(s.LimitedSince),
	}
	p.put(&p.shot)
}

// endProbe ends all receivers of a connection that is gone. Loop only.
func (c *Conn) endProbe() {
	a := c.probes.receivers()
	for len(a.watchers) > 0 {
		unwatch(c, a.watchers[0])
	}
	if p := a.own; p != nil {
		a.own = nil
		c.reprobe()
		p.end()
	}
}

// receiver is a receiver in the loop.
type receiver struct {
	show  func(*tcp.Info)
	ended func()
}

// WatchSamples calls show in the loop with each sample until stop is called or the connection is
// gone, and then ended once.
func (c *Conn) WatchSamples(show func(*tcp.Info), ended func()) (stop func(), err error) {
	w := &receiver{show, ended}
	err = c.node.Call(func(*stack.Stack, clock.Time) error {
		if c.gone {
			return net.ErrClosed
		}
		a := c.probes.edit()
		a.watchers = append(a.watchers, w)
		c.reprobe()
		return nil
	})
	return func() {
		_ = c.node.Call(func(*stack.Stack, clock.Time) error { unwatch(c, w); return nil })
	}, err
}

// unwatch removes a receiver. Loop only.
func unwatch(c *Conn, w *receiver) {
	a := c.probes.receivers()
	if i := slices.Index(a.watchers, w); i >= 0 {
		a.watchers = slices.Delete(a.watchers, i, i+1)
		w.ended()
		c.reprobe()
	}
}
