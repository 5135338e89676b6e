package node

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// probing is the loop's side of pings and traceroutes.
type probing struct {
	running  map[running]struct{}
	nextEcho uint16 // the identifier of the next one
}

// running is a ping or a traceroute that the stack runs.
type running interface {
	// gather takes what its engine has found out to where its owner reads it, and
	// reports whether that was the last. The loop's.
	gather() (done bool)
	engine() stack.Prober
}

// startProbing has the stack run r. The loop's.
func (n *Node) startProbing(r running) error {
	if err := n.stack.StartProber(r.engine()); err != nil {
		return fmt.Errorf("%w: %w", control.ErrUnsupported, err)
	}
	n.running[r] = struct{}{}
	return nil
}

// tellProbes passes on what pings and traceroutes have found out.
func (n *Node) tellProbes() {
	for r := range n.running {
		if r.gather() {
			n.endProbing(r)
		}
	}
}

func (n *Node) endProbing(r running) {
	n.stack.StopProber(r.engine())
	delete(n.running, r)
}

// maxFindings bounds what is found out and not read yet. What comes when they are that
// many is counted and not shown.
const maxFindings = 4096

// findings are what a ping or a traceroute has found out, on the way from the loop to
// whoever waits.
type findings[T any] struct {
	mu     sync.Mutex
	list   []T
	missed uint64        // what came when there was no room
	ready  chan struct{} // a token: look at the list
	ended  chan struct{} // closed when no more will come
}

func newFindings[T any]() findings[T] {
	return findings[T]{ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// add reports whether there was room.
func (f *findings[T]) add(found T) (kept bool) {
	f.mu.Lock()
	if kept = len(f.list) < maxFindings; kept {
		f.list = append(f.list, found)
	} else {
		f.missed++
	}
	f.mu.Unlock()
	wake(f.ready)
	return kept
}

func (f *findings[T]) take() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// each calls g with what is found until the end, or until ctx or the node ends.
func (f *findings[T]) each(ctx context.Context, n *Node, g func(T)) {
	for {
		var over bool
		select {
		case <-f.ready:
		case <-f.ended:
			over = true
		case <-ctx.Done():
			over = true
		case <-n.stopped:
			over = true
		}
		for _, found := range f.take() {
			if g != nil {
				g(found)
			}
		}
		if over {
			return
		}
	}
}

// limit is a number of a request with its bounds.
type limit struct {
	name          string
	value, lo, hi int
}

// within refuses what is out of bounds.
func within(limits []limit) error {
	for _, l := range limits {
		if l.value < l.lo || l.value > l.hi {
			return control.Misuse("%s %d: want %d to %d", l.name, l.value, l.lo, l.hi)
		}
	}
	return nil
}

// freeEcho is an identifier that no ping of ours has. The loop's.
func (n *Node) freeEcho() uint16 {
	n.nextEcho++
	return n.nextEcho
}

// sourceOf reads a source: an address of ours, the name of an interface, or nothing.
// The interface is negative unless it was named. The loop's.
func (n *Node) sourceOf(source string) (netip.Addr, int, error) {
	if source == "" {
		return netip.Addr{}, -1, nil
	}
	if i, err := n.face(source); err == nil {
		return n.cfg.LNX.Interfaces[i].Addr.Addr(), i, nil
	}
	addr, err := netip.ParseAddr(source)
	if err != nil || !addr.Is4() {
		return addr, -1, control.Misuse(
			"source %q is neither an address nor an interface of this node", source)
	}
	if _, ours := n.stack.Owns(addr.As4()); !ours {
		return addr, -1, control.Misuse("source %v is no address of this node", addr)
	}
	return addr, -1, nil
}

// replyOf translates a probe's reply.
func (n *Node) replyOf(r *icmp.Reply) control.Reply {
	to := control.Reply{
		From: r.From, Seq: int(r.Seq), TTL: r.TTL, Size: r.Bytes, RTT: r.RTT, At: n.wall(r.At),
		Type: r.Type, Code: r.Code, MTU: r.MTU, Local: r.Verdict == icmp.Failed, Late: r.Late,
		Duplicate: r.Duplicate, Elsewhere: r.Elsewhere, Damaged: r.Damaged,
		Problem: problemOf(r), Mark: markOf(r), PathMTU: r.PathMTU,
	}
	if r.Err != nil {
		to.Err = NetError(r.Err)
	}
	if r.WrongAt >= 0 {
		to.Wrong = &control.WrongData{At: r.WrongAt, Want: r.Want, Data: r.Data}
	}
	return to
}

// stopProbing ends r early, if it has not ended. It waits for the loop.
func (n *Node) stopProbing(r running, stop func()) {
	_ = n.call(func(clock.Time) { // a node that is closed runs nothing
		stop()
		if _, on := n.running[r]; on && r.gather() {
			n.endProbing(r)
		}
	})
}
