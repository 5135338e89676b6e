package node

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxEvents limits the events that wait for a slow watcher.
const maxEvents = 8192

// Watchers are the functions that receive the node's events.
type Watchers struct {
	mu   sync.Mutex
	list map[*Queue[control.Event]]struct{}
	done bool
	wg   sync.WaitGroup
}

// Watch implements control.Operator.
func (ws *Watchers) Watch(f func(control.Event)) (stop func()) {
	w := NewQueue[control.Event](maxEvents)
	w.Lost = func(missed int) control.Event {
		return control.Message{
			Text: fmt.Sprintf("%d events are missing: this client was too slow", missed),
		}
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.done {
		return func() {}
	}
	if ws.list == nil {
		ws.list = map[*Queue[control.Event]]struct{}{}
	}
	ws.list[w] = struct{}{}
	// The watcher has its own goroutine, so that a slow terminal does not block the loop.
	ws.wg.Go(func() { w.Each(context.Background(), nil, f) })
	return func() {
		ws.mu.Lock()
		delete(ws.list, w)
		ws.mu.Unlock()
		w.End()
	}
}

// Printf announces a line of text.
func (ws *Watchers) Printf(format string, args ...any) {
	ws.Announce(control.Message{Text: fmt.Sprintf(format, args...)})
}

// Announce sends an event to every watcher.
func (ws *Watchers) Announce(e control.Event) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.list {
		w.Add(e)
	}
}

func (ws *Watchers) any() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.list) > 0
}

// close waits until every watcher has processed its events. Only the first call returns true.
func (ws *Watchers) close() bool {
	ws.mu.Lock()
	if ws.done {
		ws.mu.Unlock()
		return false
	}
	ws.done = true
	for w := range ws.list {
		w.End()
	}
	ws.list = nil
	ws.mu.Unlock()
	ws.wg.Wait()
	return true
}

// publishStack announces an event of the stack. Loop only.
func (ws *Watchers) publishStack(e stack.Event, network *Network) {
	if e.Test != nil {
		ws.Announce(control.TestReceived{
			Src: e.Test.Src, Dst: e.Test.Dst, TTL: e.Test.TTL, Text: string(e.Test.Data),
		})
	}
	if e.RIP != nil {
		event := control.RIPNews{Text: e.RIP.String()}
		if e.RIP.Neighbor.IsValid() && e.RIP.Iface >= 0 && e.RIP.Iface < len(network.Links) {
			event.Iface = network.Stack.Interfaces[e.RIP.Iface].Name
		}
		ws.Announce(event)
	}
	if a := e.Address; a != nil {
		ws.Printf("%s: address %v %s", a.Iface, a.Addr, a.Verb())
	}
}

// AnnounceEnd makes the node announce when the peer closes the connection or the connection fails.
func (c *Conn) AnnounceEnd() error {
	return c.node.Ask(func(*stack.Stack, clock.Time) error {
		c.announces = true
		c.announceEnd()
		return nil
	})
}

// announceEnd announces once that the peer has closed the connection or that the connection has
// failed, unless the application has closed it. Loop only.
func (c *Conn) announceEnd() {
	failure := c.failure.Load()
	if c.peerClosed || !c.announces || c.sid < 0 || failure == nil && !c.eof.Load() {
		return
	}
	c.peerClosed = true
	if c.closed.Load() {
		return
	}
	e := control.SocketClosed{Socket: c.node.stack.Sockets().Info(c.sid, 0)}
	e.Socket.SID = c.sid
	e.Socket.Local, e.Socket.Remote = c.Local(), c.Remote()
	e.Socket.State = cmp.Or(e.Socket.State, tcp.StateClosed.String())
	if failure != nil {
		e.Problem = (*failure).Error()
	}
	c.node.Watchers.Announce(e)
}
