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

// flow is a flow of objects to this node, with a UDP port of its own.
type flow struct {
	node     *node.Node
	stack    *stack.Stack  // the loop's
	receiver *rdt.Receiver // the loop's
	port     *stack.Port   // the loop's; nil: it is closed
	local    netip.AddrPort
	news     chan struct{} // a token: look at what has become of it
	toldAt   clock.Time    // when the token was last for progress alone; the loop's

	mu    sync.Mutex
	ended []rdt.Completion // objects, not yet taken; as many as were asked for
	info  rdt.ReceiverInfo
	err   error // why no more objects will come
}

// openFlow asks a server for objects by number, from a UDP port of its own.
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

// Tell implements node.PortOwner: it passes on what has come, and closes the port when the flow has
// lingered long enough.
func (f *flow) Tell(now clock.Time) {
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

// Report implements node.PortOwner. Only where nothing has come does a refusal mean that nothing
// will: a server that has gone is silent.
func (f *flow) Report(err error) {
	if errors.Is(err, udp.ErrRefused) && f.receiver.Info().Received == 0 {
		f.shut(err)
	}
}

// Undelivered implements node.PortOwner: a node that closes does not wait for a fetch.
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

// Shut implements node.PortOwner. A receiver that has everything acknowledges it a few times
// more: the port closes, and the last acknowledgment may be lost.
func (f *flow) Shut() { f.receiver.Farewell() }

// shut ends the flow, with an error if objects are missing. The loop's.
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

// next waits for objects that have ended, or for progress. An error means that no more
// objects will come; those that come with it did before.
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

// wake leaves a token for next.
func (f *flow) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// leave is for a client that does not wait any more: a flow that has everything lingers, any other
// ends.
func (f *flow) leave() {
	f.node.Post(func(clock.Time) {
		if !f.receiver.Done() {
			f.shut(nil)
		}
	})
}

// describe is what operators see of a flow to this node. The loop's.
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
