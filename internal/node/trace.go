package node

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// follows reports whether a packet belongs to the connection that an observer follows. The first
// packet that passes its filter chooses the connection.
func (t *Taps) follows(o *observe.Observer, f *capture.Facts, s *observe.Packet) bool {
	flow := o.Flow
	if flow.Drops && !f.Dropped {
		return false
	}
	if !flow.Found {
		if !o.Filter.Match(f) {
			return false
		}
		k, ok := f.Flow(true)
		if !ok {
			return false
		}
		_, src := t.node.stack.Interfaces().Owns(k.Local.Addr())
		_, dst := t.node.stack.Interfaces().Owns(k.Remote.Addr())
		if dst && !src {
			k, _ = f.Flow(false)
		}
		flow.Found, flow.Key, flow.Ours = true, k, src || dst
	}
	if !flow.Ours && s.Out && !f.Dropped {
		return false // the tap shows a forwarded packet twice
	}
	from, ok := f.Flow(true)
	to, _ := f.Flow(false)
	return ok && (from == flow.Key || to == flow.Key)
}

// ObserveSocket makes an observer follow the connection with that number, or the next connection of
// a listener. If recorded is set, the observer also gets the segments in the connection's flight
// recorder.
func (t *Taps) ObserveSocket(
	o *observe.Observer, sid int, recorded bool,
) (b observe.Beginning, err error) {
	err = t.node.Ask(func(*stack.Stack, clock.Time) error {
		if err := t.followSocket(o, sid); err != nil {
			return err
		}
		b = t.beginning(sid, recorded)
		return t.observe(o)
	})
	return b, err
}

// beginning returns the state of a socket's connection. Loop only.
func (t *Taps) beginning(sid int, recorded bool) (from observe.Beginning) {
	s, _ := t.node.stack.Sockets().Get(sid)
	if s.Conn == nil {
		return from // a listener's next connection is observed from its start
	}
	if c, ok := s.Conn.Owner.(*Conn); ok && recorded {
		from.Before = c.flight.Batch()
	}
	switch i := s.Conn.Info(); i.State {
	case tcp.StateClosed, tcp.StateListen, tcp.StateSynSent: // the peer's SYN has not arrived
	default:
		from.Known = true
		from.Local = capture.Start{Base: i.ISS, Next: i.Nxt + 1, Scale: i.RcvWScale}
		from.Remote = capture.Start{Base: i.IRS, Next: i.RcvNxt + 1, Scale: i.SndWScale}
	}
	return from
}

// followSocket sets up an observer as ObserveSocket does. Loop only.
func (t *Taps) followSocket(o *observe.Observer, sid int) error {
	s, ok := t.node.stack.Sockets().Get(sid)
	switch {
	case !ok:
		return fmt.Errorf("%d: %w", sid, control.ErrNoSuchSocket)
	case s.Listener != nil:
		o.About.Filter = fmt.Sprintf("tcp dst port %d and tcp[tcpflags] & (tcp-syn|tcp-ack) == "+
			"tcp-syn and in", s.Local().Port())
		o.Filter, _ = capture.ParseFilter(o.About.Filter) // the filter is valid
		return nil
	case s.UDP != nil:
		return fmt.Errorf("%d is a UDP socket: %w", sid, control.ErrNotConnected)
	}
	FollowFlow(o, s.Local(), s.Remote())
	return nil
}

// FollowFlow makes an observer, which does not observe yet, follow a connection of the node's
// addresses.
func FollowFlow(o *observe.Observer, local, remote netip.AddrPort) {
	o.Flow.Found, o.Flow.Ours = true, true
	o.Flow.Key = capture.Flow{Local: local, Remote: remote}
	o.About.Filter = fmt.Sprintf("host %v and host %v and port %d and port %d",
		local.Addr().WithZone(""), remote.Addr().WithZone(""), local.Port(), remote.Port())
}

// endTraces ends the observers that follow a connection that is gone. Loop only.
func (t *Taps) endTraces(c *tcp.Conn) {
	if len(t.observers) == 0 {
		return
	}
	tuple := c.Tuple()
	key := capture.Flow{Local: tuple.Local(), Remote: tuple.Remote()}
	for _, o := range slices.Backward(t.observers) {
		if o.Flow != nil && o.Flow.Found && o.Flow.Key == key {
			t.unobserve(o)
		}
	}
}
