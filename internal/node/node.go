// Package node runs one stack in real time or on a Clock: the loop that owns the stack, the links,
// and the sockets of applications.
//
// The loop is the only user of the stack. Applications exchange data with it through a connection's
// rings, and ring its doorbell. Operators post functions that the loop runs between packets. While
// the loop sleeps, an application's goroutine may run an iteration of it (lead.go). "Loop only"
// marks functions and fields that only the goroutine that currently runs the loop may use.
package node

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oleiade/lane/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Node is a running host or router.
type Node struct {
	cfg Config

	Time       Time
	Watchers   Watchers
	Devices    Devices    // devices of the interfaces
	Taps       Taps       // observers of packets and connections
	Neighbors  Neighbors  // states of the neighbors
	Forwarders Forwarders // receive connections that no listener accepts
	TCP        TCP
	Packets    Packets
	RCP        RCP

	// Only the loop uses these fields.
	stack     *stack.Stack
	followers []func() (done bool)
	leading   leading
	vir       virCalls

	// Applications and operators also use these fields.
	waiter   waiter
	requests *lane.Deque[func(clock.Time)]
	closing  atomic.Bool
	crashing atomic.Bool // the node must not send anything at its end
	stopped  chan struct{}

	shown atomic.Pointer[Network]
}

// Open starts the node that cfg describes: its interfaces are up, and RIP runs if it is configured.
func Open(cfg Config) (*Node, error) {
	cfg.identity = cmp.Or(cfg.Seed, rand.Uint64())
	n := newNode(cfg)
	if err := n.open(); err != nil {
		n.Devices.close()
		cfg.CloseDevices()
		return nil, err
	}
	if n.cfg.Clock != nil {
		n.cfg.Clock.add(n)
	} else {
		go n.loop()
	}
	return n, nil
}

func newNode(cfg Config) *Node {
	n := &Node{
		cfg: cfg, Time: newTime(cfg.Clock),
		TCP: TCP{conns: map[*Conn]struct{}{}, listeners: map[*tcp.Listener]*Listener{}},
		Packets: Packets{
			conns: map[*PacketConn]struct{}{}, raws: map[*RawConn]struct{}{},
		},
		requests: lane.NewDeque[func(clock.Time)](), stopped: make(chan struct{}),
	}
	n.Devices.node, n.Taps.node, n.Forwarders.node, n.leading.node = n, n, n, n
	n.Neighbors.node, n.TCP.node, n.Packets.node, n.RCP.node = n, n, n, n
	return n
}

// open opens the devices, then the stack.
func (n *Node) open() error {
	own := n.cfg.Network
	n.SetNetwork(&own)
	var err error
	if n.waiter, err = n.newWaiter(); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	n.leading.slot, _ = n.waiter.(leaderWaiter)
	if err := n.Devices.open(); err != nil {
		return err
	}
	if n.stack, err = stack.New(n.Time.now(), n.stackConfig()); err != nil {
		return control.Also(err, ErrConfig)
	}
	n.Neighbors.rebuild(n.Time.now())
	return n.Taps.open()
}

// Stopped is closed when the loop has ended.
func (n *Node) Stopped() <-chan struct{} { return n.stopped }

// newWaiter returns the waiter that suits the node's links. If none has a descriptor, the waiter
// uses only channels and timers, so that the node can run in a testing/synctest bubble.
func (n *Node) newWaiter() (waiter, error) {
	switch {
	case n.cfg.Clock != nil:
		return &drivenWaiter{clock: n.cfg.Clock}, nil
	case n.cfg.waiter == waitBest && n.Devices.inProcess():
		return newWaiter(waitFed)
	}
	return newWaiter(n.cfg.waiter)
}

// Close stops the loop and closes the sockets. Data that was written to closed connections is still
// delivered, for up to lingerTime. Open connections are reset. Blocked calls fail with
// net.ErrClosed.
func (n *Node) Close() error {
	n.Stop()
	if !n.Watchers.close() {
		return nil // another call closes the node
	}
	return n.Taps.close()
}

