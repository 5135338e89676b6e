//go:build linux

package lead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
)

// Sample is the result of one run. Fields that were not measured are zero.
type Sample struct {
	Value      float64 // in the unit of the case
	Sender     float64 // CPU time of the sender in ns per byte
	Receiver   float64 // CPU time of the receiver in ns per byte
	Drops      uint64  // packets dropped in our queues
	Whole      bool    // everything that the sender wrote has arrived
	Delivered  float64 // share of a ceiling's bytes that arrived
	Rate       float64 // rounds or connections per second
	Heap       int64   // in bytes, of all connections at both ends
	Resident   int64   // in bytes
	Goroutines int
	Path       end.Path
}

// Trial makes one run of a contender.
type Trial struct {
	Name string
	Run  func(context.Context) (Sample, error)
}

// Stream describes how a stream is measured.
type Stream struct {
	Stack      string
	Path       Path
	Congestion string
	Warm, For  time.Duration
	// Grace is how long the last bytes may take to arrive after the span. If they do not, the run
	// fails, unless the path is lossy.
	Grace   time.Duration
	MTU     int
	Profile string
}

func (s *Stream) spec() end.Spec {
	return end.Spec{
		Stack: s.Stack, Congestion: s.Congestion, MTU: s.MTU, Profile: s.Profile,
		Work: end.Work{Kind: end.Bulk, Warm: s.Warm, For: s.For, Grace: s.Grace},
	}
}

// Run transfers a stream over UDP.
func (s *Stream) Run(ctx context.Context) (Sample, error) {
	b, err := raise(ctx, s.spec(), s.Path)
	if err != nil {
		return Sample{}, err
	}
	defer b.End()
	return b.stream(s)
}

// stream makes the client send, and collects the results of both ends.
func (b *Bed) stream(s *Stream) (r Sample, err error) {
	before, err := b.drops()
	if err != nil {
		return r, err
	}
	if err := b.Client.Tell("go"); err != nil {
		return r, err
	}
	within := s.Warm + s.For + s.Grace + readyTimeout
	window, err := b.Server.Await("window", within)
	if err != nil {
		return r, fmt.Errorf("the receiver: %w", err)
	}
	done, err := b.Client.Await("done", within)
	if err != nil {
		return r, fmt.Errorf("the sender: %w", err)
	}
	if !done.Whole && s.Path.Loss == 0 {
		return r, errors.New("some of the data sent did not arrive")
	}
	after, err := b.drops()
	if err != nil {
		return r, err
	}
	r = Sample{
		Value: float64(window.Bytes) / window.Took.Seconds() / 1e6,
		Whole: done.Whole, Path: done.Path, Drops: after - before,
	}
	if window.Took == 0 {
		r.Value = 0
	}
	if done.Bytes > 0 && window.Bytes > 0 {
		r.Sender = float64(done.CPU) / float64(done.Bytes)
		r.Receiver = float64(window.CPU) / float64(window.Bytes)
	}
	return r, nil
}

// drops sums the drops in the queues of our processes.
func (b *Bed) drops() (sum uint64, err error) {
	for _, c := range []*Child{b.Server, b.Client} {
		s, err := c.Ask("usage", "usage")
		if err != nil {
			return 0, err
		}
		sum += s.Drops
	}
	return sum, nil
}

// Ceiling is a sender without a protocol.
type Ceiling struct {
	Stack string // one of raw-plain, raw-mmsg, raw-gso and plane
	For   time.Duration
	MTU   int
}

// settle is how long a receiver may take to empty the kernel's queues.
const settle = 50 * time.Millisecond

// Run sends, and counts the bytes that arrive.
func (c *Ceiling) Run(ctx context.Context) (r Sample, err error) {
	udp, err := loopback(2)
	if err != nil {
		return r, err
	}
	server, _, err := Start(ctx, nil, &end.Spec{
		Stack: c.Stack, MTU: c.MTU, Work: end.Work{Warm: c.For / 10},
		Sides: []end.Side{{UDP: udp[0], Peer: udp[1]}},
	})
	if err != nil {
		return r, err
	}
	defer server.End()
	client, _, err := Start(ctx, nil, &end.Spec{
		Stack: c.Stack, MTU: c.MTU, Sides: []end.Side{{UDP: udp[1], Peer: udp[0]}},
		Work: end.Work{Kind: end.Blast, For: c.For},
	})
	if err != nil {
		return r, err
	}
	defer client.End()
	if err := client.Tell("go"); err != nil {
		return r, err
	}
	sent, err := client.Await("done", c.For+readyTimeout)
	if err != nil {
		return r, err
	}
	time.Sleep(settle)
	got, err := server.Ask("count", "count")
	if err != nil {
		return r, err
	}
	if got.Bad > 0 || got.Took == 0 {
		return r, fmt.Errorf("%s: %d bytes were corrupted in %v", c.Stack, got.Bad, got.Took)
	}
	return Sample{
		Value:     float64(got.Bytes) / got.Took.Seconds() / 1e6,
		Delivered: float64(got.Bytes) / float64(sent.Sent),
		Sender:    float64(sent.CPU) / float64(sent.Sent),
	}, nil
}
