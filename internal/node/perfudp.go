package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/perf"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

const (
	// perfTrain is how many datagrams are handed to the loop at once.
	perfTrain = 32
	// perfUDPBuffer is what a socket that measures queues for its reader.
	perfUDPBuffer = 2 << 20
	// perfGreetEvery is when a greeting without an answer goes again.
	perfGreetEvery = time.Second
)

// perfDatagrams carries a flow of datagrams. A client's has a socket of its own, a server's share
// one, behind a gate.
type perfDatagrams struct {
	conn *PacketConn
	to   netip.AddrPort // invalid: conn is connected
	gate *perfGate      // nil: a client's
}

func (d *perfDatagrams) send(s *perfStream) error {
	p := &s.test.params
	blocks := make([][]byte, perfTrain)
	for i := range blocks {
		blocks[i] = perfPayload(p.Len)
	}
	number := uint64(0)
	put := func(b []byte) {
		number++
		perf.Header{Sent: time.Duration(time.Now().UnixNano()), Number: number}.Put(b, p.Wide != 0)
	}
	for pace := s.pace(); s.turn(pace); {
		k, sent := 1, s.moved.Load()
		put(blocks[0])
		for since := time.Since(s.test.began); k < perfTrain; k++ {
			if pace.Wait(since, sent+int64(k*p.Len)) > 0 || !s.test.reserve() {
				break
			}
			put(blocks[k])
		}
		n, err := d.conn.writeAll(blocks[:k], d.to)
		s.moved.Add(int64(n * p.Len))
		s.packets.Add(int64(n))
		s.test.moved(&s.test.sent, n*p.Len)
		if err != nil && !s.test.halted.Load() {
			return perfStreamError(err)
		}
	}
	return nil
}

// receive reads what comes; behind a gate that does.
func (d *perfDatagrams) receive(s *perfStream) error {
	if d.gate != nil {
		<-s.test.stop
		return nil
	}
	b := make([]byte, perf.MaxDatagram)
	for {
		n, err := d.conn.Read(b)
		switch {
		case err != nil && s.test.halted.Load(), errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return perfStreamError(err)
		}
		s.datagram(b[:n])
	}
}

func (d *perfDatagrams) halt() {
	if d.gate == nil {
		_ = d.conn.SetWriteDeadline(time.Unix(1, 0)) // or it is closed
	}
}
func (d *perfDatagrams) finish() {}
func (d *perfDatagrams) close() {
	if d.gate == nil {
		_ = d.conn.Close()
	}
}

// datagram counts what has come.
func (s *perfStream) datagram(b []byte) {
	h, ok := perf.ParseHeader(b, s.test.params.Wide != 0)
	if !ok || s.test.halted.Load() {
		return // too short, or an answer to a greeting that was repeated
	}
	s.mu.Lock()
	s.arrived.Add(time.Duration(time.Now().UnixNano()), h)
	s.mu.Unlock()
	s.took(len(b))
}

// writeAll sends datagrams and waits while the node holds too much, as WriteToAddrPort does.
func (c *PacketConn) writeAll(datagrams [][]byte, to netip.AddrPort) (n int, err error) {
	for n < len(datagrams) {
		if err := c.over(&c.writeBy); err != nil {
			return n, c.opError("write", to, err)
		}
		if err := c.takeFailure(); err != nil {
			return n, c.opError("write", to, err)
		}
		var room chan struct{}
		callErr := c.node.call(func(now clock.Time) {
			for n < len(datagrams) && err == nil {
				if c.closed.Load() {
					err = net.ErrClosed
				} else if err = c.node.stack.SendUDP(now, c.us, to, datagrams[n]); err == nil {
					n++
				}
			}
			if errors.Is(err, stack.ErrQueueFull) {
				room = c.node.awaitRoom()
			}
		})
		if room != nil {
			err = nil
			c.awaitRoom(room)
		} else if err = firstError(callErr, netError(err)); err != nil {
			return n, c.opError("write", to, err)
		}
	}
	return n, nil
}

// connectUDP opens a client's flow. A greeting that is not answered goes again.
func (t *perfTest) connectUDP(ctx context.Context, s *perfStream) error {
	c, err := t.node.DialUDP(s.remote)
	if err != nil {
		return err
	}
	s.carrier, s.local, s.socket = &perfDatagrams{conn: c}, c.local, c.sid
	err = t.tuneUDP(c)
	if err == nil {
		err = greetUDP(ctx, c)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = c.Close() // the first error is the one to tell
	}
	return err
}

// tuneUDP sets the options of a socket.
func (t *perfTest) tuneUDP(c *PacketConn) error {
	size := perfUDPBuffer
	if t.params.Window > 0 {
		size = t.params.Window
	}
	return firstError(c.SetReadBuffer(size), c.SetOptions(func(o *udp.Options) {
		o.TOS = uint8(t.params.TOS)
	}))
}

func greetUDP(ctx context.Context, c *PacketConn) error {
	b := make([]byte, perf.MaxDatagram)
	for until := time.Now().Add(perfPatience); time.Now().Before(until); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := c.Write(perf.AppendGreeting(nil)); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(perfGreetEvery)); err != nil {
			return err
		}
		for {
			// Behind the answer may be what a server that sends has sent already.
			n, err := c.Read(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return err
			}
			if perf.IsReply(b[:n]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: nobody answers by UDP", control.ErrTimeout)
}

// perfGate is a server's UDP port during a test: it tells the flows apart by where they come from.
type perfGate struct {
	test *perfTest
	conn *PacketConn
	from netip.Addr             // the client
	open func(*perfStream) bool // takes a stream; false: there are enough

	mu      sync.Mutex
	streams map[netip.AddrPort]*perfStream // as many as the test has
}

// run reads what comes until the port is closed.
func (g *perfGate) run() {
	b := make([]byte, perf.MaxDatagram)
	for {
		n, from, err := g.conn.ReadFromAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || from.Addr() != g.from {
			continue // what ICMP says of one flow is not the others' concern
		}
		g.mu.Lock()
		s := g.streams[from]
		g.mu.Unlock()
		switch {
		case perf.IsGreeting(b[:n]):
			if s != nil || g.greet(from) {
				_, _ = g.conn.WriteToAddrPort(perf.AppendReply(nil), from) // or it comes again
			}
		case s != nil:
			s.datagram(b[:n])
		}
	}
}

// greet makes a stream of a flow that is new.
func (g *perfGate) greet(from netip.AddrPort) bool {
	s := &perfStream{
		test: g.test, socket: g.conn.sid, remote: from,
		local:   netip.AddrPortFrom(g.test.control.conn.local().Addr(), g.conn.local.Port()),
		carrier: &perfDatagrams{conn: g.conn, to: from, gate: g},
	}
	g.mu.Lock()
	g.streams[from] = s
	g.mu.Unlock()
	if g.open(s) {
		return true
	}
	g.mu.Lock()
	delete(g.streams, from)
	g.mu.Unlock()
	return false
}
