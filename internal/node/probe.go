package node

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Sample is a connection's state at one instant. The root package has the same struct, where its
// fields are described.
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

// maxSamples limits the samples that wait for a program's function. Further samples are only
// counted.
const maxSamples = 4096

// probes are the receivers of a connection's samples, except Taps.sampler.
type probes struct {
	mu  sync.Mutex // serializes calls of Probe
	end func()     // ends the current Probe; nil: no Probe
	// told has the receivers. It is nil while there are none. Loop only.
	told *receivers
}

type receivers []*receiver

// receivers returns the receivers. Loop only.
func (p *probes) receivers() receivers {
	if p.told == nil {
		return nil
	}
	return *p.told
}

// Probe calls f with a sample for each ACK and event, in a separate goroutine, until Probe is
// called again or the connection ends. A nil f ends it. When Probe returns, the previous f is no
// longer running.
func (c *Conn) Probe(f func(Sample)) error {
	c.probes.mu.Lock()
	defer c.probes.mu.Unlock()
	if f != nil && c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	before := c.probes.end
	c.probes.end = nil
	var err error
	if f != nil {
		c.probes.end, err = probe(c, f)
	}
	if before != nil {
		before()
	}
	if failure := c.failure.Load(); err != nil && failure != nil {
		err = *failure
	}
	if err != nil {
		return c.opError("set", err)
	}
	return nil
}

// probe calls f with samples until end is called or the connection is gone. When end returns, f is
// no longer running.
func probe(c *Conn, f func(Sample)) (end func(), err error) {
	n, missed := NewQueue[Sample](maxSamples), uint64(0)
	stop, err := c.WatchSamples(func(i *tcp.Info) {
		s := sampleOf(c, i)
		s.Missed = missed
		if !n.Add(s) {
			missed++
		}
	}, n.End)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Each(context.Background(), nil, f)
	}()
	return func() {
		stop()
		n.End() // the node may be closed
		<-done
	}, nil
}

// reprobe enables TCP's samples while there are receivers. Loop only.
func (c *Conn) reprobe() {
	n := c.node
	if n.Taps.sampler == nil && n.cfg.Sampled == nil && len(c.probes.receivers()) == 0 {
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
	for _, w := range c.probes.receivers() {
		w.show(s)
	}
}

func sampleOf(c *Conn, s *tcp.Info) Sample {
	return Sample{
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
}

// endProbe ends all receivers of a connection that is gone. Loop only.
func (c *Conn) endProbe() {
	for _, w := range slices.Clone(c.probes.receivers()) {
		unwatch(c, w)
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
		if c.probes.told == nil {
			c.probes.told = new(receivers)
		}
		*c.probes.told = append(*c.probes.told, w)
		c.reprobe()
		return nil
	})
	return func() {
		_ = c.node.Call(func(*stack.Stack, clock.Time) error { unwatch(c, w); return nil })
	}, err
}

// unwatch removes a receiver. Loop only.
func unwatch(c *Conn, w *receiver) {
	if i := slices.Index(c.probes.receivers(), w); i >= 0 {
		*c.probes.told = slices.Delete(*c.probes.told, i, i+1)
		w.ended()
		c.reprobe()
	}
}
