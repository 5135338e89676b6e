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

// Sample is what a program sees of a connection at one instant. The root package
// has the same struct, and says what its fields mean.
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

// maxSamples bounds what waits for a program's function; what comes while it is
// full is counted and not kept.
const maxSamples = 4096

// probe carries a connection's samples from the loop to a program's function,
// which has a goroutine of its own: whatever it does, the loop does not wait.
type probe struct {
	f    func(Sample)
	news chan struct{} // a token: look
	done chan struct{} // closed when f has had its last call
	shot Sample        // what is put; the loop's

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

// put queues a sample. The loop's.
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

// end has f called no more once what is queued has been given to it.
func (p *probe) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	wake(p.news)
}

// run gives f what there is, in the order of time, until the end.
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

// probes are who looks at a connection's samples beside the node's recorder.
type probes struct {
	mu  sync.Mutex // makes concurrent callers of Probe one
	set *probe     // the last that a program set
	// told are those who are told, nil: nobody ever was. The loop's.
	told *audience
}

// audience are who is told of samples.
type audience struct {
	own      *probe      // a program's
	watchers []*watching // operators'
}

// nobody is the audience of most connections; it is only read.
var nobody audience

// audience returns who is told. The loop's.
func (p *probes) audience() *audience {
	if p.told == nil {
		return &nobody
	}
	return p.told
}

// admit is audience for who adds himself. The loop's.
func (p *probes) admit() *audience {
	if p.told == nil {
		p.told = &audience{}
	}
	return p.told
}

// Probe has f called with a sample at every acknowledgment and event, in a
// goroutine of its own, until another call, or the end of the connection. Nil
// ends it. What was set before has had its last call when Probe returns.
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
		c.probes.admit().own = p
		c.reprobe()
		return nil
	})
	if old := c.probes.set; old != nil {
		old.end()
		<-old.done
	}
	c.probes.set = p
	if err == nil || p == nil {
		return nil // to stop is never an error
	}
	c.probes.set = nil
	p.end()
	return c.opError("set", err)
}

// reprobe has TCP show samples exactly while somebody looks. The loop's.
func (c *Conn) reprobe() {
	a := c.probes.audience()
	n := c.node
	if n.Taps.sampler == nil && n.cfg.Sampled == nil && a.own == nil && len(a.watchers) == 0 {
		c.tc.SetProbe(nil)
		return
	}
	c.tc.SetProbe(c.sampled)
}

// sampled passes a sample on to all who look. The loop's.
func (c *Conn) sampled(s *tcp.Info) {
	if w := c.node.Taps.sampler; w != nil {
		w.add(c.sid, s)
	}
	if f := c.node.cfg.Sampled; f != nil {
		f(c.sid, s)
	}
	a := c.probes.audience()
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

// endProbe lets go of whoever looks at a connection that is gone. The loop's.
func (c *Conn) endProbe() {
	a := c.probes.audience()
	for len(a.watchers) > 0 {
		unwatch(c, a.watchers[0])
	}
	if p := a.own; p != nil {
		a.own = nil
		c.reprobe()
		p.end()
	}
}

// watching is somebody who looks at a connection's samples. The loop calls its functions.
type watching struct {
	show  func(*tcp.Info)
	ended func()
}

// WatchSamples has the loop call show with each sample until stop is called or the connection is
// gone, and then ended, once.
func (c *Conn) WatchSamples(show func(*tcp.Info), ended func()) (stop func(), err error) {
	w := &watching{show, ended}
	err = c.node.Call(func(*stack.Stack, clock.Time) error {
		if c.gone {
			return net.ErrClosed
		}
		a := c.probes.admit()
		a.watchers = append(a.watchers, w)
		c.reprobe()
		return nil
	})
	return func() {
		_ = c.node.Call(func(*stack.Stack, clock.Time) error { unwatch(c, w); return nil })
	}, err
}

// unwatch ends a watching. The loop's.
func unwatch(c *Conn, w *watching) {
	a := c.probes.audience()
	if i := slices.Index(a.watchers, w); i >= 0 {
		a.watchers = slices.Delete(a.watchers, i, i+1)
		w.ended()
		c.reprobe()
	}
}
