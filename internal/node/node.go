// Package node drives one stack in real time: the owner loop over UDP sockets,
// and what applications and operators reach it by.
//
// One goroutine, the loop, owns the stack and everything beneath. Applications
// touch a connection through its rings and ring a doorbell; operators post
// requests that the loop serves between batches and answers with snapshots.
// While the loop sleeps an application may take its turn (lead.go): "the loop's"
// is whose turn it is.
package node

import (
	"fmt"
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

// Node is one running host or router.
type Node struct {
	cfg Config

	Time       Time
	Watchers   Watchers
	Devices    Devices    // what interfaces stand on
	Taps       Taps       // what watches packets and connections
	Neighbors  Neighbors  // whether the neighbors are there
	Forwarders Forwarders // what gets connections that no listener takes
	TCP        TCP
	Packets    Packets
	RCP        RCP

	// The loop's.
	stack     *stack.Stack
	followers []func() (done bool)
	leading   leading
	vir       virCalls

	// Shared with applications and operators.
	waiter   waiter
	requests *lane.Deque[func(clock.Time)]
	closing  atomic.Bool
	stopped  chan struct{}

	shown atomic.Pointer[Network]
}

// Open starts the node that cfg describes. Every interface is up, and RIP, if
// configured, has begun.
func Open(cfg Config) (*Node, error) {
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

// newNode returns a node that is not open.
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

// open brings up what the loop will own, devices first.
func (n *Node) open() error {
	own := n.cfg.Network
	n.Become(&own)
	var err error
	if n.waiter, err = n.newWaiter(); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	n.leading.second, _ = n.waiter.(second)
	if err := n.Devices.open(); err != nil {
		return err
	}
	if n.stack, err = stack.New(n.Time.now(), n.stackConfig()); err != nil {
		return control.Also(err, ErrConfig)
	}
	n.Neighbors.renew(n.Time.now())
	return n.Taps.open()
}

// Stopped is closed when the loop has ended, which then shows nothing to anybody.
func (n *Node) Stopped() <-chan struct{} { return n.stopped }

// newWaiter returns the way of waiting that suits the node's links. Where none
// has a descriptor it is channels and timers alone, which also lets the node live
// in a bubble of testing/synctest.
func (n *Node) newWaiter() (waiter, error) {
	switch {
	case n.cfg.Clock != nil:
		return &drivenWaiter{clock: n.cfg.Clock}, nil
	case n.cfg.waiter == waitBest && n.Devices.inProcess():
		return newWaiter(waitFed)
	}
	return newWaiter(n.cfg.waiter)
}

// Close stops the loop and closes the sockets. What was written to connections
// that are closed already is still delivered, for a short while; those that are
// open are reset. Calls that wait fail with net.ErrClosed.
func (n *Node) Close() error {
	n.Stop()
	if !n.Watchers.close() {
		return nil // somebody else does the rest, or has
	}
	return n.Taps.close()
}

// Stop is Close as far as the network goes: the loop has ended. Who watches is told of what the
// rooms above have to say yet, until Close.
func (n *Node) Stop() {
	if !n.closing.Swap(true) {
		n.waiter.Ring()
	}
	<-n.stopped
}

// lingerTime is how long a closing node goes on delivering what applications
// had written to connections that they have closed.
const lingerTime = 2 * time.Second

// linger turns until everything of that kind is delivered, or time is up.
func (n *Node) linger() {
	end := n.Time.now().Add(lingerTime)
	wake := time.AfterFunc(lingerTime, n.waiter.Ring)
	defer wake.Stop()
	for n.turn(); (n.TCP.undelivered() || n.Packets.undelivered()) && n.Time.now() < end; n.turn() {
		n.wait()
	}
}

// shutdown is the loop's last act.
func (n *Node) shutdown() {
	now := n.Time.now()
	n.serveRequests(now)
	n.TCP.serve(now)
	n.TCP.close(now)
	for o := range n.Packets.owners() {
		o.Shut()
	}
	resetVir(n.stack, now)
	n.stack.RIP().Farewell(now)
	n.Devices.Drain(now)
	n.tellAll(now)
	for c := range n.TCP.conns {
		c.endProbe() // of what the peer has not answered the FIN of
	}
	n.Packets.close()
	n.serveRequests(now)
	n.Devices.close()
	n.Taps.stop()
}

// Call has the loop run f between two packets, and returns what f returned; net.ErrClosed if the
// node is closed.
func (n *Node) Call(f func(s *stack.Stack, now clock.Time) error) (err error) {
	done := make(chan struct{})
	if !n.Post(func(now clock.Time) { err = f(n.stack, now); close(done) }) {
		return net.ErrClosed
	}
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

// Ask is Call for operators: the errors are package control's.
func (n *Node) Ask(f func(s *stack.Stack, now clock.Time) error) error {
	err := n.Call(f)
	if err == net.ErrClosed { //nolint:errorlint // only the bare sentinel means the node itself
		return fmt.Errorf("node: %w", control.ErrClosed)
	}
	return NetError(err)
}

// Follow has the loop call f at the end of each iteration, until f returns true. The loop's.
func (n *Node) Follow(f func() (done bool)) { n.followers = append(n.followers, f) }

// Post has the loop run f, without waiting. It reports false when the node is closed.
func (n *Node) Post(f func(now clock.Time)) bool {
	if n.closing.Load() {
		return false
	}
	n.requests.Append(f)
	n.waiter.Ring()
	return true
}

// BoundTo lists what has one of the addresses: connections, listeners, UDP sockets, and ports of
// protocols over UDP. The loop's.
func (n *Node) BoundTo(addrs map[netip.Addr]bool) []Bound {
	if len(addrs) == 0 {
		return nil
	}
	list := append(n.TCP.boundTo(addrs), n.Packets.boundTo(addrs)...)
	slices.SortFunc(list, func(a, b Bound) int { return strings.Compare(a.Text, b.Text) })
	return list
}
