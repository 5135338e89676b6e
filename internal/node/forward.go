package node

import (
	"bytes"
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

// maxCaught limits the connections that wait for a forwarder's decision or, once accepted, for the
// peer's ACK, so a flood of SYNs starts no more goroutines than that. Further SYNs are answered
// with cookies (RFC 4987 §3.6). Another maxCaught connections from cookies may wait for a decision.
const maxCaught = DefaultBacklog

// Forwarders are the functions that receive connections without a listener and UDP flows without a
// socket. They may be nil. Only the loop uses the fields.
type Forwarders struct {
	node *Node
	tcp  func(*Caught)
	udp  func(*CaughtUDP)
}

// Caught is an incoming connection that has not been answered yet. It has no listener, or is for
// ListenOptions.Screen.
type Caught struct {
	node    *Node
	tuple   tcp.Tuple
	decided atomic.Bool
}

// TakeTCP calls f in a new goroutine for every connection that no listener accepts, whatever its
// destination. If f returns without a decision, the node forgets the connection. A nil f ends this.
func (fs *Forwarders) TakeTCP(f func(*Caught)) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		fs.tcp = f
		s.Catch(limitFor(f != nil))
		return nil
	})
}

// TakeUDP is like TakeTCP, for UDP flows that no socket receives.
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

// TakeAll sets both forwarders. If one is already set, it returns control.ErrPortInUse.
func (fs *Forwarders) TakeAll(f func(*Caught), g func(*CaughtUDP)) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		if fs.tcp != nil || fs.udp != nil {
			return fmt.Errorf("%w: a forwarder already handles every port", control.ErrPortInUse)
		}
		fs.tcp, fs.udp = f, g
		s.Catch(maxCaught)
		s.CatchUDP(maxCaught)
		return nil
	})
}

// maxEchoes limits the echo requests that wait for their replies.
const maxEchoes = 256

// TakeEcho calls f in a new goroutine for every ICMP echo request to an address of another host. It
// sends the reply if f returns true. At most 256 calls run at a time, and further requests are
// dropped. A nil f ends this.
func (fs *Forwarders) TakeEcho(f func(e *stack.Echo) bool) error {
	return fs.node.Call(func(s *stack.Stack, _ clock.Time) error {
		if f == nil {
			s.CatchEcho(nil)
			return nil
		}
		room := make(chan struct{}, maxEchoes)
		s.CatchEcho(func(_ clock.Time, e *stack.Echo) {
			select {
			case room <- struct{}{}:
			default:
				return
			}
			e.Body = bytes.Clone(e.Body)
			fs.node.leading.wokeAny = true
			go func() {
				defer func() { <-room }()
				if f(e) {
					fs.node.Post(func(now clock.Time) {
						_ = fs.node.stack.AnswerEcho(now, e) // a reply without a route is lost
					})
				}
			}()
		})
		return nil
	})
}

// dispatch starts forwarders and Screens for caught connections and flows. Loop only.
func (fs *Forwarders) dispatch() {
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
		n.leading.wokeAny = true
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
		n.leading.wokeAny = true
		go func() {
			defer c.Ignore()
			f(c)
		}()
	}
}

// Local returns the destination address and port.
func (c *Caught) Local() netip.AddrPort { return c.tuple.Local() }

// Remote returns the peer's address and port.
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

// Reject answers with a reset.
func (c *Caught) Reject() { c.decide((*tcp.Host).Reject) }

// Ignore sends no answer.
func (c *Caught) Ignore() { c.decide((*tcp.Host).Ignore) }

// decide carries out the first decision. Later ones have no effect.
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
