package node

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Sample is a connection's state at one time, with the fields of Conn.Info. Acked, Sent and
// Received are numbers of bytes: acknowledged by the peer, sent, and received in order.
type Sample struct {
	// Time is when the sample was taken, in the time of the node's Clock if it has one.
	Time time.Time
	// State is the name from RFC 9293 §3.3.2, with underscores.
	State                 string
	Acked, Sent, Received uint64
	// Missed counts the samples that were dropped because the function was too slow.
	Missed uint64
	control.Info
}

// maxSamples limits the samples that wait for a program's function. Further samples are only
// counted.
const maxSamples = 4096

// probes are the receivers of a connection's samples, except Taps.sampler.
type probes struct {
	mu  sync.Mutex // serializes calls of Probe
	end func()     // ends the current Probe; nil: no Probe
	// list has the receivers. It is nil until there is one. Loop only.
	list *receivers
}

type receivers []*receiver

// receivers returns the receivers. Loop only.
func (p *probes) receivers() receivers {
	if p.list == nil {
		return nil
	}
	return *p.list
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
		if !n.Add(Sample{
			Time: c.node.Time.Wall(i.Time), State: stack.StateName(i.State),
			Acked: i.Una, Sent: i.Nxt, Received: i.RcvNxt, Missed: missed, Info: i.Info,
		}) {
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

// endProbe ends all receivers of a connection that is gone. Loop only.
func (c *Conn) endProbe() {
	for _, w := range slices.Clone(c.probes.receivers()) {
		unwatch(c, w)
	}
}

// receiver receives a connection's samples in the loop.
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
		if c.probes.list == nil {
			c.probes.list = new(receivers)
		}
		*c.probes.list = append(*c.probes.list, w)
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
		*c.probes.list = slices.Delete(*c.probes.list, i, i+1)
		w.ended()
		c.reprobe()
	}
}
