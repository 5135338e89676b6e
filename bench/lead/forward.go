//go:build linux

package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
)

const (
	packetBytes = 1400
	// inFlight is the number of packets in flight. It is large enough to keep the router busy, and
	// small enough for the kernel's queues to drop nothing.
	inFlight = 1024
	// trainPackets is the number of packets in a train, trainsAtOnce the number of trains in a
	// call.
	trainPackets = 44
	trainsAtOnce = 4
	// lossTimeout is the time after which packets count as lost.
	lossTimeout = 100 * time.Millisecond
)

// Forwarded is a router's performance.
type Forwarded struct {
	Packets float64 // per second, counted at the router
	CPU     float64 // the router's CPU time per packet, in µs
	User    float64 // part of CPU that is outside the kernel
	Note    string
}

// Forward sends packets of 1400 bytes through a router and counts those that arrive. The packets
// circulate in a closed loop over one link to the router and one link from it. One goroutine is
// both sender and receiver.
func (p *Program) Forward(ctx context.Context, forTime time.Duration) (r Forwarded, err error) {
	udp, err := loopback(4)
	if err != nil {
		return r, err
	}
	left, err := openHost(udp[0], udp[1], serverAddr, routerNear)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, left.Close()) }()
	right, err := openHost(udp[3], udp[2], clientAddr, routerFar)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, right.Close()) }()
	spec := end.Spec{Sides: []end.Side{
		side(udp[1], udp[0], routerNear, serverAddr), side(udp[2], udp[3], routerFar, clientAddr),
	}}
	s, err := p.Run(ctx, "router", end.Describe(&spec))
	if err != nil {
		return r, err
	}
	defer s.Kill()
	if _, err := s.interfaces(); err != nil { // the router is ready when it answers
		return r, err
	}
	f, err := drive(ctx, left, right, forTime)
	if err != nil {
		return r, err
	}
	return s.sumUp(f)
}

// flow counts the packets that went through the router.
type flow struct {
	sent, arrived int
	took          time.Duration
}

// drive keeps packets flowing from one host to the other.
func drive(ctx context.Context, left, right *link.UDP, forTime time.Duration) (flow, error) {
	batch, frames := packets(), make([]buffer.Frame, 256)
	var f flow
	underWay := 0
	began := time.Now()
	last := began // when the last packet arrived
	for {
		now := time.Now()
		over := now.Sub(began) > forTime
		switch {
		case ctx.Err() != nil:
			return f, ctx.Err()
		case now.Sub(last) > lossTimeout:
			if f.arrived == 0 {
				return f, errors.New("no packets arrive from the router")
			}
			if over {
				return f, nil // all packets in flight have arrived by now or are lost
			}
			underWay, last = 0, now
		}
		if !over {
			f.took = now.Sub(began)
		}
		if room := (inFlight - underWay) / trainPackets; room > 0 && !over {
			n, err := left.WriteBatch(batch[:min(room, trainsAtOnce)])
			if err != nil {
				return f, err
			}
			f.sent += n * trainPackets
			underWay += n * trainPackets
		}
		out, err := receive(right, frames)
		if err != nil {
			return f, err
		}
		if out > 0 {
			f.arrived += out
			underWay = max(0, underWay-out)
			last = now
		}
	}
}

// receive counts the packets that have arrived.
func receive(right *link.UDP, frames []buffer.Frame) (int, error) {
	n, err := right.ReadBatch(frames)
	if errors.Is(err, link.ErrWouldBlock) {
		return 0, nil
	}
	count := 0
	for _, f := range frames[:n] {
		count += (len(f.Data) + f.Size - 1) / f.Size
	}
	return count, err
}

// packets returns a few trains of the same test packet.
func packets() []buffer.Train {
	packet := make([]byte, packetBytes)
	ip.Header{
		TotalLen: packetBytes, TTL: 16, Protocol: ip.ProtoTest, Src: serverAddr, Dst: clientAddr,
	}.Put(packet)
	pieces := make([][]byte, trainPackets)
	for i := range pieces {
		pieces[i] = packet
	}
	trains := make([]buffer.Train, trainsAtOnce)
	for i := range trains {
		trains[i] = buffer.Train{
			Pieces: pieces, Size: packetBytes, Count: trainPackets,
			Bytes: trainPackets * packetBytes, NextHop: routerNear,
		}
	}
	return trains
}

// openHost opens this program's end of a link.
func openHost(port, peer netip.AddrPort, local, neighbor netip.Addr) (*link.UDP, error) {
	return link.Open(link.Config{
		Host: "127.0.0.1", Port: port.Port(),
		Interfaces: []link.Interface{{
			Name: "if0", Local: local,
			Neighbors: []link.Neighbor{{Addr: neighbor, Host: "127.0.0.1", Port: peer.Port()}},
		}},
	})
}

// interfaces asks the router for its counters. The router prints only answers, because the test
// packets are not addressed to it.
func (s *Shell) interfaces() (list []control.Interface, err error) {
	line, err := s.Ask("interfaces --json")
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(line, &list)
}

// sumUp reads the router's counters, ends the router, and computes its figures per packet.
func (s *Shell) sumUp(f flow) (r Forwarded, err error) {
	list, err := s.interfaces()
	if err != nil {
		return r, err
	}
	if len(list) != 2 {
		return r, fmt.Errorf("the router reports %d interfaces, want 2", len(list))
	}
	if err := errors.Join(s.in.Close(), s.process.Wait()); err != nil {
		return r, fmt.Errorf("the router: %w", err)
	}
	s.ended = true
	forwarded := max(1, float64(list[1].Out.Packets))
	user := s.process.ProcessState.UserTime()
	busy := user + s.process.ProcessState.SystemTime()
	return Forwarded{
		Packets: forwarded / f.took.Seconds(),
		CPU:     float64(busy.Microseconds()) / forwarded,
		User:    float64(user.Microseconds()) / forwarded,
		Note: fmt.Sprintf("%d of %d were lost%s",
			f.sent-f.arrived, f.sent, drops(list)),
	}, nil
}

// drops lists the router's drops by reason.
func drops(list []control.Interface) string {
	var text strings.Builder
	for _, i := range list {
		for _, d := range slices.Concat(i.In.Drops, i.Out.Drops) {
			fmt.Fprintf(&text, ", %s: %s %d", i.Name, d.Reason, d.Packets)
		}
	}
	return text.String()
}
