package operator

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// run is a ping or a traceroute.
type run struct {
	host   *Requests
	engine stack.Prober
	stop   func()      // ends the engine early; loop only
	take   func() bool // passes on new results, and reports whether the engine is done
	over   bool        // the engine is done; loop only
}

// start starts the engine. Loop only.
func (r *run) start(s *stack.Stack) error {
	if err := s.Probers().Start(r.engine); err != nil {
		return fmt.Errorf("%w: %w", control.ErrUnsupported, err)
	}
	r.host.node.Follow(func() bool { return r.gather(s) })
	return nil
}

// gather passes on new results, and reports whether the engine is done. Loop only.
func (r *run) gather(s *stack.Stack) bool {
	if !r.over && r.take() {
		r.over = true
		s.Probers().Stop(r.engine)
	}
	return r.over
}

// end ends the engine. It waits for the loop.
func (r *run) end() {
	_ = r.host.node.Call(func(s *stack.Stack, _ clock.Time) error { // a closed node has no engines
		r.stop()
		r.gather(s)
		return nil
	})
}

// maxFindings limits the results of a ping or traceroute that wait for their reader.
const maxFindings = 4096

// limit is a number in a request with its minimum and maximum.
type limit struct {
	name          string
	value, lo, hi int
}

// within returns an error for a number below its minimum or above its maximum.
func within(limits []limit) error {
	for _, l := range limits {
		if l.value < l.lo || l.value > l.hi {
			return control.Misuse("%s %d: must be %d to %d", l.name, l.value, l.lo, l.hi)
		}
	}
	return nil
}

// freeEcho returns an unused echo identifier. Loop only.
func (h *Requests) freeEcho() uint16 {
	h.nextEcho++
	return h.nextEcho
}

// sourceOf parses the source of packets to dst: an address of the node, the name of an interface,
// or "". The returned interface is negative unless the source is a name. Loop only.
func (h *Requests) sourceOf(
	s *stack.Stack, source string, dst netip.Addr,
) (netip.Addr, int, error) {
	if source == "" {
		return netip.Addr{}, -1, nil
	}
	if i, err := h.node.Iface(source); err == nil {
		return s.Interfaces().Source(i, dst), i, nil
	}
	addr, err := netip.ParseAddr(source)
	switch {
	case err != nil:
		return addr, -1, control.Misuse(
			"source %q is neither an address nor an interface of this node", source)
	case addr.Is4() != dst.Is4():
		return addr, -1, control.Misuse("source %v and destination %v: must be of the same family",
			addr, dst)
	}
	if _, ours := s.Interfaces().Owns(addr); !ours {
		return addr, -1, control.Misuse("source %v is not an address of this node", addr)
	}
	return addr, -1, nil
}

// replyOf converts a probe's reply.
func (h *Requests) replyOf(r *icmp.Reply) control.Reply {
	to := control.Reply{
		From: r.From, Seq: int(r.Seq), TTL: r.TTL, Size: r.Bytes, RTT: r.RTT,
		At: h.node.Time.Wall(r.At), Type: r.Type.Number(), Code: r.Code, MTU: r.MTU,
		Local: r.Verdict == icmp.Failed, Late: r.Late, Duplicate: r.Duplicate,
		Elsewhere: r.Elsewhere, Damaged: r.Damaged,
		Problem: problemOf(r), Mark: markOf(r), PathMTU: r.PathMTU,
	}
	if r.Err != nil {
		to.Err = node.NetError(r.Err)
	}
	if r.WrongAt >= 0 {
		to.Wrong = &control.WrongData{At: r.WrongAt, Want: r.Want, Data: r.Data}
	}
	return to
}
