package node

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

const (
	pingLinger    = time.Second // how long the last reply is waited for
	traceTimeout  = time.Second
	maxPingBytes  = 65507
	maxTraceHops  = 255
	repliesQueued = 1024
	timeExceeded  = "Time to live exceeded"
)

// echoing is who waits for echo replies, by identifier. The loop's.
type echoing struct {
	echoes   map[uint16]func(stack.Echo)
	nextEcho uint16
}

// echoer sends echo requests under an identifier of its own.
type echoer struct {
	node    *Node
	id      uint16
	addr    netip.Addr
	sent    map[uint16]clock.Time // the loop's
	replies chan control.Reply
}

// openEchoer registers for the replies to a new identifier.
func (n *Node) openEchoer(addr netip.Addr) (*echoer, error) {
	if !isHost(addr) {
		return nil, fmt.Errorf("address %v: %w: want the address of a host", addr, control.ErrUsage)
	}
	e := &echoer{
		node: n, addr: addr, sent: map[uint16]clock.Time{},
		replies: make(chan control.Reply, repliesQueued),
	}
	err := n.call(func(clock.Time) {
		for n.echoes[n.nextEcho] != nil {
			n.nextEcho++
		}
		e.id = n.nextEcho
		n.nextEcho++
		n.echoes[e.id] = e.receive
	})
	return e, controlError(err)
}

func (e *echoer) close() {
	_ = e.node.call(func(clock.Time) { delete(e.node.echoes, e.id) }) // a closed node has none
}

// send sends one request.
func (e *echoer) send(seq uint16, size, ttl int) (err error) {
	callErr := e.node.call(func(now clock.Time) {
		if err = e.node.stack.SendEcho(now, e.addr, e.id, seq, size, ttl); err == nil {
			e.sent[seq] = now
		}
	})
	return controlError(firstError(callErr, netError(err)))
}

// receive turns what the stack tells into a reply. The loop's.
func (e *echoer) receive(got stack.Echo) {
	at, ok := e.sent[got.Seq]
	if !ok {
		return // a duplicate, or nothing of ours
	}
	delete(e.sent, got.Seq)
	r := control.Reply{
		From: got.From, Seq: int(got.Seq), TTL: got.TTL, Size: got.Bytes, RTT: got.Received.Sub(at),
	}
	switch got.Type {
	case icmp.TypeTimeExceeded:
		r.Problem = timeExceeded
	case icmp.TypeUnreachable:
		r.Problem = unreachable(got.Code)
	}
	select {
	case e.replies <- r:
	default: // nobody reads: a flood is not worth waiting for
	}
}

func unreachable(code uint8) string {
	switch code {
	case icmp.CodeNet:
		return "Destination Net Unreachable"
	case icmp.CodeHost:
		return "Destination Host Unreachable"
	case icmp.CodeProtocol:
		return "Destination Protocol Unreachable"
	case icmp.CodePort:
		return "Destination Port Unreachable"
	case icmp.CodeFragNeeded:
		return "Frag needed and DF set"
	}
	return fmt.Sprintf("Destination Unreachable, Bad Code: %d", code)
}