// Stop stops the loop. Until Close, watchers still receive events of packages that use the node.
func (n *Node) Stop() {
	if !n.closing.Swap(true) {
		n.waiter.Ring()
	}
	<-n.stopped
	n.Time.settle()
}

// Crash is like Stop, but the node sends nothing at its end.
func (n *Node) Crash() {
	n.crashing.Store(true)
	n.Stop()
}

// crash reports whether the node crashes. If so, the node drops everything that it sends from now
// on. Loop only.
func (n *Node) crash() bool {
	crashes := n.crashing.Load()
	for _, d := range n.Devices.list {
		if crashes {
			_ = d.Close()
		}
	}
	return crashes
}

// lingerTime is how long a closing node delivers what was written to closed connections.
const lingerTime = 2 * time.Second

// linger runs the loop until everything is delivered or lingerTime is over.
func (n *Node) linger() {
	end := n.Time.now().Add(lingerTime)
	wake := time.AfterFunc(lingerTime, n.waiter.Ring)
	defer wake.Stop()
	n.iterate()
	for (n.TCP.undelivered() || n.Packets.undelivered()) && n.Time.now() < end {
		n.wait()
		n.iterate()
	}
}

// shutdown closes everything. Loop only.
func (n *Node) shutdown() {
	now := n.Time.now()
	n.serveRequests(now)
	n.TCP.serve(now)
	n.TCP.close(now)
	for o := range n.Packets.owners() {
		o.Shut()
	}
	resetVirSockets(n.stack, now)
	for _, r := range n.stack.RIPs() {
		r.Withdraw(now)
	}
	n.Devices.Drain(now)
	n.notifyAll(now)
	for c := range n.TCP.conns {
		c.endProbe() // closes probes of connections whose FIN is not acknowledged
	}
	n.Packets.close()
	n.serveRequests(now)
	n.Devices.close()
	n.Taps.stop()
}

// Call runs f in the loop and returns its error, or net.ErrClosed if the node is closed.
func (n *Node) Call(f func(s *stack.Stack, now clock.Time) error) (err error) {
	done := make(chan struct{})
	if !n.Post(func(now clock.Time) { err = f(n.stack, now); close(done) }) {
		return net.ErrClosed
	}
	defer n.Time.settle()
	select {
	case <-done:
		return err
	case <-n.stopped:
		select {
		case <-done:
			return err
		default:
			return net.ErrClosed
		}
	}
}

// Ask is like Call, with the errors of package control.
func (n *Node) Ask(f func(s *stack.Stack, now clock.Time) error) error {
	err := n.Call(f)
	if err == net.ErrClosed { //nolint:errorlint // means that the node is closed
		return fmt.Errorf("node: %w", control.ErrClosed)
	}
	return NetError(err)
}

// Follow calls f at the end of each iteration until f returns true. Loop only.
func (n *Node) Follow(f func() (done bool)) { n.followers = append(n.followers, f) }

// Post queues f for the loop, and returns at once. It returns false if the node is closed.
func (n *Node) Post(f func(now clock.Time)) bool {
	if n.closing.Load() {
		return false
	}
	n.requests.Append(f)
	n.waiter.Ring()
	return true
}

// Bound is a user of one of the node's addresses. It ends when the address is removed.
type Bound struct {
	Text string // name in the report of a reload, such as "udp 10.0.0.1:7"
	End  func(now clock.Time)
}

// BoundTo lists the users of these addresses: connections, listeners, UDP sockets, and ports of
// protocols over UDP. Loop only.
func (n *Node) BoundTo(addrs map[netip.Addr]bool) []Bound {
	if len(addrs) == 0 {
		return nil
	}
	list := append(n.TCP.boundTo(addrs), n.Packets.boundTo(addrs)...)
	slices.SortFunc(list, func(a, b Bound) int { return strings.Compare(a.Text, b.Text) })
	return list
}
