package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// maxCaught bounds the connections that wait for a forwarder's decision, or were accepted and whose
// peer has not answered yet: a flood of SYNs costs no more goroutines. More SYNs are answered by
// cookies (RFC 4987 §3.6), and as many connections that these have opened wait for a decision.
const maxCaught = DefaultBacklog

// Forwarders get the connections that no listener takes, and the flows of datagrams that no socket
// takes. The fields are the loop's; nil: there is no forwarder.
type Forwarders struct {
	node *Node
	tcp  func(*Caught)
	udp  func(*CaughtUDP)
}

// Caught is a connection that somebody tries to open, before it is answered: one that no listener
// takes, or one of a Screen's.
type Caught struct {
	node    *Node
	tuple   tcp.Tuple
	decided atomic.Bool
}

// TakeTCP has f called, in a goroutine each, with every connection that no listener takes, whatever
// address and port it is for. What f does not decide is forgotten when it returns. Nil ends it.
func (fs *Forwarders) TakeTCP(f func(*Caught)) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		fs.tcp = f
		s.Catch(limitFor(f != nil))
		return nil
	})
}

// TakeUDP is TakeTCP for every flow of datagrams that no socket takes.
func (fs *Forwarders) TakeUDP(f func(*CaughtUDP)) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		fs.udp = f
		s.CatchUDP(limitFor(f != nil))
		return nil
	})
}

func limitFor(caught bool) int {
	if caught {
		return maxCaught
	}
	return 0
}

// TakeAll is TakeTCP and TakeUDP at once, unless there is a forwarder of either already, which is
// control.ErrPortInUse.
func (fs *Forwarders) TakeAll(f func(*Caught), g func(*CaughtUDP)) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		if fs.tcp != nil || fs.udp != nil {
			return fmt.Errorf("%w: something takes every port already", control.ErrPortInUse)
		}
		fs.tcp, fs.udp = f, g
		s.Catch(maxCaught)
		s.CatchUDP(maxCaught)
		return nil
	})
}

// tell starts the forwarders, or a listener's Screen, on what was caught. The loop's.
func (fs *Forwarders) tell() {
	n := fs.node
	for {
		t, tl, ok := n.stack.TCP().NextCaught()
		if !ok {
			break
		}
		f := fs.tcp
		if tl != nil {
			f = nil
			if l := n.TCP.listeners[tl]; l != nil {
				f = l.screen
			}
		}
		if f == nil {
			n.stack.TCP().Ignore(t)
			continue
		}
		c := &Caught{node: n, tuple: t}
		go func() {
			defer c.Ignore()
			f(c)
		}()
	}
	for {
		flow, ok := n.stack.UDP().NextCaught()
		if !ok {
			return
		}
		c, f := &CaughtUDP{node: n, flow: flow}, fs.udp
		go func() {
			defer c.Ignore()
			f(c)
		}()
	}
}

// Local is the address and port that the connection is for.
func (c *Caught) Local() netip.AddrPort { return c.tuple.Local() }

// Remote is who opens it.
func (c *Caught) Remote() netip.AddrPort { return c.tuple.Remote() }

// Accept completes the handshake and returns the connection.
func (c *Caught) Accept() (*Conn, error) {
	if c.decided.Swap(true) {
		return nil, c.opError(net.ErrClosed)
	}
	var conn *Conn
	err := c.node.Call(func(s *stack.Stack, now clock.Time) error {
		tc, ok := s.TCP().Admit(now, c.tuple)
		if !ok {
			return syscall.ECONNABORTED
		}
		conn = newConn(c.node, tc)
		c.node.TCP.adopt(conn, nil)
		return nil
	})
	if err != nil {
		return nil, c.opError(err)
	}
	if err := conn.awaitAnswer(context.Background()); err != nil {
		return nil, c.opError(err)
	}
	select {
	case <-conn.ended.passed():
		// RFC 9293 §3.10.7.4: a reset in SYN-RECEIVED is no error to a listener.
		return nil, c.opError(syscall.ECONNRESET)
	default:
		return conn, nil
	}
}

// Reject refuses the connection with a reset.
func (c *Caught) Reject() { c.decide((*tcp.Host).Reject) }

// Ignore leaves the connection unanswered.
func (c *Caught) Ignore() { c.decide((*tcp.Host).Ignore) }

// decide does nothing when a decision was made before.
func (c *Caught) decide(how func(*tcp.Host, tcp.Tuple)) {
	if !c.decided.Swap(true) {
		c.node.Post(func(clock.Time) { how(c.node.stack.TCP(), c.tuple) })
	}
}

func (c *Caught) opError(err error) error {
	return &net.OpError{
		Op: "accept", Net: "tcp", Source: net.TCPAddrFromAddrPort(c.Remote()),
		Addr: net.TCPAddrFromAddrPort(c.Local()), Err: err,
	}
}
