package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// flow is a client's flow, with its own UDP port.
type flow struct {
	node     *node.Node
	stack    *stack.Stack  // owned by the loop
	receiver *rdt.Receiver // owned by the loop
	port     *stack.Port   // owned by the loop; nil: closed
	local    netip.AddrPort
	news     chan struct{} // receives a token when the state changes
	toldAt   clock.Time    // when the last token was sent; owned by the loop

	mu    sync.Mutex
	ended []rdt.Completion // finished objects that next has not returned; bounded by the request
	info  rdt.ReceiverInfo
	err   error // why no more objects will arrive
}

// openFlow requests objects by number from a server, over a new UDP port.
func openFlow(
	n *node.Node, from, to netip.AddrPort, cfg rdt.Config, wanted []uint16,
) (*flow, error) {
	f := &flow{node: n, news: make(chan struct{}, 1)}
	if !control.IsHost(to.Addr()) || to.Port() == 0 {
		return nil, fmt.Errorf("%v: %w", to, udp.ErrAddress)
	}
	err := n.Call(func(s *stack.Stack, now clock.Time) (err error) {
		f.stack = s
		if s.Interfaces().IsBroadcast(to.Addr()) {
			return fmt.Errorf("%v: %w", to, udp.ErrAddress)
		}
		if f.receiver, err = rdt.NewReceiver(now, cfg, wanted...); err != nil {
			return err
		}
		f.port, err = openPort(s, func() (*stack.Port, error) {
			return s.Ports().OpenRDTReceiver(from, to, f.receiver)
		})
		if err == nil {
			f.port.UDP.Owner = f
			f.local = f.port.UDP.Local()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Notify implements node.PortOwner. It passes on finished objects, and closes the port after the
// flow's linger time.
func (f *flow) Notify(now clock.Time) {
	f.mu.Lock()
	before := len(f.ended)
	for c, ok := f.receiver.Next(); ok; c, ok = f.receiver.Next() {
		f.ended = append(f.ended, c)
	}
	if f.err == nil {
		f.err = f.receiver.Err()
	}
	news := len(f.ended) > before || f.err != nil || f.receiver.Done() ||
		now.Sub(f.toldAt) >= progressPeriod
	if news {
		f.toldAt, f.info = now, f.receiver.Info()
	}
	f.mu.Unlock()
	if news {
		f.wake()
	}
	if f.receiver.Closed() || f.receiver.Err() != nil {
		f.shut(nil)
	}
}

// Report implements node.PortOwner. A refusal ends the flow only if nothing has arrived. Afterward,
// only the server's silence ends it.
func (f *flow) Report(err error) {
	if errors.Is(err, udp.ErrRefused) && f.receiver.Info().Received == 0 {
		f.shut(err)
	}
}

// Undelivered implements node.PortOwner. It returns false, because closing a node does not wait for
// a fetch.
func (f *flow) Undelivered() bool { return false }

// BoundTo implements node.PortOwner.
func (f *flow) BoundTo(addrs map[netip.Addr]bool) []node.Bound {
	if !addrs[f.local.Addr()] || f.receiver.Done() {
		return nil
	}
	return []node.Bound{{
		Text: fmt.Sprintf("rdt %v from %v", f.local, f.port.UDP.Remote()),
		End:  func(clock.Time) { f.shut(node.NetError(tcp.ErrAddressGone)) },
	}}
}

// Shut implements node.PortOwner. A receiver that has everything repeats its last acknowledgment a
// few times before the port closes, because one may be lost.
func (f *flow) Shut() { f.receiver.RepeatLastAck() }

// shut ends the flow, with an error if objects are missing. Only the loop calls it.
func (f *flow) shut(err error) bool {
	if f.port == nil {
		return false
	}
	f.stack.Ports().Close(f.port)
	f.port = nil
	if !f.receiver.Done() && err != nil {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
	}
	f.wake()
	return true
}

// next waits for finished objects or progress. It may return objects together with an error, and
// none after that.
func (f *flow) next(ctx context.Context) ([]rdt.Completion, rdt.ReceiverInfo, error) {
	var end error
	select {
	case <-f.news:
	case <-ctx.Done():
		end = context.Cause(ctx)
	case <-f.node.Stopped():
		end = net.ErrClosed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := f.ended
	f.ended = nil
	return ended, f.info, cmp.Or(end, f.err)
}

// wake puts a token into the channel on which next waits.
func (f *flow) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// leave detaches the client. A finished flow lingers, and any other flow is closed.
func (f *flow) leave() {
	f.node.Post(func(clock.Time) {
		if !f.receiver.Done() {
			f.shut(nil)
		}
	})
}

// describe returns the flow's state for operators. Only the loop calls it.
func (f *flow) describe() control.RDTFlow {
	i := f.receiver.Info()
	state := "receiving"
	if f.receiver.Done() {
		state = "done"
	}
	return control.RDTFlow{
		Local: f.local, Remote: f.port.UDP.Remote(), State: state, Objects: i.Complete,
		Bytes: int64(i.Bytes), Sent: i.Acks + i.Requests, Received: i.Received,
	}
}
