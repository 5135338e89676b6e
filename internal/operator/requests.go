package operator

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Requests handles the requests about a node itself: snapshots, settings, links, routes, sockets,
// ping and traceroute. Services handle their own requests.
type Requests struct {
	control.Handlers
	node *node.Node

	nextEcho   uint16          // identifier of the last ping or traceroute; loop only
	cleared    map[int]cleared // cleared counters by interface number; loop only
	udpSockets udpSockets
	programs   programs
}

// cleared are a device's counters at the last clear.
type cleared struct {
	device link.Device // device whose counters these are
	counts link.Counters
}

// NewRequests returns a node's handlers.
func NewRequests(n *node.Node) *Requests {
	h := &Requests{
		Handlers: control.Handlers{}, node: n, cleared: map[int]cleared{},
	}
	h.udpSockets = udpSockets{host: h, list: map[*node.PacketConn]*udpSocket{}}
	h.handleInterfaces()
	h.handleImpairments()
	handleRoutes(h)
	handleNATs(h)
	handleSettings(h)
	h.handleSockets()
	control.Handle(h.Handlers, h.ping)
	control.Handle(h.Handlers, h.traceroute)
	control.Handle(h.Handlers, h.sendTest)
	control.Handle(h.Handlers, h.udpSockets.listen)
	control.Handle(h.Handlers, h.udpSockets.send)
	control.Handle(h.Handlers, func(
		ctx context.Context, r control.Samples,
	) (control.Sampled, error) {
		return samples(ctx, h, r)
	})
	control.HandleOrder(h.Handlers, func(_ context.Context, r control.Verbose) error {
		return n.Taps.SetVerbose(r)
	})
	look(h, func(*stack.Stack, clock.Time, control.Captures) ([]control.Capturing, error) {
		return n.Taps.Captures(), nil
	})
	return h
}

// look adds the handler of a request that runs in the loop and has an answer.
func look[R control.Request[A], A any](
	h *Requests, f func(s *stack.Stack, now clock.Time, r R) (A, error),
) {
	control.Handle(h.Handlers, func(_ context.Context, r R) (a A, err error) {
		err = h.node.Ask(func(s *stack.Stack, now clock.Time) (err error) {
			a, err = f(s, now, r)
			return err
		})
		return a, err
	})
}

// order is like look, for a request without an answer.
func order[R control.Request[control.Nothing]](
	h *Requests, f func(s *stack.Stack, now clock.Time, r R) error,
) {
	look(h, func(s *stack.Stack, now clock.Time, r R) (control.Nothing, error) {
		return control.Nothing{}, f(s, now, r)
	})
}

// Watch implements control.Operator.
func (h *Requests) Watch(f func(control.Event)) (stop func()) { return h.node.Watchers.Watch(f) }