// ping sends echo requests at an interval and gathers what comes back.
func (n *Node) ping(ctx context.Context, r control.Ping) (control.PingResult, error) {
	result := control.PingResult{Addr: r.Addr}
	if r.Size < 0 || r.Size > maxPingBytes || r.Count < 0 || r.Count > math.MaxUint16 {
		return result, fmt.Errorf("ping: %w: want a size of 0 to %d and a count of 0 to %d",
			control.ErrUsage, maxPingBytes, math.MaxUint16)
	}
	if r.Interval <= 0 {
		r.Interval = time.Second
	}
	e, err := n.openEchoer(r.Addr)
	if err != nil {
		return result, err
	}
	defer e.close()
	began := time.Now()
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	stats := pingStats{result: &result}
	last := time.NewTimer(time.Hour)
	defer last.Stop()
	send := func() error {
		result.Sent++
		if r.Count > 0 && result.Sent == r.Count {
			ticker.Stop()
			last.Reset(pingLinger)
		}
		return e.send(uint16(result.Sent), r.Size, 0)
	}
	if err := send(); err != nil {
		return result, err
	}
	for r.Count == 0 || result.Received+result.Errors < r.Count {
		select {
		case reply := <-e.replies:
			stats.add(reply)
			if r.Each != nil {
				r.Each(reply)
			}
			continue
		case <-ticker.C:
			if err := send(); err != nil {
				return result, err
			}
			continue
		case <-last.C:
		case <-ctx.Done():
		case <-n.stopped:
		}
		break
	}
	result.Elapsed = time.Since(began)
	stats.finish()
	return result, nil
}

// pingStats are iputils's statistics: mean and deviation of the round trips.
type pingStats struct {
	result      *control.PingResult
	sum, square float64
}

func (s *pingStats) add(r control.Reply) {
	if r.Problem != "" {
		s.result.Errors++
		return
	}
	s.result.Received++
	if s.result.Received == 1 || r.RTT < s.result.Min {
		s.result.Min = r.RTT
	}
	s.result.Max = max(s.result.Max, r.RTT)
	s.sum += float64(r.RTT)
	s.square += float64(r.RTT) * float64(r.RTT)
}

func (s *pingStats) finish() {
	if s.result.Received == 0 {
		return
	}
	n := float64(s.result.Received)
	mean := s.sum / n
	s.result.Avg = time.Duration(mean)
	s.result.Mdev = time.Duration(math.Sqrt(max(0, s.square/n-mean*mean)))
}

// traceroute finds the routers on the way, one distance after another.
func (n *Node) traceroute(ctx context.Context, r control.Traceroute) ([]control.Hop, error) {
	if r.MaxHops == 0 {
		r.MaxHops = 30
	}
	if r.Queries == 0 {
		r.Queries = 3
	}
	if r.MaxHops < 1 || r.MaxHops > maxTraceHops || r.Queries < 1 || r.Queries > 10 {
		return nil, fmt.Errorf("traceroute: %w: want 1 to %d hops and 1 to 10 queries",
			control.ErrUsage, maxTraceHops)
	}
	e, err := n.openEchoer(r.Addr)
	if err != nil {
		return nil, err
	}
	defer e.close()
	var hops []control.Hop
	seq := uint16(0)
	for ttl := 1; ttl <= r.MaxHops; ttl++ {
		hop := control.Hop{TTL: ttl}
		arrived := false
		for range r.Queries {
			seq++
			reply, err := e.probe(ctx, seq, ttl)
			if err != nil {
				return hops, err
			}
			hop.Replies = append(hop.Replies, reply)
			arrived = arrived || reply.From == r.Addr
		}
		hops = append(hops, hop)
		if r.Each != nil {
			r.Each(hop)
		}
		if arrived {
			break
		}
	}
	return hops, nil
}

// probe sends one request and waits for what comes back; the zero From means
// nothing did.
func (e *echoer) probe(ctx context.Context, seq uint16, ttl int) (control.Reply, error) {
	if err := e.send(seq, 32, ttl); err != nil {
		return control.Reply{}, err
	}
	timer := time.NewTimer(traceTimeout)
	defer timer.Stop()
	for {
		select {
		case r := <-e.replies:
			if r.Seq == int(seq) {
				if r.Problem == timeExceeded {
					r.Problem = "" // which is what a traceroute is after
				}
				return r, nil
			}
		case <-timer.C:
			return control.Reply{Seq: int(seq)}, nil
		case <-ctx.Done():
			return control.Reply{}, context.Cause(ctx)
		case <-e.node.stopped:
			return control.Reply{}, control.ErrClosed
		}
	}
}
