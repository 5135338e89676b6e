package node

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// verbosity says for which sockets the node announces segments as events. Loop only.
type verbosity struct {
	all  bool
	some map[int]bool // set of socket numbers
}

func (v *verbosity) on() bool { return v.all || len(v.some) > 0 }

// SetVerbose turns the announcement of segments on or off.
func (t *Taps) SetVerbose(r control.Verbose) error {
	return t.node.Ask(func(*stack.Stack, clock.Time) error {
		v := &t.verbose
		switch {
		case r.SID == control.AllSockets:
			v.all, v.some = r.On, nil
		case r.On:
			if _, ok := t.node.stack.Sockets().Get(r.SID); !ok {
				return fmt.Errorf("%d: %w", r.SID, control.ErrNoSuchSocket)
			}
			if v.some == nil {
				v.some = map[int]bool{}
			}
			v.some[r.SID] = true
		default:
			delete(v.some, r.SID)
		}
		for _, r := range t.node.stack.RIPs() {
			r.Speaker().SetWatched(v.all)
		}
		t.updateTap()
		return nil
	})
}

// verboseSegment announces a TCP segment from or to the node.
func (t *Taps) verboseSegment(i int, dir stack.Direction, pieces [][]byte) {
	f, head := &t.facts, pieces[0]
	f.Iface = t.node.IfaceName(i)
	f.Parse(head)
	flow, ok := f.Flow(dir == stack.Outbound)
	if !ok {
		return
	}
	if _, ok := t.node.stack.Interfaces().Owns(flow.Local.Addr()); !ok {
		return // the segment is forwarded
	}
	sid := t.node.stack.Sockets().Find(flow.Local, flow.Remote)
	if !t.verbose.all && !t.verbose.some[sid] {
		return
	}
	packet := head
	if len(pieces) > 1 {
		packet = nil
		for _, p := range pieces {
			packet = append(packet, p...)
		}
	}
	text := string(capture.Describe(nil, packet))
	if dir == stack.Inbound {
		if kind := t.arrival(sid, packet); kind != tcp.ArrivalEmpty {
			text += " [" + kind.String() + "]"
		}
	}
	t.node.Watchers.Announce(control.Segment{SID: sid, Sent: dir == stack.Outbound, Text: text})
}

// arrival classifies the payload of a received segment, whose facts are in t.facts, by the kinds of
// founding document 001.
func (t *Taps) arrival(sid int, packet []byte) tcp.Arrival {
	k, ok := t.node.stack.Sockets().Get(sid)
	if !ok || k.Conn == nil {
		return tcp.ArrivalEmpty
	}
	_, _, h, text, ok := tcp.ParseHeader(t.facts.Segment(packet))
	if !ok {
		return tcp.ArrivalEmpty
	}
	return t.node.stack.Arrival(k.Conn, h.Seq, len(text))
}
